"""A circuit that dies and returns, on a site without switches and agents."""

from dataclasses import replace
from itertools import groupby

import pytest

from controller.plan.admission import Request
from controller.plan.invariant import violations
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.reservations import Constraints
from controller.plan.tests.factories import flow
from controller.promise_watch import PromiseWatch
from controller.state.desired import plan_input
from controller.tests.fakes import ELAPSED_US, START_US, FakeSite, image
from mininet_tests.testing.networks import chile_illinois, chile_illinois_2, described
from topology.network_text import section_of
from topology.protocol import FlowClass

TWO = chile_illinois_2()
STANDING = (flow(FlowClass.PREDICTABLE, "base22", network=TWO), flow(FlowClass.BACKGROUND, "base23", network=TWO))
NORTH_AT_LS1, NORTH_AT_CH1, SOUTH_AT_LS1 = (1, 8), (2, 8), (1, 9)
RETURN_AFTER_US = 1_000_000
S = 1_000_000


@pytest.fixture
def site():
    """A site with two circuits whose plan is in force."""
    site = FakeSite(TWO, STANDING, return_after_us=RETURN_AFTER_US)
    site.attach_all()
    site.converge()
    return site


def names(site, since):
    """The events since one, without those of each step."""
    happened = site.state.events.since(since).events
    return [(e.name, dict(e.fields)) for e in happened if not e.name.startswith("transition.")]


def ways(site):
    """The lines that the desired plan's flows take, by sender."""
    return {e.flow.host: e.flow.path[2] for e in site.reports.view().desired.entries}


def test_when_a_circuit_dies_the_plan_that_was_ready_is_wanted_before_anything_is_computed(site):
    ready = site.value.desired.prepared["north"]
    site.port_said(*NORTH_AT_LS1, is_live=False)
    assert replace(site.value.desired.plan, epoch=ready.epoch) == ready
    assert ways(site) == {"base22": "south", "base23": "south"}


def test_the_plan_that_was_ready_is_what_is_planned_afterwards(site):
    site.announce(image())
    site.converge()
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    view = site.reports.view()
    with site.state.changed:
        wished, reported = site.state.wished, site.state.reported
        made_of = plan_input(site.state.site, wished, reported, frozenset({"north"}), site.clock.now_us)
    fresh = planned(view.desired.epoch, TWO, DEFAULT_POLICY, made_of)
    assert view.installed == view.desired == fresh
    assert not violations(view.layers)


def test_the_last_live_circuit_dies_and_is_back_before_anybody_has_planned(site):
    site.port_said(*SOUTH_AT_LS1, is_live=False)
    site.converge()
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.port_said(*NORTH_AT_LS1, is_live=True)
    site.converge()
    assert ways(site) == {"base22": "north", "base23": "north"}


def test_each_new_plan_has_its_own_ready_for_each_death(site):
    site.announce(image())
    prepared = site.value.desired.prepared
    assert {e.flow.host for e in prepared["north"].entries} == {"base20", "base21", "base22", "base23"}
    assert prepared.keys() == {"north", "south"}
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    assert site.value.desired.prepared.keys() == {"south"}
    assert site.value.desired.prepared["south"].entries == ()


def test_both_ends_of_a_cut_line_are_one_death_and_it_is_said_once(site):
    seen = site.state.events.last
    for port in (NORTH_AT_LS1, NORTH_AT_CH1):
        site.port_said(*port, is_live=False)
        site.converge()
    assert names(site, seen) == [("circuit.down", {"circuit": "north"})]


def test_a_circuit_that_returns_is_used_again_when_it_has_been_up_for_long_enough(site):
    before = ways(site)
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    seen = site.state.events.last
    site.port_said(*NORTH_AT_LS1, is_live=True)
    site.converge()
    assert ways(site) == {"base22": "south", "base23": "south"}
    assert site.reports.view().lines["north"] == "returning"
    with site.state.changed:
        assert site.state.due_us() == ELAPSED_US + RETURN_AFTER_US
    site.clock.now_us += RETURN_AFTER_US
    site.converge()
    assert ways(site) == before
    assert names(site, seen) == [("circuit.up", {"circuit": "north"})]


def test_a_host_whose_flow_moves_is_never_told_to_stop(site):
    site.hosts.sent.clear()
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    site.port_said(*NORTH_AT_LS1, is_live=True)
    site.clock.now_us += RETURN_AFTER_US
    site.converge()
    told = [told for host, told in site.hosts.sent if host == "base23"]
    assert len(told) >= 2
    assert all(one.entries for one in told)


