"""Drift in the lab: what is broken by hand while a planned flow runs is repaired in time, alone, and without loss."""

import pytest

from mininet_tests.lab.played import played

INTERVAL_S = 2
OTHERS = ("shadowed", "ignored")  # two rules of other people stand there all the time
READ_S = 1.0  # to look, to repair, and for the test to see it

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What one run at 100 Mbit/s over 40 ms has seen."""
    folder = tmp_path_factory.mktemp("drift")
    return played("scenarios.drift.run", folder, dilation=2, timeout_s=800, report="drift.json")


def test_two_audits_of_a_proper_site_send_nothing_and_find_everything_in_its_place(seen):
    for place in seen["before"]["places"]:
        assert place["audits"] >= 2
        assert (place["messages"], place["latest"]["deviations"], place["latest"]["errors"]) == (0, [], [])
    kinds = {kind for place in seen["before"]["places"] for kind, count in place["latest"]["proper"].items() if count}
    assert kinds == {"flow", "meter", "queue", "htb", "host"}


def test_each_kind_that_is_broken_by_hand_is_repaired_within_an_interval(seen):
    late = {one["name"]: one["repaired_after_s"] for one in seen["breaks"]}
    print({name: round(after_s, 2) for name, after_s in late.items()})
    assert {one["kind"] for one in seen["breaks"]} == {"flow", "meter", "queue", "htb"}
    assert {name: s for name, s in late.items() if s > INTERVAL_S + READ_S} == {}


def test_a_deleted_rule_is_repaired_without_waiting_for_the_interval(seen):
    at_once = [one["repaired_after_s"] for one in seen["breaks"] if one["shape"] == "missing" and one["kind"] == "flow"]
    assert len(at_once) == 2
    assert max(at_once) < READ_S


def test_nothing_that_was_right_is_written_again(seen):
    for one in seen["breaks"]:
        found = [(d["kind"], d["shape"], d["outcome"]) for d in one["deviations"] if d["shape"] not in OTHERS]
        assert (one["messages"], found) == (one["expected_messages"], [(one["kind"], one["shape"], "repaired")])
    sent = sum(place["messages"] for place in seen["after"]["places"])
    assert sent == sum(one["expected_messages"] for one in seen["breaks"])


def test_planned_traffic_loses_nothing_meanwhile(seen):
    assert seen["traffic_still_ran"]
    assert seen["traffic"]["retransmits"] == 0
    assert set(seen["drops"]["line"].values()) == {0}
    assert set(seen["drops"]["port"].values()) == {0}


def test_planned_traffic_keeps_its_rate_in_every_second(seen):
    (allocation,) = seen["plan"]["allocations"]
    under_way = seen["traffic"]["each_second_bps"][3:-2]
    assert len(under_way) > 20
    assert min(under_way) > 0.95 * allocation["payload_bps"]


def test_other_people_s_and_ignored_rules_are_still_there(seen):
    assert seen["foreign_rule_there"]
    assert seen["ignored_rule_there"]
    (place,) = (p for p in seen["after"]["places"] if p["place"] == "ls1")
    assert [(d["shape"], d["outcome"]) for d in place["latest"]["deviations"]] == [(s, "left alone") for s in OTHERS]
    (alarm,) = place["latest"]["alarms"]
    assert "cookie 0x77" in alarm


def test_what_was_found_and_repaired_is_counted_for_prometheus(seen):
    assert 'headway_drift_repaired_total{kind="htb",place="ls1",shape="misconfigured"} 1.0' in seen["metrics"]
    assert 'headway_drift_repaired_total{kind="flow",place="ls1",shape="missing"} 2.0' in seen["metrics"]
