"""What is announced on a reservation with a backup, while the circuit of its first path is dead."""

import pytest

from controller.plan.admission import Reason, Refused, Request
from controller.plan.invariant import violations
from controller.plan.ledger import Created
from controller.plan.reservations import Constraints
from controller.promise_watch import PromiseWatch
from controller.tests.fakes import START_US, FakeSite, image
from mininet_tests.testing.networks import chile_illinois_2
from topology.protocol import FlowClass

S = 1_000_000
TWO = chile_illinois_2()
NORTH_AT_LS1, SOUTH_AT_LS1 = (1, 8), (1, 9)
POOL_BPS = 400_000_000
ONE = image(senders=("base20",), size_bytes=1_000_000_000)


def reserve(site, name, rate_bps, constraints, flow_class=FlowClass.URGENT, start_us=START_US + S):
    """Reserve between the sites."""
    asked = Request("la-serena", "champaign", flow_class, rate_bps, start_us, START_US + 3600 * S, constraints)
    site.use_cases.hold(lambda _: asked, lambda now_us: Created(name, now_us)).saved.result()
    site.use_cases.commit(name).saved.result()


@pytest.fixture
def site():
    """A site with urgent bandwidth over either circuit in force, and next to nothing else for sale on both."""
    site = FakeSite(TWO, (), return_after_us=S)
    site.attach_all()
    site.converge()
    reserve(site, "pool", POOL_BPS, Constraints(backup=True))
    for line, rate_bps in (("north", 530_000_000), ("south", 60_000_000)):
        reserve(site, line, rate_bps, Constraints(include=(line,)), FlowClass.BACKGROUND)
    site.clock.now_us += S
    for _ in range(2):
        site.converge()
    return site


def dies(site, *ports):
    """Let circuits die, and the site come to rest."""
    for port in ports:
        site.port_said(*port, is_live=False)
    for _ in range(2):
        site.converge()


def sends(site, *hosts):
    """Let hosts see that they can send, once what they are promised begins."""
    site.clock.now_us += S
    site.converge()
    site.demand(*hosts)
    for _ in range(2):
        site.converge()


def planned(site):
    """By sender, the line that the desired plan has for it, and what it is promised there, Mbit/s rounded."""
    return {e.flow.host: (e.flow.path[2], round(e.flow.floor_bps / 10**6)) for e in site.value.desired.plan.entries}


def told(site, since):
    """The names of the events since one that speak of an announcement."""
    return [e.name for e in site.state.events.since(since).events if e.name.startswith("announcement.")]


def test_what_draws_on_it_goes_by_the_backup_in_the_room_that_was_booked_there(site):
    site.announce(ONE)
    sends(site, "base20")
    assert planned(site) == {"base20": ("north", 400)}
    dies(site, NORTH_AT_LS1)
    assert planned(site) == {"base20": ("south", 400)}
    assert not violations(site.reports.view().layers)


def test_the_plan_that_is_ready_for_the_death_has_that_room_too(site):
    site.announce(ONE)
    sends(site, "base20")
    (entry,) = site.value.desired.prepared["north"].entries
    assert (entry.flow.path[2], round(entry.flow.floor_bps / 10**6)) == ("south", 400)


@pytest.mark.parametrize("wants", [True, False], ids=["it sends", "it has nothing to send yet"])
def test_a_promise_that_the_backup_keeps_is_not_said_to_be_late(site, wants):
    site.announce(ONE)
    sends(site, *(("base20",) if wants else ()))
    since = site.state.events.last
    dies(site, NORTH_AT_LS1)
    PromiseWatch(site.state).look()
    assert told(site, since) == []


def test_a_promise_that_is_made_meanwhile_counts_with_the_round_trip_of_the_backup_and_is_carried_by_it(site):
    before = site.announce(ONE)
    site.use_cases.forget(before.announcement_id).saved.result()
    dies(site, NORTH_AT_LS1)
    then = site.announce(ONE)
    assert (before.pool, then.pool) == ("pool", "pool")
    longer_us = TWO.path_rtt_us(("base20", "ls1", "south", "ch1", "arch")) - TWO.path_rtt_us(before.flows[0].path)
    took_us = [one.promised_us - one.announced_us for one in (before, then)]
    assert took_us[1] - took_us[0] == 4 * longer_us
    since = site.state.events.last
    sends(site, "base20")
    PromiseWatch(site.state).look()
    assert planned(site) == {"base20": ("south", 400)}
    assert told(site, since) == []


def test_two_of_one_pair_from_before_and_after_the_death_are_both_carried_by_the_backup(site):
    first = image("first", senders=("base20",), size_bytes=1_000_000_000, deadline_us=60 * S)
    second = image("second", senders=("base20",), size_bytes=1_000_000_000, deadline_us=60 * S)
    site.announce(first)
    dies(site, NORTH_AT_LS1)
    promise = site.announce(second)
    assert not isinstance(promise, Refused), promise
    sends(site, "base20")
    floors_bps = [known.floor_bps(site.clock.now_us) for known in site.value.wished.ledger.announcements.values()]
    assert planned(site) == {"base20": ("south", round(sum(floors_bps) / 10**6))}


def test_it_goes_back_when_the_circuit_is_back(site):
    dies(site, NORTH_AT_LS1)
    site.announce(ONE)
    site.port_said(*NORTH_AT_LS1, is_live=True)
    sends(site, "base20")
    assert planned(site) == {"base20": ("north", 400)}


def test_a_reservation_whose_only_path_is_dead_is_not_drawn_on():
    site = FakeSite(TWO, (), return_after_us=S)
    site.attach_all()
    reserve(site, "pool", 900_000_000, Constraints(include=("north",)))
    site.clock.now_us += S
    for _ in range(2):
        site.converge()
    dies(site, NORTH_AT_LS1)
    promise = site.announce(ONE)
    assert (promise.pool, promise.flows[0].path[2]) == ("", "south")


def test_with_both_dead_an_announcement_is_refused_and_told_that_nothing_goes_there(site):
    dies(site, NORTH_AT_LS1, SOUTH_AT_LS1)
    no = site.announce(ONE)
    assert isinstance(no, Refused)
    why = "nothing goes by north, south now, and no other way leads from base20 to arch"
    assert (no.reason, str(no)) == (Reason.CAPACITY_UNAVAILABLE, why)


def test_what_draws_on_it_goes_by_the_backup_while_its_first_circuit_is_bought_and_not_up_yet():
    site = FakeSite(TWO, (), lead_us={"north": 150 * S})
    site.attach_all()
    reserve(site, "pool", POOL_BPS, Constraints(backup=True, include=("north",)), start_us=START_US + 151 * S)
    site.clock.now_us += 151 * S
    for _ in range(2):
        site.converge()
    known = site.reservation("pool")
    assert [path[1] for path in known.paths] == ["north", "south"]
    assert site.announce(ONE).pool == "pool"
    sends(site, "base20")
    assert planned(site) == {"base20": ("south", 400)}
