"""The run of purchases under faults in short, and that each of its aims can be missed."""

import copy

import pytest

from mininet_tests.bench import providers


def test_a_short_run_buys_nothing_twice_and_leaves_no_orphan_nor_promise_without_carrier():
    found = providers.report({"oscars": 16, "nsi": 12}, 5, lambda text: None)
    assert found["falls_short"] == [], found["kinds"]
    assert all(one["bought"] for one in found["kinds"].values())


GOOD = {
    "kinds": {
        "oscars": {
            "looks_while_active": 3,
            "bought_twice": [],
            "orphaned": [],
            "released_though_needed": [],
            "active_without_carrier": [],
        }
    }
}


def test_a_run_that_is_as_it_should_be_misses_nothing():
    assert all(aim.ok for aim in providers.aims(GOOD).values())


@pytest.mark.parametrize("what", ["bought_twice", "orphaned", "released_though_needed", "active_without_carrier"])
def test_each_aim_can_be_missed(what):
    bad = copy.deepcopy(GOOD)
    bad["kinds"]["oscars"][what] = ["CXA5"]
    missed = [name for name, aim in providers.aims(bad).items() if not aim.ok]
    assert missed == [f"oscars: {what.replace('_', ' ')}"]


def test_a_run_in_which_nothing_was_carried_proves_nothing():
    bad = copy.deepcopy(GOOD)
    bad["kinds"]["oscars"]["looks_while_active"] = 0
    assert [aim.ok for aim in providers.aims(bad).values()].count(False) == 1
