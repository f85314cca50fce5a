"""One audit of one switch: what it should hold against what it shows, and the smallest difference that repairs it.

Rules and meters are read back from the switch, queues from its database and from the kernel; a part that cannot be
looked at does not keep the others from being looked at.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from controller.audit.drift import Compared, Deviation, DriftKind, Outcome, Shape, compared
from controller.plan.faults import OPEN, Closed, PlaceFault
from controller.plan.plan import Plan
from controller.plan.wiring import PortFault, port_faults, port_links, with_port_numbers
from controller.site import Site
from controller.southbound.errors import DatabaseGone, ForeignQos, QueuesNotApplied, SouthboundError, SwitchTimeout
from controller.southbound.openflow.circuit_ports import circuit_ports
from controller.southbound.openflow.connection import ReadBack
from controller.southbound.openflow.desired import class_meter_ids, lowered, switch_state
from controller.southbound.openflow.foreign import Ignored, Shadow, shadows, without_ignored
from controller.southbound.openflow.meter_numbers import MeterNumbers
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.state import SwitchState
from controller.southbound.ovsdb import htb
from controller.southbound.ovsdb.desired_queues import port_queues
from controller.southbound.ovsdb.queues import PortQueues, shapers
from controller.southbound.ovsdb.writer import QueueWriter
from controller.southbound.site_switches import database_fault
from topology.network import Hop, Switch

TIMEOUT_S = 5.0  # a switch on the site's own network answers in milliseconds
LOOK_S = 3.0  # a database is read from our copy: a connection that broke is made again in 1 s, and far away in 2

# What a switch state is made of: a further kind of object is one more line.
PARTS: tuple[tuple[DriftKind, Callable[[SwitchState], Mapping[Any, object]]], ...] = (
    (DriftKind.FLOW, lambda state: {rule.key: rule for rule in state.rules}),
    (DriftKind.METER, lambda state: {meter.meter_id: meter for meter in state.meters}),
    (DriftKind.GROUP, lambda state: {group.group_id: group for group in state.groups}),
)
NOTHING_SEEN = Compared()
Sort = tuple[DriftKind, str]  # and the interface of the port that it is at; empty if it is at none
RULE_SORTS: frozenset[Sort] = frozenset((kind, "") for kind, _ in PARTS)


@dataclass(frozen=True, slots=True)
class Part:
    """What came of one part of an audit.

    Attributes:
        seen: what was seen.
        messages: how many changes were made.
        error: what went wrong.
        fault: of a switch or a database that does not answer, or behind which nobody acts; it is no error beside.
        unseen: what it could not look at: what was found of that before may be there still.
    """

    seen: Compared
    messages: int = 0
    error: str = ""
    fault: PlaceFault | None = None
    unseen: frozenset[Sort] = frozenset()


class SwitchAudit:
    """Audits switches; for the one thread that audits, while no plan is carried to them."""

    def __init__(
        self,
        site: Site,
        sessions: SwitchSessions,
        writers: Mapping[str, QueueWriter],
        ignored: tuple[Ignored, ...] = (),
        numbers: MeterNumbers | None = None,
    ) -> None:
        """Wire the audit.

        Args:
            site: the network and the policy.
            sessions: the OpenFlow connections.
            writers: by switch name, the writer of its queues.
            ignored: the rules that are left alone.
            numbers: of senders' meters, as who puts plans on the switches has them.
        """
        self._site = site
        self._sessions = sessions
        self._writers = writers
        self._ignored = ignored
        self._numbers = numbers or MeterNumbers()

    def audited(self, switch: Switch, meters: Plan, queues: Plan, shut: Closed = OPEN) -> tuple[Part, ...]:
        """Return what was found and repaired on a switch that should hold ``meters`` and ``queues``.

        What is closed has a fault, which is known; it is not looked at, and nobody waits for it. Nor is a database that
        does not answer asked for a second port; and a switch that does not has a fault from now on.
        """
        closed = {
            link.port_name
            for head, link in circuit_ports(self._site.network, switch.name)
            if Hop(switch.name, head) in shut.ports
        }
        wanted = port_queues(self._site.network, switch, queues)
        ports = {name: port for name, port in wanted.items() if name not in closed}
        writer = self._writers[switch.name]
        is_shut = switch.name in shut.switches
        dark = Part(NOTHING_SEEN, unseen=RULE_SORTS)
        look = partial(self._rules, switch, meters, shut.unsure)
        rules = dark if is_shut else _guarded(look, partial(_not_done, switch, dark))
        left = Part(NOTHING_SEEN, unseen=_queue_sorts(closed))
        return _guarded(lambda: self._ports(switch)), rules, left, *self._queues(writer, ports)

    def _ports(self, switch: Switch) -> Part:
        """Return how a switch's ports are; none of it is ours to repair."""
        network = self._site.network
        faults = port_faults(network, switch.name, self._sessions.ports(switch.dpid))
        proper = len(tuple(port_links(network, switch.name))) - len(faults)
        return Part(Compared({DriftKind.PORT: proper}, tuple(map(_misplaced, faults))))

    # ---- rules and meters ----

    def _rules(self, switch: Switch, plan: Plan, unsure: Collection[Hop]) -> Part:
        """Return how rules and meters are, repaired; meters over queues of which nothing is sure are not raised."""
        network = with_port_numbers(self._site.network, switch.name, self._sessions.ports(switch.dpid))
        desired = switch_state(network, switch, plan, self._site.policy, self._numbers)
        shown = self._sessions.read(switch.dpid, TIMEOUT_S)
        if held := class_meter_ids(network, switch, unsure):
            desired = lowered(desired, shown.ours, held)
        seen, desired = self._switch_seen(desired, shown)
        if not seen.drift:
            return Part(seen)
        try:
            sent = self._sessions.apply(switch.dpid, desired, TIMEOUT_S)
        except SouthboundError as error:
            return _not_done(switch, Part(seen.settled(Outcome.FAILED)), error)
        return Part(seen.settled(Outcome.REPAIRED), sent)

    def _switch_seen(self, desired: SwitchState, shown: ReadBack) -> tuple[Compared, SwitchState]:
        """Return what a switch shows against what it should hold, and what of that can be put there."""
        installed = without_ignored(desired, shown.ours, self._ignored)
        dark = self._shadows(desired, shown)
        taken = {shadow.first.key for shadow in dark if shadow.takes_place}
        settable = replace(desired, rules=frozenset(r for r in desired.rules if r.key not in taken))
        seen = Compared(deviations=tuple(_shadowed(shadow) for shadow in dark))
        for kind, of in PARTS:
            seen += compared(kind, of(settable), of(installed))
        left = (
            Deviation(DriftKind.FLOW, Shape.IGNORED, found=str(rule), outcome=Outcome.LEFT)
            for rule in shown.ours.rules - installed.rules
        )
        return seen + Compared(deviations=tuple(left)), settable

    def _shadows(self, desired: SwitchState, shown: ReadBack) -> tuple[Shadow, ...]:
        """Return other people's rules that take packets of ours; those on the ignore list only if they take a place."""
        on_list = {rule for rule in shown.foreign for entry in self._ignored if entry.covers(rule)}
        dark = shadows(desired.rules, shown.foreign)
        return tuple(s for s in dark if s.takes_place or s.rule not in on_list)

    # ---- queues ----

    def _queues(self, writer: QueueWriter, ports: Mapping[str, PortQueues]) -> tuple[Part, ...]:
        """Return what the database has of some ports, and the kernel; nothing further once the database is silent."""
        rows, failed = dict[str, Part](), partial(self._failed, writer)
        for name, wanted in ports.items():
            rows[name] = _guarded(partial(self._rows, writer, name, wanted), failed)
            if rows[name].fault is not None:
                return *rows.values(), Part(NOTHING_SEEN, unseen=_queue_sorts(ports))
        ours = {name: ports[name] for name, row in rows.items() if _is_usable(row)}
        return *rows.values(), _guarded(partial(self._kernel, writer, ours), failed)

    def _failed(self, writer: QueueWriter, error: Exception, seen: Compared = NOTHING_SEEN) -> Part:
        """Return a part that a database has not done; one that does not answer has a fault."""
        if isinstance(error, DatabaseGone | QueuesNotApplied):
            return Part(seen, fault=database_fault(self._site.network, self._writers, writer, error))
        return Part(seen, error=str(error))

    def _rows(self, writer: QueueWriter, port_name: str, wanted: PortQueues) -> Part:
        """Return what the database has of a port, repaired."""
        try:
            found = writer.installed(port_name, LOOK_S)
        except ForeignQos as error:
            return Part(_foreign(port_name, wanted, DriftKind.QUEUE, str(error)))
        seen = compared(DriftKind.QUEUE, shapers(port_name, wanted), shapers(port_name, found))
        if not seen.drift:
            return Part(seen)
        try:
            changed = writer.apply({port_name: wanted}, TIMEOUT_S)
        except SouthboundError as error:
            return self._failed(writer, error, seen.settled(Outcome.FAILED))
        return Part(seen.settled(Outcome.REPAIRED), changed)

    def _kernel(self, writer: QueueWriter, ports: Mapping[str, PortQueues]) -> Part:
        """Return what the kernel has of some ports, repaired."""
        if not ports:
            return Part(Compared())
        seen, found = _kernel_seen(writer, ports)
        if not seen.drift:
            return Part(seen)
        writer.restate(ports, TIMEOUT_S)
        bare = [name for name in ports if name in found and found[name].is_bare]
        for name in bare:
            writer.reattach(name, TIMEOUT_S)
        kept = {
            str(shaper): why
            for name, port in found.items()
            for key, shaper in port.shapers.items()
            if key not in shapers(name, ports[name]) and (why := htb.delete(shaper))
        }
        after, _ = _kernel_seen(writer, ports)
        still = {(d.wanted, d.found) for d in after.drift}
        return Part(_settled(seen, still, kept), 1 + 2 * len(bare))


