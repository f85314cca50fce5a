"""What was promised in another network, read into this one's ledger."""

from dataclasses import replace

import pytest

from controller.plan.announcement_states import Ending
from controller.plan.kept_ledger import KeptLedger
from controller.plan.keys import StorePlace
from controller.plan.ledger import Ledger
from controller.plan.lifecycle import LifecycleEvent, ReservationState
from controller.plan.overbooked import overbooked
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.reservations import Constraints
from controller.plan.storing import StoreCapacity
from controller.plan.tests.asking import NOW, S, asked, created, wish
from mininet_tests.testing.networks import FILES, asc_ring, described, loaded
from topology.network_text import section_of

NORTH, BOTH = loaded(FILES["chile-illinois-north"]), loaded(FILES["chile-illinois-2"])
FAILED = ReservationState.FAILED


def ledger_of(network, *requests):
    """A ledger with committed reservations, named by their order."""
    found = Ledger(network, DEFAULT_POLICY)
    for number, request in enumerate(requests):
        found.hold(request, created(str(number)))
        found.happened(str(number), LifecycleEvent.COMMIT, NOW)
    return found


def restored(before, network, *, without=()):
    found = KeptLedger(network, DEFAULT_POLICY)
    kept = [known for name, known in before.reservations.items() if name not in without]
    found.restore(kept, before.announcements.values(), NOW)
    return found


def middles(ledger):
    return [known.path for known in ledger.reservations.values()]


def with_circuits(network, *order, **more):
    """The network with its circuits in another order, and with others beside them."""
    section = section_of(network)
    known = section["circuits"] | more
    return described(section | {"circuits": {name: known[name] for name in order}})


SOUTH_FIRST = with_circuits(BOTH, "south", "north")


def test_what_draws_on_a_reservation_keeps_its_promise_though_its_disk_is_not_known_again_yet():
    before = ledger_of(BOTH, asked(start_us=NOW, rate_bps=900_000_000))
    before.tick(NOW)
    disk = StoreCapacity(StorePlace("arch", "data"), 200_000_000, 800_000_000)
    for name, host in (("one", "base20"), ("two", "base21")):
        before.announce(wish(name, store=disk, size_bytes=200_000_000), (host,), "arch", NOW)
    assert [a.pool for a in before.announcements.values()] == ["0", "0"]
    kept = restored(before, BOTH).announcements
    assert [(a.pool, a.rates) for a in kept.values()] == [(a.pool, a.rates) for a in before.announcements.values()]


def test_a_promise_whose_link_does_not_name_its_circuit_goes_by_the_first_that_has_room():
    two = ledger_of(NORTH, asked(rate_bps=400_000_000), asked(rate_bps=500_000_000))
    assert middles(restored(two, BOTH)) == [("ls1", "north", "ch1")] * 2
    assert middles(restored(two, SOUTH_FIRST)) == [("ls1", "south", "ch1"), ("ls1", "north", "ch1")]


def test_a_promise_for_which_no_circuit_has_room_is_left_to_the_clock_on_the_first():
    small = with_circuits(BOTH, "first", "south", first=section_of(BOTH)["circuits"]["south"] | PORTS)
    ledger = restored(ledger_of(NORTH, asked(rate_bps=600_000_000)), small)
    assert middles(ledger) == [("ls1", "first", "ch1")]
    ledger.tick(NOW + 100 * S)
    assert [known.reservation_id for known in overbooked(ledger, NOW + 100 * S)] == ["0"]


PORTS = {
    "a": {"switch": "ls1", "port": "ls1-third", "number": 10},
    "z": {"switch": "ch1", "port": "ch1-third", "number": 10},
}


@pytest.mark.parametrize("wanted", [Constraints(include=("north",)), Constraints(max_rtt_us=190_000)])
def test_a_promise_goes_by_the_circuit_that_its_constraints_name(wanted):
    before = ledger_of(NORTH, asked(constraints=wanted, rate_bps=300_000_000))
    assert middles(restored(before, SOUTH_FIRST)) == [("ls1", "north", "ch1")]


def test_promises_of_one_pair_of_hosts_that_could_not_be_told_apart_stay_together():
    ends = {"a_end": "base20", "z_end": "arch"}
    two = ledger_of(NORTH, asked(rate_bps=600_000_000, **ends), asked(rate_bps=100_000_000, **ends))
    assert middles(restored(two, SOUTH_FIRST)) == [("base20", "ls1", "north", "ch1", "arch")] * 2