def test_a_host_is_told_which_circuits_its_packets_cross_already_while_it_shrinks(site):
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    told = [told.entries[0].circuits for host, told in site.hosts.sent if host == "base22"]
    assert [ways for ways, _ in groupby(told)] == [("north",), ("north", "south"), ("south",)]


def test_a_port_that_belongs_to_no_circuit_changes_nothing(site):
    before = site.value.desired.plan
    site.port_said(1, 3, is_live=False)
    assert site.value.desired.plan is before


def test_where_there_is_no_other_circuit_the_flows_wait_for_the_one_there_is():
    site = FakeSite(chile_illinois())
    site.attach_all()
    site.converge()
    before, seen = site.value.desired.plan, site.state.events.last
    site.port_said(1, 9, is_live=False)
    site.converge()
    assert site.value.desired.plan == before
    assert names(site, seen) == [("circuit.down", {"circuit": "chile-illinois"})]


def test_a_promise_that_can_no_longer_be_kept_is_said_to_be_late_and_when_it_will_be_done(site):
    site.announce(image())
    site.converge()
    site.clock.now_us += 500_000
    seen = site.state.events.last
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.use_cases.tick()
    PromiseWatch(site.state).look()
    (_, late) = names(site, seen)
    assert late[0] == "announcement.late"
    assert late[1]["announcement"] == "image"
    assert late[1]["promised"] < late[1]["expected"]


@pytest.mark.parametrize(
    ("rate_bps", "state", "reason"),
    [
        (300_000_000, ReservationState.ACTIVE, ""),
        (600_000_000, ReservationState.PROVISIONING, "north: the line is down"),
    ],
    ids=["carried in full by the other", "more than the other has"],
)
def test_a_reservation_over_a_dead_circuit_is_active_only_while_it_is_carried_in_full(site, rate_bps, state, reason):
    asked = Request("base20", "arch", FlowClass.URGENT, rate_bps, START_US + 1_000_000, START_US + 10**9)
    site.use_cases.hold(lambda _: asked, lambda now_us: Created("r", now_us)).saved.result()
    site.use_cases.commit("r").saved.result()
    site.clock.now_us += 1_000_000
    for _ in range(2):
        site.converge()
    assert site.value.wished.ledger.reservations["r"].state is ReservationState.ACTIVE
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    known = site.value.wished.ledger.reservations["r"]
    assert (known.state, known.reason) == (state, reason)


def three():
    """That network with a third circuit, ``east``, which is further than both."""
    section = section_of(TWO)
    ends = {"a": {"switch": "ls1", "port": "ls1-east"}, "z": {"switch": "ch1", "port": "ch1-east"}}
    section["circuits"]["east"] = {"rate": "1 Gbit/s", "delay": "110 ms"} | ends
    return described(section)


@pytest.mark.parametrize("is_bought", [True, False], ids=["south is full", "south is not bought"])
def test_a_reservation_goes_on_by_the_circuit_that_has_room_for_it_though_another_is_nearer(is_bought):
    site = FakeSite(three(), (), lead_us={} if is_bought else {"south": 60_000_000})
    site.attach_all()
    ends = {"full": "base21", "r": "base20"} if is_bought else {"r": "base20"}
    for name, host in ends.items():
        constraints = Constraints(include=("south",)) if name == "full" else Constraints()
        times = START_US + 1_000_000, START_US + 10**9
        asked = Request(host, "arch", FlowClass.URGENT, 300_000_000, *times, constraints)
        site.use_cases.hold(lambda _, a=asked: a, lambda now_us, name=name: Created(name, now_us)).saved.result()
        site.use_cases.commit(name).saved.result()
    site.clock.now_us += 1_000_000
    for _ in range(2):
        site.converge()
    assert ways(site)["base20"] == "north"
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    assert ways(site)["base20"] == "east"
    assert {site.reservation(name).state for name in ends} == {ReservationState.ACTIVE}


def test_an_image_that_pauses_stays_on_the_circuit_that_it_was_led_to():
    network = three()
    site = FakeSite(network, ())
    site.attach_all()
    site.converge()
    wanted = Constraints(include=("south",))
    asked = Request("la-serena", "champaign", FlowClass.URGENT, 300_000_000, START_US, START_US + 60 * S, wanted)
    site.use_cases.hold(lambda _: asked, lambda now_us: Created("full", now_us)).saved.result()
    site.use_cases.commit("full").saved.result()
    promise = site.announce(image(size_bytes=10**9, senders=("base20",)))
    site.converge()
    site.demand("base20")
    site.clock.now_us = promise.rates[0].start_us
    site.converge()
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    led = ways(site)
    assert led == {"base20": "east"}
    for wants in (False, True):
        site.demand("base20", wants=wants)
        site.converge()
        assert ways(site) == led


