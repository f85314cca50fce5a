"""Examples in the docstrings are true."""

import doctest

import pytest

from controller.whatif import fluid, movers, results, summary


@pytest.mark.parametrize("module", [fluid, movers, results, summary], ids=lambda m: m.__name__)
def test_examples_in_the_docstrings_are_true(module):
    done = doctest.testmod(module)
    assert done.attempted
    assert not done.failed
