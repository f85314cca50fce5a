"""For all tests: none judges how long a busy machine took, but those of root, which go before what else it does."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from hypothesis import settings
from pytest_timeout import Settings

from mininet_tests.testing.precedence import precedence

# Of each property, where it does not say how many: the short tier draws few, the long one as Hypothesis does by itself.
settings.register_profile("headway", deadline=None, max_examples=int(os.environ.get("HEADWAY_EXAMPLES", "40")))
settings.load_profile("headway")


gc.disable()  # while all tests are imported: nothing of them goes before the end


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collect garbage from here on, and never again look through what was imported; also who only shares out tests."""
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)  # by itself 700, which takes half as much time again
    gc.enable()
    if structlog := sys.modules.get("structlog"):  # shows what all local variables hold: a traceback took it a second
        plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let a test that goes by this machine's clock, with all it starts, go before what else the machine does."""
    if item.get_closest_marker("root") is None:
        return (yield)
    with precedence():
        return (yield)


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no site of a test outlive it: of thousands each would keep two threads, and a connection."""
    fakes = sys.modules.get("controller.tests.fakes")
    with nullcontext() if fakes is None else fakes.closing(monkeypatch):
        yield


TIMEOUT = pytest.StashKey[Settings]()


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Settings) -> None:
    """Keep what a test is given, for its other runs."""
    item.stash[TIMEOUT] = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give a run that is made again all of its timeout: pytest-timeout sets one for all, and ends it at a failure."""
    _set_timer_anew(item)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Give what is torn down after a failure its timeout: what has hung once may hang again when it is ended."""
    _set_timer_anew(node)


def _set_timer_anew(item: pytest.Item | pytest.Collector) -> None:
    if TIMEOUT in item.stash:
        item.ihook.pytest_timeout_cancel_timer(item=item)
        item.ihook.pytest_timeout_set_timer(item=item, settings=item.stash[TIMEOUT])


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a database: on a machine that stands still for two seconds it is late, not gone."""
    if database := sys.modules.get("controller.database.database"):
        monkeypatch.setattr(database, "SAVE_WITHIN_S", 30.0)
        monkeypatch.setattr(sys.modules["controller.database.reader"], "READ_WITHIN_S", 30.0)
