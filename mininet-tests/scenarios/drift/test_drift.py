"""Drift in the lab: what is broken by hand while a planned flow runs is repaired in time, alone, and without loss."""

import pytest

from mininet_tests.lab.played import played
from mininet_tests.scenarios.drift.aims import OTHERS

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What one run at 100 Mbit/s over 40 ms has seen."""
    folder = tmp_path_factory.mktemp("drift")
    return played("scenarios.drift.run", folder, dilation=2, timeout_s=1100, report="report.json")


def test_what_is_broken_is_repaired_in_time_without_loss_and_all_else_is_left_alone(seen):
    assert seen["traffic_still_ran"]
    assert len(seen["traffic"]["each_second_bps"]) > 25
    assert seen["falls_short"] == [], seen["aims"]


def test_two_audits_of_a_proper_site_find_everything_in_its_place(seen):
    assert min(place["audits"] for place in seen["before"]["places"]) >= 2
    kinds = {kind for place in seen["before"]["places"] for kind, count in place["latest"]["proper"].items() if count}
    assert kinds == {"flow", "meter", "queue", "htb", "host", "port"}


def test_each_kind_is_broken_by_hand(seen):
    print({one["name"]: round(one["repaired_after_s"], 2) for one in seen["breaks"]})
    assert {one["kind"] for one in seen["breaks"]} == {"flow", "meter", "queue", "htb"}
    assert sum(one["shape"] == "missing" and one["kind"] == "flow" for one in seen["breaks"]) == 2


def test_other_people_s_and_ignored_rules_are_shown_as_left_alone(seen):
    (place,) = (p for p in seen["after"]["places"] if p["place"] == "ls1")
    assert [(d["shape"], d["outcome"]) for d in place["latest"]["deviations"]] == [(s, "left alone") for s in OTHERS]
    (alarm,) = place["latest"]["alarms"]
    assert "cookie 0x77" in alarm


def test_what_was_found_and_repaired_is_counted_for_prometheus(seen):
    assert 'headway_drift_repaired_total{kind="htb",place="ls1",shape="misconfigured"} 1.0' in seen["metrics"]
    assert 'headway_drift_repaired_total{kind="flow",place="ls1",shape="missing"} 2.0' in seen["metrics"]