def test_a_promise_on_the_circuit_that_is_taken_away_fails_and_the_others_stay():
    by = [asked(constraints=Constraints(include=(name,)), rate_bps=300_000_000) for name in ("north", "south")]
    ledger = restored(ledger_of(BOTH, *by), NORTH)
    north, south = ledger.reservations.values()
    assert (north.state, north.path) == (ReservationState.COMMITTED, ("ls1", "ch1"))
    assert (south.state, south.reason) == (FAILED, "its path is not in the network any more")
    part = ledger.changes(decided=False)
    assert part.gone == (south,)
    assert {name: known.state for name, known in part.before.items()} == dict.fromkeys("01", north.state)
    assert ledger.changes(decided=False).gone == ()


def test_a_third_circuit_changes_nothing():
    before = ledger_of(BOTH, asked(rate_bps=300_000_000))
    third = with_circuits(BOTH, "third", "north", "south", third=section_of(BOTH)["circuits"]["north"] | PORTS)
    ledger = restored(before, third)
    assert ledger.reservations == before.reservations
    assert not ledger.has_changed


def test_a_backup_goes_with_its_path():
    ring = with_circuits(asc_ring(), *(circuit.name for circuit in asc_ring().circuits))
    ends = {"a_end": "albuquerque", "z_end": "livermore", "constraints": Constraints(backup=True)}
    before = ledger_of(ring, asked(**ends))
    (known,) = before.reservations.values()
    section = section_of(ring)
    doubled = ring.circuits_along(known.path)[0]
    inside = section["circuits"][doubled]
    beside = {end: inside[end] | {"port": f"more-{end}", "number": 99} for end in "az"}
    more = described(section | {"circuits": section["circuits"] | {"more": inside | beside}})
    (now,) = restored(before, more).reservations.values()
    assert doubled in now.path
    assert now.backup == known.backup
    assert now.version == known.version + 1


@pytest.mark.parametrize(("was", "now", "line"), [(NORTH, BOTH, ("north",)), (BOTH, NORTH, ())])
def test_an_announcement_is_promised_the_same_on_the_circuit_that_stays(was, now, line):
    before = ledger_of(was)
    promise = before.announce(wish(size_bytes=10**9), ("base20", "base21"), "arch", NOW)
    ledger = restored(before, now)
    fresh = ledger_of(now).announce(wish(size_bytes=10**9), ("base20", "base21"), "arch", NOW)
    kept = ledger.announcements["image"]
    assert [flow.path for flow in kept.flows] == [(host, "ls1", *line, "ch1", "arch") for host in ("base20", "base21")]
    assert (kept.flows, kept.need) == (fresh.flows, fresh.need), "as if it had been announced there"
    assert kept.rates == promise.rates
    assert len(ledger.calendar) == len(before.calendar)
    assert ledger.changes(decided=False).announcements_before == {"image": promise}


def test_an_announcement_goes_by_the_first_circuit_that_has_room_and_where_it_is_told_from_others():
    slowly = wish(deadline_us=600 * S)
    ends = {"a_end": "base20", "z_end": "arch", "start_us": NOW, "rate_bps": 600_000_000}
    for before, asked_for, line in (
        (ledger_of(NORTH), slowly, "south"),
        (ledger_of(NORTH), wish(), "north"),
        (ledger_of(NORTH, asked(**ends)), slowly, "north"),
    ):
        before.announce(asked_for, ("base20",), "arch", NOW)
        kept = restored(before, SOUTH_FIRST).announcements["image"]
        assert kept.flows[0].path == ("base20", "ls1", line, "ch1", "arch")


@pytest.mark.parametrize(("was", "now", "line"), [(NORTH, BOTH, ("north",)), (BOTH, NORTH, ())])
def test_an_announcement_moves_with_the_reservation_that_it_draws_on(was, now, line):
    before = ledger_of(was, asked(start_us=NOW))
    before.tick(NOW)
    promise = before.announce(wish(size_bytes=10**9), ("base20",), "arch", NOW)
    assert promise.pool == "0"
    kept = restored(before, now).announcements["image"]
    assert kept.flows[0].path == ("base20", "ls1", *line, "ch1", "arch")
    assert (kept.pool, kept.rates, kept.need) == ("0", promise.rates, promise.need)
    lost = restored(before, now, without="0").announcements["image"]
    assert (lost.pool, lost.rates, lost.flows[0].path) == ("", (), kept.flows[0].path)


