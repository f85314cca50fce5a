"""What is found once for all promises, or remembered, is what a look at everything for each of them finds."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.admission import Refused, Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.tests.factories import flow
from controller.state import carried
from controller.state.carried import SettledWatch, lacks, reservation_obstacles, unsettled
from controller.state.layers import acting, layers
from controller.state.moment import Moment
from controller.state.reported import PlaceAlarm
from controller.state.value import flows, must_replan
from controller.tests.fakes import LS1, FakeSite, image, ready_site
from mininet_tests.testing.networks import chile_illinois_2, two_lanes
from topology.protocol import FlowClass

HOSTS = ["base20", "base21", "base22", "base23", "arch"]
PORTS = [(1, 8), (2, 8), (1, 9)]
S = 1_000_000
TWO = chile_illinois_2()
STANDING = (flow(FlowClass.PREDICTABLE, "base22", network=TWO), flow(FlowClass.BACKGROUND, "base23", network=TWO))


@dataclass(frozen=True)
class AtEachLook(Moment):
    """The same, found as it was at first: all entries, and all that a plan is made of, for each promise."""

    @property
    def ways(self):
        """The path of each flow, the first that is found."""
        entries = self.state.desired.plan.entries
        return {
            name: next(e.flow.path for e in entries if name in e.flow.names) for e in entries for name in e.flow.names
        }

    @property
    def is_current(self):
        """Whether the plan need not be made anew."""
        return not must_replan(self.site, self.state, self.now)


def held(site, number, host, rate_bps, seconds, target="arch"):
    """Reserve from now on."""

    def asked(now_us):
        return Request(host, target, FlowClass.URGENT, rate_bps, now_us, now_us + seconds * S)

    answer = site.use_cases.hold(asked, lambda now_us: Created(f"r{number}", now_us))
    answer.saved.result()
    if not isinstance(answer.value, Refused):
        site.use_cases.commit(f"r{number}").saved.result()


def watched(site, state, now):
    """The flows of each host that are asked whether they send, found anew."""
    found = flows(site, state, now)
    by_host = {f.host: tuple(g.name for g in found if g.host == f.host and g.standby_bps) for f in found}
    return {host: names for host, names in by_host.items() if names}


def used_bps(state, hop, layer, elapsed_us):
    """What hosts may send over a link, by a look at all entries; or all that meters let through, if nobody knows."""
    if TWO.link(*hop).circuit in state.desired.plan.down:
        return {}
    if not state.installed.hosts_epoch or state.reported.unknown_until_us(elapsed_us) is not None:
        return dict.fromkeys(FlowClass, 0) | layer.meters_bps
    crossing = [e for e in acting(state.reported, state.installed, elapsed_us) if hop in e.flow.links]
    return {c: sum(e.frame_bps for e in crossing if e.flow.flow_class is c) for c in FlowClass}


steps = st.one_of(
    st.tuples(st.just("announce"), st.sampled_from([10**6, 10**9])),
    st.tuples(st.just("hold"), st.sampled_from(HOSTS[:4]), st.sampled_from([10**6, 2 * 10**8]), st.integers(1, 60)),
    st.tuples(st.sampled_from(["attach", "gone"]), st.sampled_from(HOSTS)),
    st.tuples(st.just("port"), st.sampled_from(PORTS), st.booleans()),
    st.tuples(st.just("switch"), st.booleans()),
    st.tuples(st.just("passes"), st.integers(0, 40)),
    st.tuples(st.sampled_from(["converge", "tick", "look"])),
)


def done(site, number, step):
    """Let something happen."""
    match step:
        case "hold", host, rate_bps, seconds:
            held(site, number, host, rate_bps, seconds)
        case "announce", size_bytes:
            site.announce(image(f"image{number}", size_bytes=size_bytes))
        case "attach", host:
            site.attach(host)
        case "gone", host:
            site.reports.host_down(host)
        case "port", port, is_live:
            site.port_said(*port, is_live=is_live)
        case "switch", gone:
            site.switches.gone = gone
        case "passes", seconds:
            site.clock.now_us += seconds * S
        case ("converge",):
            site.converge()
        case ("tick",):
            site.use_cases.tick()


@settings(max_examples=50, deadline=None)
@given(st.lists(steps, min_size=4, max_size=12))
def test_whatever_happens_the_answers_are_those_of_a_look_at_everything(happening):
    site, watch = FakeSite(TWO, STANDING, return_after_us=S), SettledWatch()
    site.attach_all()
    site.converge()
    for number, step in enumerate([("hold", "base20", 10**6, 600), ("tick",), ("converge",), *happening]):
        done(site, number, step)
        with site.state.changed:
            whole = site.state.site, site.state.value, site.state.now()
            ours, theirs = Moment(*whole), AtEachLook(*whole)
            at_us = site.state.elapsed_us()
            for hop, layer in layers(*whole[:2], at_us).items():
                assert layer.hosts_bps == used_bps(site.value, hop, layer, at_us)
            assert site.reports._watched_flows() == watched(*whole)
            for known in site.state.wished.ledger.reservations.values():
                assert reservation_obstacles(ours, known) == reservation_obstacles(theirs, known)
            for known in site.state.wished.ledger.in_plan():
                assert lacks(ours, known) == lacks(theirs, known)
            assert unsettled(ours) == unsettled(theirs)
            assert watch.unsettled(ours) == unsettled(theirs)


@pytest.fixture
def site():
    """A site with an active reservation."""
    site = ready_site()
    held(site, 0, "base20", 10**8, 600)
    for _ in range(2):
        site.converge()
    assert site.value.wished.ledger.reservations["r0"].state is ReservationState.ACTIVE
    return site


@pytest.fixture
def looks(monkeypatch):
    """The reservations that somebody looks at."""
    seen, faults = [], carried.in_the_way
    monkeypatch.setattr(carried, "in_the_way", lambda *asked: seen.append(asked) or faults(*asked))
    return seen


def test_ticks_that_find_nothing_new_look_at_no_reservation(site, looks):
    for _ in range(3):
        site.clock.now_us += S
        site.use_cases.tick()
    assert len(looks) <= 1  # the first one sees that nothing is left


@pytest.mark.parametrize("happens", ["host", "switch", "announcement", "alarm"])
def test_whatever_changes_is_looked_at_by_the_next_tick(site, looks, happens):
    site.use_cases.tick()
    looks.clear()
    if happens == "host":
        site.reports.host_down("base20")
    elif happens == "switch":
        site.switch_reports.switch_down(LS1.dpid)
    elif happens == "alarm":
        with site.state.changed:
            alarms = {"ls1": (PlaceAlarm("does not answer", is_silent=True),)}
            site.state.put(reported=replace(site.state.reported, alarms=alarms))
    else:
        site.announce(image())
    site.use_cases.tick()
    assert looks


@pytest.mark.parametrize(("sender", "target"), [("base20", "arch"), ("base20.eth1", "arch"), ("arch", "base20.eth1")])
def test_a_reservation_is_not_carried_when_the_agent_of_an_interface_of_its_ends_is_gone(sender, target):
    site = ready_site(network=two_lanes())
    held(site, 0, sender, 10**8, 600, target)
    for _ in range(2):
        site.converge()
        site.use_cases.tick()
    assert site.reservation("r0").state is ReservationState.ACTIVE
    site.reports.host_down("base20")
    site.use_cases.tick()
    assert site.reservation("r0").state is ReservationState.PROVISIONING
    assert "base20: its agent is not connected" in [
        event.fields.get("why") for event in site.state.events.since(0).events
    ]
