"""Faults stay where they are: what does not need a broken port or switch goes on converging, what needs it is told."""

import pytest

from controller.plan.faults import PlaceFault
from controller.plan.invariant import violations
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import flow
from controller.site import Site
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.ovsdb.tests.kept_queues import KeptQueues
from controller.southbound.site_switches import SiteSwitches
from controller.state.faults import note_failed
from controller.state.not_carried import not_carried
from controller.tests.fakes import FakeSite, FakeSwitches, sending_image
from mininet_tests.testing.networks import chile_illinois_2
from topology.network import Hop
from topology.protocol import FlowClass

TWO = chile_illinois_2()
STANDING = (flow(FlowClass.PREDICTABLE, "base22", network=TWO), flow(FlowClass.BACKGROUND, "base23", network=TWO))
NORTH, SOUTH = Hop("ls1", "north"), Hop("ls1", "south")
TWO_MINUTES_S = 120
MANY_WRITES = 50


class QueuesInDatabases(FakeSwitches):
    """Switches whose queues are in databases, each of two circuit ports, written as they really are."""

    def __init__(self):
        super().__init__()
        self.databases = {switch.name: KeptQueues(f"unix:{switch.name}") for switch in TWO.switches}
        sessions = SwitchSessions.__new__(SwitchSessions)
        self.real = SiteSwitches(Site(TWO, DEFAULT_POLICY, (), 300), sessions, self.databases)

    def put_queues(self, plan, shut, *, in_doubt=False):
        """Take queues; who is told again and again without an end fails."""
        super().put_queues(plan, shut, in_doubt=in_doubt)
        assert len(self.log) < MANY_WRITES, "nobody gets any further"
        return self.real.put_queues(plan, shut, in_doubt=in_doubt)

    def mended(self, fault, meters, queues):
        """Take what is in force."""
        return self.real.mended(fault, meters, queues)


@pytest.fixture
def site():
    """A site with two circuits; all that is planned goes by the northern one."""
    site = FakeSite(TWO, STANDING)
    site.attach_all()
    site.converge()
    return site


def sent_bps(site, host):
    """What a host was told last, all its allocations together."""
    return sum(e.frame_bps for e in site.value.reported.hosts[host].acts_as_granted)


def carries_not(site):
    """What is not carried now."""
    return not_carried(site.state.site, site.value, site.clock.instant())


def said(site, since, name):
    """The events of a name."""
    return [dict(e.fields) for e in site.state.events.since(since).events if e.name == name]


def test_a_missing_port_of_a_spare_circuit_keeps_nothing_else_from_converging(site):
    site.switches.missing = {SOUTH}
    sending_image(site)
    assert sent_bps(site, "base20") + sent_bps(site, "base21") > 900_000_000
    view = site.reports.view()
    assert not violations(view.layers)
    assert view.error == "port to south of ls1: there is no such port"
    assert carries_not(site).flows == {}
    assert carries_not(site).links == {SOUTH: "port to south of ls1: there is no such port"}


def test_what_fails_while_the_controller_ends_is_not_told(site):
    """Of a pair switches may obey the other one by then."""
    seen, put_queues = site.state.events.last, site.switches.put_queues

    def ends(*args, **kwargs):
        site.state.stop()
        return put_queues(*args, **kwargs)

    site.switches.missing, site.switches.put_queues = {SOUTH}, ends
    sending_image(site)
    assert site.value.stopping
    assert said(site, seen, "fault.began") == []


def test_a_missing_port_at_the_start_keeps_nothing_else_from_its_first_plan():
    site = FakeSite(TWO, STANDING)
    site.switches.missing = {SOUTH}
    site.attach_all()
    site.converge()
    assert sent_bps(site, "base23") > 800_000_000


def test_what_needs_a_broken_port_is_not_carried_and_what_was_carried_keeps_what_it_had(site):
    site.switches.missing = {NORTH}
    sending_image(site)
    assert sent_bps(site, "base20") == 0
    assert sent_bps(site, "base23") > 900_000_000
    assert carries_not(site).flows["image/base20"] == "port to north of ls1: there is no such port"
    assert not violations(site.reports.view().layers)
    site.switches.missing = set()
    site.converge()
    site.demand("base20", "base21")
    site.converge()
    assert sent_bps(site, "base20") + sent_bps(site, "base21") > 900_000_000
    assert (site.reports.view().error, carries_not(site).flows) == ("", {})