SLOW = {"start_us": NOW, "rate_bps": 300_000_000}


@pytest.mark.parametrize("left", ["north", "south"])
def test_an_announcement_goes_on_by_the_path_that_is_left_to_the_reservation_that_it_draws_on(left):
    circuits = section_of(BOTH)["circuits"]
    three = with_circuits(BOTH, *circuits, "third", third=circuits["south"] | PORTS)
    before = ledger_of(three, asked(**SLOW, constraints=Constraints(exclude=("third",), backup=True)))
    before.tick(NOW)
    promise = before.announce(wish(size_bytes=10**9, deadline_us=60 * S), ("base20",), "arch", NOW)
    assert (promise.pool, promise.flows[0].path[2]) == ("0", "north")
    for network, line in ((with_circuits(three, left, "third"), (left,)), (with_circuits(BOTH, left), ())):
        ledger = restored(before, network)
        assert ledger.reservations["0"].path == ("ls1", *line, "ch1")
        (kept,) = ledger.announcements.values()
        assert (kept.pool, kept.rates) == ("0", promise.rates)
        assert kept.flows[0].path == ("base20", "ls1", *line, "ch1", "arch")
        assert not ledger.ended.lately


def test_an_announcement_has_lapsed_where_what_it_draws_on_does_not_lead_to_its_hosts():
    section = section_of(BOTH)
    before = ledger_of(BOTH, asked(**SLOW, constraints=Constraints(backup=True)))
    before.tick(NOW)
    assert before.announce(wish(size_bytes=10**9, deadline_us=60 * S), ("base20",), "arch", NOW).pool == "0"
    hosts = section["sites"]["la-serena"]["hosts"]
    section["sites"]["la-serena"]["hosts"] = {name: one for name, one in hosts.items() if name != "base20"}
    ledger = restored(before, described(section | {"circuits": {"south": section["circuits"]["south"]}}))
    assert ledger.reservations["0"].state is not FAILED
    assert [one.ending for one in ledger.ended.lately.values()] == [Ending.LAPSED]


def test_an_announcement_over_a_circuit_that_is_gone_has_lapsed():
    before = ledger_of(BOTH)
    before.down = frozenset({"north"})
    before.announce(wish(), ("base20",), "arch", NOW)
    ledger = restored(before, NORTH)
    assert not ledger.announcements
    (ended,) = ledger.changes(decided=False).gone
    assert (ended.announcement.announcement_id, ended.ending) == ("image", Ending.LAPSED)


def test_lanes_keep_their_parts_when_one_of_their_circuits_is_no_longer_alone():
    two = loaded(FILES["two-switches"])
    circuits = section_of(two)["circuits"]
    other = circuits["leased"] | {"a": {"switch": "ts1", "port": "ts1-o"}, "z": {"switch": "ts2", "port": "ts2-o"}}
    beside = circuits["leased"] | {"a": {"switch": "ts0", "port": "ts0-b"}, "z": {"switch": "ts2", "port": "ts2-b"}}
    was = with_circuits(two, *circuits, "other", other=other)
    before = ledger_of(was)
    promise = before.announce(replace(wish(framing=was.framing), lanes=2), ("ts-a",), "ts-c", NOW)
    assert len(promise.lanes) == 2
    kept = restored(before, with_circuits(was, *circuits, "other", "beside", beside=beside)).announcements["image"]
    assert [flow.path[1:-1] for flow in kept.flows] == [("ts0", "leased", "ts2"), ("ts1", "ts2")]
    assert [lane.rates for lane in kept.lanes] == [lane.rates for lane in promise.lanes]
    assert kept.need == kept.lanes[0].need != promise.need
    assert kept.lanes[1] == promise.lanes[1]


def test_what_the_clock_has_done_to_a_promise_that_moved_is_not_undone_when_all_is_read_again():
    before = ledger_of(NORTH, asked(start_us=NOW + S))
    first, again = restored(before, BOTH), restored(before, BOTH)
    first.tick(NOW + S)
    first.happened("0", LifecycleEvent.UP, NOW + S)
    again.go_on_from(first, NOW + S)
    assert again.reservations == first.reservations
    assert again.changes(decided=False).before == before.reservations
