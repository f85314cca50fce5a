"""A short soak in the lab: every kind of event once, and what the long one asserts; its arithmetic without the lab."""

from itertools import islice

import pytest

from mininet_tests.lab.played import is_long_tier, played
from mininet_tests.scenarios.soak.events import FAULTS, OWN_PORTS, WEIGHTS, EventKind, events
from mininet_tests.scenarios.soak.play import PromisedTransfer, SoakFault
from mininet_tests.scenarios.soak.run import dropped, lateness_ms

COUNT, SEED = 12, 1
LATER_COUNT = 36

in_lab = [
    pytest.mark.lab,
    pytest.mark.timeout(2700),
]


def drawn(seed, count):
    """The events of a seed on a line of 100 Mbit/s and 180 ms."""
    return list(events(seed, count, 4.0, 100_000_000, 0.18))


def test_a_seed_is_a_sequence_and_a_longer_one_begins_with_it():
    assert drawn(7, 30) == list(islice(drawn(7, 200), 30))
    assert drawn(7, 30) != drawn(8, 30)


def test_the_first_dozen_has_every_kind_of_a_short_soak_and_a_long_one_all_there_are():
    assert {event.kind for event in drawn(SEED, COUNT)} == set(WEIGHTS)
    assert {event.kind for event in drawn(SEED, 200)} == set(EventKind)


def test_a_long_one_has_second_promises_of_a_pair():
    assert {event.what.get("dest_port") for event in drawn(SEED, 200)} >= {*OWN_PORTS.values()}
    assert not any(event.what.get("dest_port") for event in drawn(SEED, COUNT))


@pytest.mark.parametrize(
    ("kind", "what", "hit"),
    [
        (EventKind.HOLD_DATABASE, {"lasts_s": 1}, "controller"),
        (EventKind.SET_CLOCK, {"by_s": 3600}, "clock"),
        (EventKind.PORT_DOWN, {"host": "base20"}, "base20"),
        (EventKind.KILL_SWITCH, {}, "switches"),
    ],
)
def test_one_thing_is_not_broken_twice_at_once(kind, what, hit):
    assert SoakFault(kind, what, 0).target == hit


def test_a_long_one_is_of_promises_for_the_most_part_and_has_dozens_of_faults():
    kinds = [event.kind for event in drawn(1, 200)]
    assert 40 < sum(kind in FAULTS for kind in kinds) < 100


def test_a_count_of_drops_that_fell_has_begun_anew_and_is_not_lost():
    samples = [(0, {"q": 3}), (10, {"q": 5}), (20, {}), (30, {"q": 4}), (40, {"q": 1})]
    assert dropped(samples) == [(0, 10, 2, "q"), (20, 30, 4, "q"), (30, 40, 1, "q")]


def test_a_fault_explains_what_was_while_it_lasted_and_shortly_after():
    fault = SoakFault(EventKind.CUT_OPENFLOW, {}, broken_us=10_000_000, mended_us=11_000_000, settled_us=12_000_000)
    assert not fault.covers(8_000_000, 9_999_999)
    assert fault.covers(8_000_000, 10_000_001)
    assert fault.covers(12_500_000, 12_600_000)
    assert not fault.covers(13_000_001, 14_000_000)


def test_a_transfer_is_late_by_what_it_was_confirmed_after_its_promise():
    assert lateness_ms(PromisedTransfer("image-1", ("base20",), 0, 2_000_000, 2_500_000)) == 500


@pytest.fixture(scope="module")
def report(request, tmp_path_factory):
    """What one soak has shown: a short one, which in the long tier goes on."""
    count = LATER_COUNT if is_long_tier(request) else COUNT
    closer = "--spacing", "2", "--layers-every", "0.5"  # the long ones look more often, for longer
    folder, sequence = tmp_path_factory.mktemp("soak"), ("--seed", str(SEED), "--count", str(count), *closer)
    return played("scenarios.soak.run", folder, *sequence, dilation=2, timeout_s=2500, report="report.json")


class TestSoak:
    """What must hold of every soak."""

    pytestmark = in_lab

    def test_all_of_it_happened(self, report):
        assert report["complete"]
        drawn_now = drawn(SEED, report["events"])
        assert report["events"] in (COUNT, LATER_COUNT)
        assert report["faults"] == sum(event.kind in FAULTS for event in drawn_now)
        assert report["transitions"] == report["events"] - report["faults"]
        assert report["promises"] >= 3

    def test_layers_hold_promises_are_kept_and_all_is_settled_after_each_fault(self, report):
        assert report["samples"] > 50
        assert report["falls_short"] == [], report["aims"]

    @pytest.mark.long
    def test_later_there_are_ports_of_other_numbers_and_a_silent_database(self, report):
        assert report["events"] == LATER_COUNT
        assert {fault["kind"] for fault in report["hit"]} >= {EventKind.OTHER_NUMBER, EventKind.HOLD_DATABASE}
