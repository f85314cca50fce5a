"""Ports and datapath ids that are not as the network has them, on a site without switches and agents."""

import pytest

from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.wiring import CLAIM_US, SeenPort
from controller.tests.fakes import START_US, image, ready_site, value_of, watch_of
from controller.work.timekeeper import Timekeeper
from topology.network import Hop
from topology.protocol import FlowClass

HOUR_US = 3_600_000_000
BASE20 = 1  # its port at ls1


@pytest.fixture
def site():
    """A site whose plan is in force, with every switch connected as it should be."""
    site = ready_site()
    site.wire()
    return site


def troubles(site, connected=(1, 2)):
    """What is not well, while these switches are connected."""
    return tuple(map(str, site.reports.troubles(frozenset(connected))))


def told(site, name):
    """The fields of each event of a name."""
    return [dict(e.fields) for e in site.state.events.since(0).events if e.name == name]


def reserved(site, sender="base20"):
    """A reservation from now on, as it is after all layers have it."""
    request = Request(sender, "arch", FlowClass.URGENT, 100_000_000, START_US, START_US + HOUR_US)
    name = f"r-{sender}"
    site.use_cases.hold(lambda _: request, lambda now_us: Created(name, now_us)).saved.result()
    site.use_cases.commit(name).saved.result()
    site.converge()
    return lambda: site.use_cases.reservation(name)


def test_a_site_that_is_wired_as_it_should_be_is_well(site):
    known = reserved(site)
    assert (known().state, troubles(site)) == (ReservationState.ACTIVE, ())


WRONG = [
    (SeenPort("ls1-eth1", is_live=False), "ls1: port 1 ls1-eth1 to base20 is down"),
    (SeenPort("spare", is_live=True), "ls1: port 1 ls1-eth1 to base20 is port 1 spare"),
    (None, "ls1: port 1 ls1-eth1 to base20 is missing"),
]


@pytest.mark.parametrize(("port", "why"), WRONG)
def test_over_a_host_s_port_that_is_not_as_it_should_be_nothing_is_active(site, port, why):
    known, other = reserved(site), reserved(site, "base21")
    site.switch_reports.port_said(1, BASE20, port)
    site.use_cases.tick()
    assert (known().state, known().reason) == (ReservationState.PROVISIONING, why)
    assert other().state is ReservationState.ACTIVE
    assert why in troubles(site)
    assert told(site, "reservation.lost") == [{"reservation": "r-base20", "why": why}]
    site.switch_reports.port_said(1, BASE20, SeenPort("ls1-eth1", is_live=True))
    site.use_cases.tick()
    assert (known().state, troubles(site)) == (ReservationState.ACTIVE, ())


def test_a_port_under_another_number_is_named_with_both(site):
    ports = site.ports(1)
    site.switch_up(1, {7: ports.pop(BASE20), **ports})
    assert troubles(site) == ("ls1: port 1 ls1-eth1 to base20 is port 7 ls1-eth1",)


def test_a_switch_whose_port_has_changed_is_audited_at_once(site):
    site.switches.audited_with.clear()
    site.switch_reports.port_said(1, BASE20, None)
    site.audits.next()
    assert [name for name, _, _ in site.switches.audited_with] == ["ls1"]


def test_a_circuit_whose_port_has_another_number_is_down(site):
    known = reserved(site)
    ports = site.ports(1)
    site.switch_up(1, {8: ports.pop(9), **ports})
    site.use_cases.tick()
    assert value_of(site.state).reported.lines.down(site.state.elapsed_us()) == {"chile-illinois"}
    assert (known().state, known().reason) == (ReservationState.PROVISIONING, "chile-illinois: the line is down")
    assert "chile-illinois: the line is down, and there is no way round it" in troubles(site)


def test_a_switch_that_nobody_knows_is_told_of_and_is_not_well_while_it_is_there(site):
    site.switch_reports.switch_up(0x99, "192.0.2.9:4711", {1: SeenPort("eth0", is_live=True)})
    assert told(site, "switch.unknown") == [{"dpid": "0000000000000099", "address": "192.0.2.9:4711"}]
    assert troubles(site) == ("switch 0000000000000099, at 192.0.2.9:4711, is not in the network",)
    site.switch_reports.switch_down(0x99)
    assert troubles(site) == ()


def test_a_datapath_id_that_is_claimed_twice_is_told_of_once_and_until_nobody_claims_it_any_more(site):
    for _ in range(5):
        site.switch_reports.claimed(1, "192.0.2.9:4711")
        site.clock.now_us += CLAIM_US // 2
    event = {"dpid": "0000000000000001", "switch": "ls1", "address": "192.0.2.9:4711"}
    assert told(site, "switch.claimed_twice") == [event]
    assert troubles(site) == ("ls1: another switch, at 192.0.2.9:4711, claims its datapath id 0000000000000001",)
    site.clock.now_us += CLAIM_US
    Timekeeper(site.state, site.use_cases, watch_of(site)).step()
    assert troubles(site) == ()
    assert told(site, "switch.claim_over") == [{"dpid": "0000000000000001"}]


def test_a_switch_that_obeys_another_controller_is_told_of_once_until_it_obeys_us_again(site):
    for _ in range(3):
        site.switch_reports.led_by_another(1, "192.0.2.9:4711")
    event = {"dpid": "0000000000000001", "switch": "ls1", "address": "192.0.2.9:4711"}
    assert told(site, "switch.led_by_another") == [event]
    site.switch_reports.switch_up(1, "192.0.2.9:4711", {})
    site.switch_reports.led_by_another(1, "192.0.2.9:4711")
    assert told(site, "switch.led_by_another") == [event, event]


def test_a_switch_that_is_not_connected_is_not_well(site):
    assert troubles(site, {1}) == ("ch1: is not connected, so nothing can be changed there",)


def test_an_announcement_over_a_dead_port_is_not_well(site):
    site.announce(image())
    site.converge()
    assert troubles(site) == ()
    site.switch_reports.port_said(1, BASE20, SeenPort("ls1-eth1", is_live=False))
    assert "announcement image: ls1: port 1 ls1-eth1 to base20 is down" in troubles(site)
    assert Hop("ls1", "base20") in value_of(site.state).reported.wiring.faults


def test_a_host_without_an_agent_is_not_well_if_something_is_promised_to_it(site):
    site.reports.host_down("base22")
    assert troubles(site) == ()
    site.announce(image())
    site.converge()
    site.reports.host_down("base20")
    assert troubles(site) == ("announcement image: base20: its agent is not connected",)