def test_an_announcement_that_comes_while_a_circuit_is_down_is_promised_on_the_other(site):
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    promise = site.announce(image())
    assert {f.path[2] for f in promise.flows} == {"south"}


def test_no_layer_lets_through_more_than_the_next_while_a_circuit_dies_and_returns(site):
    seen = site.state.events.last
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    site.port_said(*NORTH_AT_LS1, is_live=True)
    site.clock.now_us += RETURN_AFTER_US
    site.converge()
    assert [name for name, _ in names(site, seen)] == ["circuit.down", "circuit.up"]


def says(site, *said):
    """Let ports say that they are live, or not: (port, live); the site comes to rest after each."""
    for port, is_live in said:
        site.port_said(*port, is_live=is_live)
        site.converge()


def test_with_both_dead_the_first_that_is_back_is_used_at_once(site):
    says(site, (NORTH_AT_LS1, False), (SOUTH_AT_LS1, False))
    assert ways(site) == {}
    seen = site.state.events.last
    says(site, (SOUTH_AT_LS1, True))
    assert ways(site) == {"base22": "south", "base23": "south"}
    assert site.reports.view().lines["south"] == "up"
    assert names(site, seen) == [("circuit.up", {"circuit": "south"})]


def test_the_second_that_is_back_has_to_prove_itself_while_the_first_is_there(site):
    says(site, (NORTH_AT_LS1, False), (SOUTH_AT_LS1, False), (SOUTH_AT_LS1, True), (NORTH_AT_LS1, True))
    assert ways(site) == {"base22": "south", "base23": "south"}
    site.clock.now_us += RETURN_AFTER_US
    site.converge()
    assert ways(site) == {"base22": "north", "base23": "north"}


def test_one_that_has_yet_to_prove_itself_is_used_at_once_when_the_other_one_dies(site):
    says(site, (NORTH_AT_LS1, False), (NORTH_AT_LS1, True))
    assert ways(site) == {"base22": "south", "base23": "south"}
    seen = site.state.events.last
    site.hosts.sent.clear()
    says(site, (SOUTH_AT_LS1, False))
    assert ways(site) == {"base22": "north", "base23": "north"}
    assert names(site, seen) == [("circuit.down", {"circuit": "south"}), ("circuit.up", {"circuit": "north"})]
    assert all(told.entries for host, told in site.hosts.sent if host == "base23")  # it is not told to stop between


def test_flows_leave_a_circuit_that_is_back_alone_and_flaps_only_when_it_is_dead(site):
    says(site, (NORTH_AT_LS1, False), (SOUTH_AT_LS1, False))
    seen = []
    for port, is_live in ((NORTH_AT_LS1, True), (NORTH_AT_LS1, False), (NORTH_AT_LS1, True), (SOUTH_AT_LS1, True)):
        says(site, (port, is_live))
        assert not violations(site.reports.view().layers)
        seen.append(set(ways(site).values()))
    assert seen == [{"north"}, set(), {"north"}, {"north"}]
    seen.clear()
    for is_live in (False, True, False, True):  # the other one takes over and stays
        says(site, (NORTH_AT_LS1, is_live))
        seen.append(set(ways(site).values()))
    assert seen == [{"south"}] * 4


def test_a_circuit_without_another_beside_it_proves_itself_for_its_flows_never_left_it():
    site = FakeSite(chile_illinois(), return_after_us=RETURN_AFTER_US)
    site.attach_all()
    site.converge()
    before, seen = site.value.desired.plan, site.state.events.last
    says(site, *(((1, 9), is_live) for is_live in (False, True, False, True)))
    assert site.value.desired.plan == before
    assert names(site, seen) == [("circuit.down", {"circuit": "chile-illinois"})]


def test_a_circuit_whose_way_round_is_dead_too_is_not_well(site):
    site.wire()
    dpids = frozenset({1, 2})
    says(site, (NORTH_AT_LS1, False))
    assert site.reports.troubles(dpids) == ()
    says(site, (SOUTH_AT_LS1, False))
    cut = [f"{name}: the line is down, and there is no way round it" for name in ("north", "south")]
    assert [str(one) for one in site.reports.troubles(dpids)] == cut
    says(site, (SOUTH_AT_LS1, True))
    assert site.reports.troubles(dpids) == ()
