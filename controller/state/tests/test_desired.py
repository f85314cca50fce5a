"""The desired plan: the same for the same wishes and reports, and another only for what it depends on."""

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from controller.plan.admission import Request
from controller.plan.clock import Instant
from controller.plan.faults import PlaceFault
from controller.plan.ledger import Created
from controller.plan.lifecycle import LifecycleEvent
from controller.plan.plan import Plan
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import flow
from controller.site import Site
from controller.state.desired import basis, demand_now, desired_plan
from controller.state.installed import Installed
from controller.state.value import SiteState, first_state, must_replan, replanned, with_lines_noted
from controller.tests.fakes import ELAPSED_US, START_US, ready_site, value_of
from controller.tests.fakes import image as image_request
from mininet_tests.testing.networks import chile_illinois_2
from topology.protocol import FlowClass
from topology.telemetry import Telemetry

NETWORK = chile_illinois_2()
STANDING = tuple(
    flow(flow_class, host, network=NETWORK)
    for flow_class, host in ((FlowClass.PREDICTABLE, "base22"), (FlowClass.BACKGROUND, "base23"))
)
SITE = Site(NETWORK, DEFAULT_POLICY, STANDING, 300)
HOSTS = [host.name for host in SITE.network.hosts]
PORTS = {"north": (1, 8), "south": (1, 9)}
HOUR_US = 3_600_000_000
NOW = Instant(START_US, ELAPSED_US)

reservations = st.lists(
    st.tuples(
        st.sampled_from(["base20", "base21"]),
        st.sampled_from([FlowClass.URGENT, FlowClass.BACKGROUND]),
        st.integers(10**6, 10**8),
    ),
    max_size=4,
)


def state_with(promised) -> SiteState:
    """A state in which some reservations have begun, as a new process would make it."""
    state = first_state(SITE, NOW, term=1)
    ledger = state.wished.ledger
    for number, (host, flow_class, rate_bps) in enumerate(promised):
        name = f"r{number}"
        request = Request(host, "arch", flow_class, rate_bps, START_US, START_US + HOUR_US)
        ledger.hold(request, Created(name, START_US))
        if name in ledger.reservations:
            ledger.happened(name, LifecycleEvent.COMMIT, START_US)
    ledger.tick(START_US)
    return state


def plan_of_state(state: SiteState, epoch: int = 2, now: Instant = NOW) -> Plan:
    """The plan that is desired in a state."""
    return desired_plan(SITE, state.installed, epoch, demand_now(SITE, state.wished, state.reported, now))


@settings(max_examples=40, deadline=None)
@given(promised=reservations)
def test_the_same_wishes_and_reports_come_to_the_same_plan(promised):
    one, other = state_with(promised), state_with(promised)
    assert one.wished.ledger is not other.wished.ledger
    assert plan_of_state(one) == plan_of_state(other) == plan_of_state(one)
    made_of, again = (basis(SITE, s.wished, s.reported, Installed(), NOW) for s in (one, other))
    assert made_of == again


@settings(max_examples=40, deadline=None)
@given(
    promised=reservations,
    host=st.sampled_from(HOSTS),
    confirmed=st.integers(0, 2**50),
    doubts=st.integers(0, 9),
    dpids=st.frozensets(st.integers(1, 9), max_size=3),
    error=st.text(max_size=5),
)
def test_what_a_plan_does_not_depend_on_does_not_change_it(promised, host, confirmed, doubts, dpids, error):
    state = state_with(promised)
    plan, made_of = plan_of_state(state), basis(SITE, state.wished, state.reported, Installed(), NOW)
    agent = state.reported.hosts[host]._replace(
        kernel=f"6.{doubts}",
        confirmed_epoch=confirmed,
        confirmed_us=confirmed,
        telemetry=Telemetry(2, 250, ()),
        telemetry_us=confirmed,
    )
    reported = replace(state.reported.with_host(host, agent), doubts=doubts, switches_back=dpids, database_error=error)
    another = replace(state, reported=reported, installed=Installed(plan, plan, 2), sleeping_until_us=confirmed)
    assert plan_of_state(another) == plan
    assert basis(SITE, another.wished, another.reported, Installed(), NOW) == made_of
    assert replanned(SITE, another, NOW).desired.plan == replanned(SITE, state, NOW).desired.plan


