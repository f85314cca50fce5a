"""Examples in docstrings are true, wherever there are some."""

import doctest
import importlib

import pytest

from apps.tests.test_structure import ROOT, tracked

EXAMPLE = "    >>> "


def with_examples():
    """The modules that have some; no test is one."""
    found = [path for path in tracked("*.py") if not path.name.startswith("test_") and EXAMPLE in path.read_text()]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).replace("-", "_") for path in found]


@pytest.mark.parametrize("name", with_examples())
def test_examples_are_true(name):
    found = doctest.testmod(importlib.import_module(name))
    assert (found.failed, found.attempted > 0) == (0, True)
