"""A reservation whose circuit dies, or is worked on, is led by no way that it has asked not to be led by."""

import pytest

from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.maintenance import Maintenance
from controller.plan.reservations import Constraints
from controller.tests.fakes import START_US, FakeSite, image
from mininet_tests.testing.networks import chile_illinois_2, described
from topology.network_text import section_of
from topology.protocol import FlowClass

S = 1_000_000
PORTS = {"north": 8, "south": 9, "east": 10}
HOSTS, SITES = ("base20", "arch"), ("la-serena", "champaign")
NOT_BY_SOUTH = [Constraints(exclude=("south",)), Constraints(max_rtt_us=190_000)]  # north has 180 ms, south 200 ms


def three():
    """Two circuits, and a third one, ``east``, which is further than both."""
    section = section_of(chile_illinois_2())
    of_switch = {"a": "ls1", "z": "ch1"}
    ends = {end: {"switch": name, "port": f"{name}-east", "number": 10} for end, name in of_switch.items()}
    section["circuits"]["east"] = {"rate": "1 Gbit/s", "delay": "110 ms"} | ends
    return described(section)


def reserved(constraints, ends=HOSTS, network=None):
    """A site with a reservation ``r`` in force, by the nearest circuit."""
    site = FakeSite(network or chile_illinois_2(), standing=(), return_after_us=S)
    site.attach_all()
    site.wire()
    asked = Request(*ends, FlowClass.URGENT, 2 * 10**8, START_US + S, START_US + 3600 * S, constraints)
    site.use_cases.hold(lambda _: asked, lambda now_us: Created("r", now_us)).saved.result()
    site.use_cases.commit("r").saved.result()
    passes(site, S)
    assert state(site) == (ReservationState.ACTIVE, "")
    return site


def passes(site, us=0):
    """Let time pass, and the site come to rest."""
    site.clock.now_us += us
    for _ in range(2):
        site.converge()


def dies(site, circuit):
    """Let a circuit die."""
    site.port_said(1, PORTS[circuit], is_live=False)
    passes(site)


def state(site):
    """How the reservation is, and why."""
    known = site.use_cases.reservation("r")
    return known.state, known.reason


def ways(site):
    """The lines that the desired plan's flows take, by sender."""
    return {e.flow.host: e.flow.path[2] for e in site.value.desired.plan.entries}


@pytest.mark.parametrize("asked", NOT_BY_SOUTH)
def test_it_waits_while_its_circuit_is_dead_and_is_in_force_again_when_it_is_back(asked):
    site = reserved(asked)
    seen = site.state.events.last
    dies(site, "north")
    assert ways(site) == {}
    assert state(site) == (ReservationState.PROVISIONING, "north: the line is down")
    site.port_said(1, PORTS["north"], is_live=True)
    passes(site, S)
    assert ways(site) == {"base20": "north"}
    assert state(site) == (ReservationState.ACTIVE, "")
    told = [e.name for e in site.state.events.since(seen).events if e.name.startswith("reservation.")]
    assert told == ["reservation.lost", "reservation.active"]


def test_it_waits_while_one_of_its_two_paths_is_worked_on_and_the_other_is_dead():
    site = reserved(Constraints(exclude=("south",), backup=True), network=three())
    one = Maintenance("m", "north", site.clock() + S, site.clock() + 60 * S)
    site.use_cases.maintaining.plan(lambda _: one, only_look=False, force=True).saved.result()
    passes(site, S)
    assert (ways(site), state(site)) == ({"base20": "east"}, (ReservationState.ACTIVE, ""))
    dies(site, "east")
    assert (ways(site), state(site)[0]) == ({}, ReservationState.PROVISIONING)
    passes(site, 60 * S)
    assert (ways(site), state(site)) == ({"base20": "north"}, (ReservationState.ACTIVE, ""))


@pytest.mark.parametrize("asked", [Constraints(exclude=("east",)), Constraints(max_rtt_us=200_000), Constraints()])
def test_it_goes_by_the_other_circuit_where_that_is_as_it_has_asked(asked):
    site = reserved(asked, network=three())
    dies(site, "north")
    assert (ways(site), state(site)) == ({"base20": "south"}, (ReservationState.ACTIVE, ""))


def test_it_goes_by_a_further_circuit_if_it_excludes_the_nearest_of_those_that_are_left():
    site = reserved(Constraints(exclude=("south",)), network=three())
    dies(site, "north")
    assert (ways(site), state(site)) == ({"base20": "east"}, (ReservationState.ACTIVE, ""))


@pytest.mark.parametrize("asked", NOT_BY_SOUTH)
def test_what_draws_on_it_waits_with_it(asked):
    site = reserved(asked, SITES)
    assert site.announce(image(senders=("base20",), size_bytes=1_000_000_000, deadline_us=60 * S)).pool == "r"
    passes(site, S)
    site.demand("base20")
    passes(site)
    assert ways(site) == {"base20": "north"}
    dies(site, "north")
    assert ways(site) == {}
