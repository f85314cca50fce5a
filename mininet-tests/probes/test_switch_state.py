"""A rule that was put again is told from one that stayed, also by a switch that was slow to tell."""

from mininet_tests.probes.switch_state import SwitchesSeen


def seen(asked_s, told_s, age_s):
    """A rule of which a switch has told the age between two moments."""
    return SwitchesSeen(("rule",), {"rule": (asked_s - age_s, told_s - age_s)})


def test_a_rule_that_stayed_is_no_younger_though_the_switch_was_slow_to_tell():
    slow = seen(asked_s=100.0, told_s=102.0, age_s=11.9)  # told at 101.9: put at 90
    assert seen(asked_s=120.0, told_s=120.01, age_s=30.0).younger_than(slow) == 0
    assert slow.younger_than(seen(asked_s=95.0, told_s=95.01, age_s=5.0)) == 0


def test_a_rule_that_was_put_again_is_counted():
    before = seen(asked_s=100.0, told_s=100.01, age_s=10.0)
    assert seen(asked_s=120.0, told_s=120.01, age_s=15.0).younger_than(before) == 1


def test_a_rule_that_was_not_there_before_was_not_put_again():
    assert seen(asked_s=120.0, told_s=120.01, age_s=15.0).younger_than(SwitchesSeen((), {})) == 0
