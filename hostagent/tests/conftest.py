"""Two hosts and an agent on the left one, for the tests on this machine's kernel."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hostagent.tests.rig import NamespaceHost, RunningAgent, two_hosts


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    """What is undone at the end of a test, the latest first."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def hosts(cleanup: ExitStack) -> tuple[NamespaceHost, NamespaceHost]:
    """Two network namespaces joined by a cable."""
    left, right = two_hosts()
    cleanup.callback(left.remove)
    cleanup.callback(right.remove)
    return left, right


@pytest.fixture
def agent(hosts: tuple[NamespaceHost, NamespaceHost], tmp_path: Path, cleanup: ExitStack) -> RunningAgent:
    """An agent on the left host, with a controller of the test's."""
    running = RunningAgent(hosts[0], tmp_path / "agent")
    cleanup.callback(running.close)
    return running