def test_a_database_that_fails_at_one_of_its_ports_keeps_nobody_from_going_on_and_all_its_ports_as_they_are():
    site = FakeSite(TWO, STANDING, switches=QueuesInDatabases())
    site.attach_all()
    site.converge()
    database, seen = site.switches.databases["ls1"], site.state.events.last
    database.is_gone = True
    site.switches.log.clear()
    sending_image(site)
    assert database.asked[0][:-1] == ("ls1-north",)
    why = "no answer from the OVSDB server at unix:ls1 within 5 s"
    assert said(site, seen, "fault.began") == [{"place": "database unix:ls1", "why": why}]
    assert carries_not(site).links.keys() == {NORTH, SOUTH}
    assert sent_bps(site, "base20") == 0
    assert sent_bps(site, "base23") > 900_000_000
    assert not violations(site.reports.view().layers)
    site.switches.log.clear()
    database.is_gone = False
    site.converge()
    site.demand("base20", "base21")
    site.converge()
    assert sent_bps(site, "base20") + sent_bps(site, "base21") > 900_000_000
    assert (site.reports.view().error, carries_not(site).links) == ("", {})


@pytest.mark.parametrize("ports", [(NORTH, SOUTH), (SOUTH, NORTH)])
def test_a_known_fault_that_is_found_at_one_more_port_leaves_both_ports_and_what_crosses_them_as_they_are(site, ports):
    before = [sent_bps(site, host) for host in ("base22", "base23")]
    site.switches.mended = lambda fault, *_: (fault,)
    with site.state.changed:
        for port in ports:
            note_failed(site.state, [PlaceFault("database unix:ls1", "no answer", ports=frozenset({port}))])
    site.converge()
    assert carries_not(site).links.keys() == {NORTH, SOUTH}
    assert carries_not(site).flows.keys() == {f.name for f in STANDING}
    assert all(before)
    assert [sent_bps(site, host) for host in ("base22", "base23")] == before


def test_a_fault_that_lasts_is_one_line_and_its_end_another(site):
    seen = site.state.events.last
    site.switches.missing = {SOUTH}
    sending_image(site)
    for _ in range(TWO_MINUTES_S):
        site.clock.now_us += 1_000_000
        site.converge()
    assert said(site, seen, "fault.began") == [{"place": "port to south of ls1", "why": "there is no such port"}]
    site.switches.missing = set()
    site.converge()
    assert [over["place"] for over in said(site, seen, "fault.over")] == ["port to south of ls1"]


def test_a_switch_that_goes_is_not_waited_for_and_what_it_had_goes_on(site):
    sending_image(site)
    before = [sent_bps(site, host) for host in ("base20", "base21", "base22", "base23")]
    site.switches.gone = True
    site.switch_reports.switch_down(1)
    site.converge()
    assert [sent_bps(site, host) for host in ("base20", "base21", "base22", "base23")] == before
    assert "is not connected" in carries_not(site).flows["image/base20"]


def test_flows_stay_on_the_circuit_they_were_led_to_while_the_switch_that_led_them_is_gone():
    site = FakeSite(TWO, STANDING, return_after_us=1_000_000)
    site.attach_all()
    site.converge()
    north = 8
    site.port_said(1, north, is_live=False)
    site.converge()
    before = [sent_bps(site, host) for host in ("base22", "base23")]
    assert all(before)
    site.port_said(1, north, is_live=True)
    site.switches.gone = True
    site.switch_reports.switch_down(1)
    for _ in range(3):  # the circuit is trusted again, and ls1 cannot be told
        site.clock.now_us += 1_000_000
        site.converge()
    entries = site.value.desired.plan.entries
    assert {TWO.circuits_along(e.flow.path) for e in entries} == {("south",)}
    assert [sent_bps(site, host) for host in ("base22", "base23")] == before
    assert not violations(site.reports.view().layers)
    site.switches.gone = False
    site.switch_reports.switch_up(1, "192.0.2.1:50000", site.ports(1))
    site.converge()
    assert {TWO.circuits_along(e.flow.path) for e in site.value.desired.plan.entries} == {("north",)}


def test_a_port_that_was_deleted_and_added_again_has_its_queues_at_once(site):
    site.switch_reports.switch_up(1, "192.0.2.1:50000", site.ports(1))
    site.converge()
    south = 9
    site.switches.missing = {SOUTH}
    site.switch_reports.port_said(1, south, None)
    sending_image(site)
    assert carries_not(site).links.keys() == {SOUTH}
    doubts = site.value.reported.doubts
    site.switches.missing = set()
    site.port_said(1, south, is_live=True)
    assert site.value.reported.doubts > doubts  # nobody who tries again waits for the second to be over
    assert 1 in site.value.reported.switches_back
    site.converge()
    assert carries_not(site).links == {}


def test_a_port_that_dies_puts_nothing_before_the_failover(site):
    site.switch_reports.switch_up(1, "192.0.2.1:50000", site.ports(1))
    site.converge()
    doubts = site.value.reported.doubts
    site.port_said(1, 8, is_live=False)
    assert site.value.reported.doubts == doubts