def _unseen(error: Exception) -> Part:
    """Return a part that cannot be looked at: an error, and nothing is known of it."""
    return Part(NOTHING_SEEN, error=str(error))


def _not_done(switch: Switch, part: Part, error: Exception) -> Part:
    """Return a part that a switch has not done; one that does not answer has a fault: no audit waits for it again."""
    if isinstance(error, SwitchTimeout):
        return replace(part, fault=PlaceFault(f"switch {switch.name}", str(error), frozenset({switch.name})))
    return replace(part, error=str(error))


def _queue_sorts(port_names: Iterable[str]) -> frozenset[Sort]:
    """Return what can be found of the queues of some ports."""
    return frozenset((kind, name) for kind in (DriftKind.QUEUE, DriftKind.HTB) for name in port_names)


def _guarded(look: Callable[[], Part], failed: Callable[[Exception], Part] = _unseen) -> Part:
    """Return a part of an audit, or what its failure is."""
    try:
        return look()
    except (SouthboundError, OSError) as error:
        return failed(error)


def _is_usable(row: Part) -> bool:
    """Return whether the database has our queues for a port, so that its kernel should have them too."""
    return not row.error and all(d.outcome is not Outcome.LEFT for d in row.seen.deviations)


def _shadowed(shadow: Shadow) -> Deviation:
    found = f"cookie {shadow.rule.cookie:#x}: {shadow.rule}"
    if not shadow.touches:
        return Deviation(DriftKind.FLOW, Shape.FOREIGN, "", found, Outcome.LEFT)
    more = f" and of {shadow.more} more" if shadow.more else ""
    what = "stands in the place of ours" if shadow.takes_place else f"takes packets of ours{more}"
    todo = f"it {what}; delete it, give it a lower priority, or put it on the ignore list (audit.ignore)"
    return Deviation(DriftKind.FLOW, Shape.SHADOWED, str(shadow.first), found, Outcome.LEFT, todo)


