"""An audit of switches that do not answer, or whose database does not: it is waited for once, and is a fault."""

import pytest

from controller.audit import switches
from controller.audit.drift import DriftKind, Outcome
from controller.audit.switches import LOOK_S, RULE_SORTS, TIMEOUT_S, SwitchAudit
from controller.plan.faults import OPEN, Closed
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import plan_of
from controller.site import Site
from controller.southbound.openflow.connection import ReadBack
from controller.southbound.openflow.desired import class_meter_ids
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.state import SwitchState
from controller.southbound.openflow.tests.played_switch import connected
from controller.southbound.openflow.tests.recorder import RecordedSwitches, new_term
from controller.southbound.ovsdb.tests.kept_queues import KeptQueues
from controller.southbound.site_switches import SiteSwitches
from mininet_tests.testing.networks import chile_illinois_2
from topology.network import Hop

TWO = chile_illinois_2()
PLAN = plan_of(network=TWO)
OURS = frozenset({Hop("ls1", "north"), Hop("ls1", "south")})


class UnwritableQueues(KeptQueues):
    """A database that is read while it does not answer: a copy of it is here."""

    def installed(self, port_name, timeout_s):
        """Return what a port was told."""
        del timeout_s
        return self.held.get(port_name)


def audited(database, shut=OPEN):
    """What comes of an audit of a switch with two circuit ports, none of whose queues is there yet."""
    sessions = SwitchSessions(RecordedSwitches(), new_term())
    try:
        audit = SwitchAudit(Site(TWO, DEFAULT_POLICY, (), 300), sessions, {"ls1": database, "ch1": KeptQueues()})
        return audit.audited(TWO.switches[0], PLAN, PLAN, shut)
    finally:
        sessions.close()


@pytest.mark.parametrize(("kind", "asked_s"), [(KeptQueues, LOOK_S), (UnwritableQueues, TIMEOUT_S)])
def test_a_database_that_does_not_answer_is_waited_for_once_and_all_its_ports_have_the_fault(kind, asked_s):
    database = kind("unix:ls1")
    database.is_gone = True
    parts = audited(database)
    assert database.asked == [("ls1-north", asked_s)]
    assert [(f.place, f.ports) for part in parts if (f := part.fault)] == [("database unix:ls1", OURS)]


def test_of_a_database_that_is_known_to_be_silent_nobody_asks():
    database = KeptQueues("unix:ls1")
    database.is_gone = True
    parts = audited(database, Closed(ports=OURS))
    assert (database.asked, [part.fault for part in parts if part.fault]) == ([], [])


def test_what_a_database_that_answers_lacks_is_put_there():
    database = KeptQueues("unix:ls1")
    parts = audited(database)
    assert database.taken() == {"ls1-north", "ls1-south"}
    repaired = [d for part in parts for d in part.seen.deviations if d.kind is DriftKind.QUEUE]
    assert repaired
    assert {d.outcome for d in repaired} == {Outcome.REPAIRED}


@pytest.mark.parametrize(
    ("shut", "is_silent", "port_names"),
    [
        (OPEN, False, ()),
        (Closed(switches=frozenset({"ls1"})), False, ()),
        (Closed(ports=frozenset({Hop("ls1", "north")})), False, ("ls1-north",)),
        (OPEN, True, ("ls1-north", "ls1-south")),
    ],
)
def test_what_an_audit_could_not_look_at_is_known(shut, is_silent, port_names):
    """The switch itself is not connected."""
    database = KeptQueues("unix:ls1")
    database.is_gone = is_silent
    unseen = frozenset().union(*(part.unseen for part in audited(database, shut)))
    queues = {(kind, name) for kind in (DriftKind.QUEUE, DriftKind.HTB) for name in port_names}
    assert unseen == RULE_SORTS | queues


@pytest.mark.parametrize("is_read", [False, True], ids=["nothing", "what it is asked alone"])
def test_a_switch_that_does_not_answer_is_a_fault_and_no_error(is_read, monkeypatch):
    """It has a fault, so that no audit waits for it again until it answers."""
    monkeypatch.setattr(switches, "TIMEOUT_S", 0.05)
    sessions = SwitchSessions(RecordedSwitches(), new_term())
    try:
        silent = connected(sessions, id=TWO.switches[0].dpid)
        silent.ignores = lambda message: not is_read or isinstance(message, silent.ofproto_parser.OFPBarrierRequest)
        writers = {"ls1": KeptQueues("unix:ls1"), "ch1": KeptQueues()}
        parts = SwitchAudit(Site(TWO, DEFAULT_POLICY, (), 300), sessions, writers).audited(TWO.switches[0], PLAN, PLAN)
    finally:
        sessions.close()
    assert [(f.place, f.switches, f.is_gone) for part in parts if (f := part.fault)] == [("switch ls1", {"ls1"}, False)]
    assert [part.error for part in parts if part.error] == []
    unseen = frozenset().union(*(part.unseen for part in parts))
    assert unseen == (frozenset() if is_read else RULE_SORTS)
    failed = {d.outcome for part in parts for d in part.seen.deviations if (d.kind, "") in RULE_SORTS}
    assert failed == ({Outcome.FAILED} if is_read else set())


class KeptSwitches:
    """Sessions with switches that hold what they are told to."""

    def __init__(self):
        self.held = {switch.dpid: SwitchState() for switch in TWO.switches}

    def ports(self, dpid, timeout_s=0.0):
        """Return no port."""
        del dpid, timeout_s
        return {}

    def unlike(self, known):
        """Say that none of them is as it was."""
        return set(known)

    def installed(self, dpid, timeout_s):
        """Return what one holds."""
        return self.read(dpid, timeout_s).ours

    def read(self, dpid, timeout_s):
        """Return what one holds, all of it ours."""
        del timeout_s
        return ReadBack(self.held[dpid], frozenset())

    def apply(self, dpid, desired, timeout_s):
        """Have one hold a state."""
        del timeout_s
        self.held[dpid] = desired
        return 1


def test_an_audit_does_not_raise_meters_over_queues_of_which_nothing_is_sure():
    sessions, north, (ls1, ch1) = KeptSwitches(), frozenset({Hop("ls1", "north")}), TWO.switches
    site, writers = Site(TWO, DEFAULT_POLICY, (), 300), {ls1.name: KeptQueues(), ch1.name: KeptQueues()}
    shut = Closed(ports=north, unsure=north)
    assert SiteSwitches(site, sessions, writers).put_meters(PLAN, shut) == ()
    before = sessions.held[ls1.dpid]
    audit = SwitchAudit(site, sessions, writers)
    drift = [d for part in audit.audited(ls1, PLAN, PLAN, shut) for d in part.seen.drift if d.kind is DriftKind.METER]
    assert (drift, sessions.held[ls1.dpid]) == ([], before)
    audit.audited(ls1, PLAN, PLAN, OPEN)  # they are sure by now
    raised = {meter.meter_id for meter in sessions.held[ls1.dpid].meters - before.meters}
    assert raised
    assert raised <= class_meter_ids(TWO, ls1, north)
