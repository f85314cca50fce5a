"""What the tests here have in common."""

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of the lab without root."""
    if os.geteuid() != 0:
        skip = pytest.mark.skip(reason="needs root: the lab shares this machine's files with its guest")
        for item in items:
            if item.get_closest_marker("lab"):
                item.add_marker(skip)