def _misplaced(fault: PortFault) -> Deviation:
    shape = Shape.MISCONFIGURED if fault.found else Shape.MISSING
    wanted = f"{fault.wanted} to {fault.hop.head}"
    return Deviation(DriftKind.PORT, shape, wanted, fault.found, Outcome.LEFT, fault.todo)


def _foreign(port_name: str, wanted: PortQueues, kind: DriftKind, todo: str) -> Compared:
    """Return a port whose queues are somebody else's: none of ours is there, and none is put there."""
    ours = f"port {port_name}: {len(wanted.queues)} queues"
    return Compared(deviations=(Deviation(kind, Shape.SHADOWED, ours, "", Outcome.LEFT, todo, port_name),))


def _kernel_seen(writer: QueueWriter, ports: Mapping[str, PortQueues]) -> tuple[Compared, dict[str, htb.PortClasses]]:
    """Return the kernel's classes of some ports against what they should be, and as they are."""
    found = htb.classes(ports) if htb.is_on_this_machine(writer.remote) else {}
    seen = Compared()
    for name, queues in ports.items():
        if name not in found:
            hidden = f"port {name}: not visible from here"
            seen += Compared(deviations=(Deviation(DriftKind.HTB, Shape.HIDDEN, hidden, "", Outcome.LEFT),))
        elif found[name].is_foreign:
            todo = f"Headway did not put it there; if it may go: tc qdisc delete dev {name} root"
            seen += _foreign(name, queues, DriftKind.HTB, f"the port has a qdisc {found[name].qdisc}; {todo}")
        else:
            seen += compared(DriftKind.HTB, shapers(name, queues), found[name].shapers, htb.same)
    return seen, found


def _settled(seen: Compared, still: set[tuple[str, str]], kept: Mapping[str, str]) -> Compared:
    """Return what was seen of the kernel, with what the repair has come to."""
    done = []
    for one in seen.deviations:
        if one not in seen.drift:
            done.append(one)
        elif (one.wanted, one.found) not in still:
            done.append(replace(one, outcome=Outcome.REPAIRED))
        else:
            why = kept.get(one.found, "Open vSwitch was asked to put it right and has not; its log says why")
            done.append(replace(one, outcome=Outcome.FAILED, todo=why))
    return Compared(seen.proper, tuple(done))