@settings(max_examples=20, deadline=None)
@given(promised=reservations, epoch=st.integers(2, 2**50))
def test_the_epoch_is_but_a_number_on_it(promised, epoch):
    state = state_with(promised)
    assert replace(plan_of_state(state, epoch), epoch=2) == plan_of_state(state)


def test_planning_anew_without_news_is_the_same_state():
    state = replanned(SITE, state_with([("base20", FlowClass.URGENT, 10**7)]), NOW)
    assert replanned(SITE, state, NOW) is state


@pytest.mark.parametrize("wants", [True, False])
def test_what_a_host_wants_to_send_changes_the_plan_of_a_watched_flow_alone(wants):
    site = ready_site()
    site.announce(image_request())
    state = value_of(site.state)
    host = state.reported.hosts["base20"]._replace(wants={"image/base20": wants, "unknown": True})
    reported = state.reported.with_host("base20", host)
    demands = (demand_now(site.state.site, state.wished, r, NOW) for r in (state.reported, reported))
    plans = (desired_plan(site.state.site, Installed(), 2, demand) for demand in demands)
    before, after = ({e.flow.name: e.frame_bps for e in plan.entries} for plan in plans)
    assert (after != before) is wants
    assert (after["image/base20"] > before["image/base20"]) is wants


def with_dead(state, *circuits):
    """The state when the lines of circuits are said to be dead."""
    lines = state.reported.lines
    for circuit in circuits:
        lines = lines.said(circuit, PORTS[circuit], NOW.elapsed_us, is_live=False)
    return replace(state, reported=replace(state.reported, lines=lines))


def test_a_line_that_dies_puts_the_prepared_plan_in_force_with_a_newer_epoch():
    state = first_state(SITE, NOW, term=1)
    ready = replace(state.desired.plan, down=frozenset({"north"}))
    prepared = replace(state.desired, prepared={"north": ready}, prepared_for=state.desired.basis)
    died = with_dead(replace(state, desired=prepared), "north")
    assert must_replan(SITE, died, NOW)
    noted, news = with_lines_noted(SITE, died, NOW)
    assert [(circuit, str(line)) for circuit, line in news] == [("north", "down")]
    assert noted.desired.plan == replace(ready, epoch=state.desired.next_epoch)
    assert noted.desired.prepared == {}
    assert noted.desired.basis == replace(state.desired.basis, down=frozenset({"north"}))
    assert with_lines_noted(SITE, noted, NOW) == (noted, ())


def test_a_plan_that_was_prepared_beside_other_faults_is_not_put_in_force():
    state = first_state(SITE, NOW, term=1)
    ready = replace(state.desired.plan, down=frozenset({"north"}))
    prepared = replace(state.desired, prepared={"north": ready}, prepared_for=state.desired.basis)
    silent = state.installed.with_faults([PlaceFault("switch a", "it does not answer")])
    died = with_dead(replace(state, desired=prepared, installed=silent), "north")
    noted, news = with_lines_noted(SITE, died, NOW)
    assert [(circuit, str(line)) for circuit, line in news] == [("north", "down")]
    assert noted.desired == prepared
    assert must_replan(SITE, noted, NOW)


@pytest.mark.parametrize("at_once", [True, False])
def test_the_plan_for_a_death_is_not_put_in_force_when_another_circuit_has_died_with_it(at_once):
    state = first_state(SITE, NOW, term=1)
    plans = {name: replace(state.desired.plan, down=frozenset({name})) for name in PORTS}
    ready = replace(state, desired=replace(state.desired, prepared=plans, prepared_for=state.desired.basis))
    if at_once:
        noted, _ = with_lines_noted(SITE, with_dead(ready, "north", "south"), NOW)
        assert noted.desired == ready.desired
    else:
        first, _ = with_lines_noted(SITE, with_dead(ready, "north"), NOW)
        noted, _ = with_lines_noted(SITE, with_dead(first, "south"), NOW)
        assert noted.desired == first.desired
    assert must_replan(SITE, noted, NOW)
    assert replanned(SITE, noted, NOW).desired.plan.down == {"north", "south"}


def test_reading_the_ledger_anew_is_another_version_even_if_nothing_moved():
    state = first_state(SITE, NOW, term=1)
    restored = replace(state, wished=replace(state.wished, ledger=SITE.ledger(), restored=1))
    assert must_replan(SITE, restored, NOW)
    assert not must_replan(SITE, replanned(SITE, restored, NOW), NOW)
