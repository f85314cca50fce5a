"""A plan at all switches of a site: each holds what it is to hold, and one that has that already is not looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.faults import OPEN
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, GIGABIT, IMAGE, RAW_IMAGES, any_network, demands_in, plan_of
from controller.plan.transitions import lesser_of
from controller.plan.wiring import with_port_numbers
from controller.security.tls import ShownEnd
from controller.site import Site
from controller.southbound.openflow import switch_book
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.meter_numbers import MeterNumbers
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.tests.played_switch import TERM, PlayedDatapath, at_port, connected
from controller.southbound.openflow.tests.recorder import RecordedSwitches
from controller.southbound.site_switches import SiteSwitches
from topology.network import Network


@contextmanager
def played(network: Network) -> Iterator[tuple[SiteSwitches, SwitchSessions, dict[str, PlayedDatapath]]]:
    """The switches of a network, each played by the test."""
    sessions = SwitchSessions(RecordedSwitches(), TERM)
    try:
        datapaths = {switch.name: connected(sessions, id=switch.dpid) for switch in network.switches}
        yield SiteSwitches(Site(network, DEFAULT_POLICY, (), 300), sessions, {}), sessions, datapaths
    finally:
        sessions.close()


class PlayedDatabase:
    """A switch's database that has shown a certificate, or none."""

    def __init__(self):
        self.shown = None

    def certificate(self):
        """What it has shown."""
        return self.shown


def test_of_the_certificates_that_a_switch_shows_the_last_is_the_one_that_it_has():
    database, other, (ls1, ch1) = PlayedDatabase(), PlayedDatabase(), GIGABIT.switches
    sessions = SwitchSessions(RecordedSwitches(), TERM)
    site = Site(GIGABIT, DEFAULT_POLICY, (), 300)
    switches = SiteSwitches(site, sessions, {ls1.name: database, ch1.name: other})
    assert switches.certificates() == {}
    called = connected(sessions, id=ls1.dpid, certificate=ShownEnd(10, 40))
    connected(sessions, id=0x99, certificate=ShownEnd(10, 40))  # not of the network
    database.shown, other.shown = (ls1.dpid, ShownEnd(20, 30)), (ch1.dpid, ShownEnd(10, 50))
    assert switches.certificates() == {ls1.name: 30, ch1.name: 50}
    database.shown = ls1.dpid, ShownEnd(5, 35)
    assert switches.certificates()[ls1.name] == 40
    sessions.disconnected(called)
    database.shown = None
    assert switches.certificates() == {ch1.name: 50}
    sessions.close()


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_under_one_plan_after_the_other_every_switch_holds_its_part(data):
    network = data.draw(any_network)
    numbers, plans = MeterNumbers(), []
    for epoch in (2, 4, 6):
        plans.append(planned(epoch, network, DEFAULT_POLICY, data.draw(demands_in(network))))
        plans += [lesser_of(plans[-2], plans[-1])] if len(plans) > 1 else []
    with played(network) as (switches, sessions, _):
        for one in data.draw(st.lists(st.sampled_from(plans), max_size=6)):
            down = data.draw(st.sets(st.sampled_from([c.name for c in network.circuits]), max_size=1))
            plan = replace(one, down=frozenset(down))
            assert switches.put_meters(plan, OPEN) == ()
            for switch in network.switches:
                as_seen = with_port_numbers(network, switch.name, {})  # they show no port
                whole = switch_state(as_seen, switch, plan, DEFAULT_POLICY, numbers)
                assert sessions._connections[switch.dpid].confirmed == whole


def test_a_switch_whose_part_is_as_it_was_is_not_looked_at(monkeypatch):
    looked_at = []
    with played(GIGABIT) as (switches, _, datapaths):
        put = switches._put_meters
        monkeypatch.setattr(
            switches, "_put_meters", lambda s, *of, **how: (looked_at.append(s.name), put(s, *of, **how))[1]
        )
        switches.put_meters(plan_of(*IMAGE), OPEN)
        assert sorted(looked_at) == sorted(datapaths)
        switches.put_meters(plan_of(*IMAGE), OPEN)  # the same, of other values: nothing is sent
        looked_at.clear()
        plan = plan_of(*IMAGE, RAW_IMAGES)
        switches.put_meters(plan, OPEN)
        assert looked_at
        looked_at.clear()
        switches.put_meters(replace(plan, epoch=plan.epoch + 2), OPEN)
        assert looked_at == []
        switches.put_meters(plan, OPEN, no_higher=True)
        assert sorted(looked_at) == sorted(datapaths)


def test_a_switch_that_may_have_lost_its_part_is_looked_at_again():
    plan, first = plan_of(DATABASE, RAW_IMAGES), GIGABIT.switches[0]
    with played(GIGABIT) as (switches, sessions, datapaths):
        switches.put_meters(plan, OPEN)
        rules = switch_state(GIGABIT, first, plan, DEFAULT_POLICY).rules

        def sent_again():
            before = len(datapaths[first.name].sent)
            assert switches.put_meters(plan, OPEN) == ()
            return len(datapaths[first.name].sent) - before

        assert sent_again() == 0
        sessions._connections[first.dpid].confirmed = None  # as when it has told of a rule that is gone
        assert sent_again() > len(rules)
        assert sent_again() == 0
        sessions.disconnected(datapaths[first.name])
        datapaths[first.name] = connected(sessions, id=first.dpid)
        assert sent_again() > len(rules)
        sessions._connections[first.dpid].ports = at_port(9, "02:00:00:00:00:09")
        assert switches._unlike(plan, switches._aggregates_of(plan)) == {first.name}


def test_what_was_prepared_while_we_stood_by_is_not_worked_out_again_when_we_lead(monkeypatch):
    made = []
    for name in ("sender_rules", "class_meters", "standing_rules"):
        make = getattr(switch_book, name)
        monkeypatch.setattr(switch_book, name, lambda *of, make=make: (made.append(make), make(*of))[1])
    plan, sessions = plan_of(*IMAGE, DATABASE, RAW_IMAGES), SwitchSessions(RecordedSwitches(), TERM, (), lambda: 1)
    try:
        switches = SiteSwitches(Site(GIGABIT, DEFAULT_POLICY, (), 300), sessions, {})
        switches.prepare(plan)
        assert made == []  # no switch has called
        datapaths = [PlayedDatapath(sessions, id=switch.dpid) for switch in GIGABIT.switches]
        for datapath in datapaths:
            sessions.connected(datapath)
        switches.prepare(plan)
        assert made
        assert all("FlowMod" not in type(one).__name__ for datapath in datapaths for one in datapath.sent)
        made.clear()
        sessions.lead(TERM)
        assert switches.put_meters(replace(plan, epoch=plan.epoch + 2), OPEN) == ()
        assert {make.__name__ for make in made} <= {"standing_rules"}  # which are kept by themselves
        for switch in GIGABIT.switches:
            assert sessions._connections[switch.dpid].confirmed == switch_state(GIGABIT, switch, plan, DEFAULT_POLICY)
    finally:
        sessions.close()
