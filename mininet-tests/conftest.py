"""What the tests here have in common."""

import os

import pytest

SECONDS = 300  # as in setup.cfg: of a test that says nothing else


@pytest.hookimpl(trylast=True)  # when markers have deselected what is not asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of the lab without root, and begin with the longest: files run side by side, and end together."""
    if os.geteuid() != 0:
        skip = pytest.mark.skip(reason="needs root: the lab shares this machine's files with its guest")
        for item in items:
            if item.get_closest_marker("lab"):
                item.add_marker(skip)
    items.sort(key=_allowed_s, reverse=True)


def _allowed_s(item: pytest.Item) -> float:
    """Return how long a test may take, seconds: the longest are allowed most."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else SECONDS
