"""From one plan to the next without a moment in which any layer lets through more than the circuit. Pure.

A sender whose window shrinks is silent until its flight has drained, so what it gives up is free as soon as the
*host has confirmed*, not a round trip later. Meters shrink before queues do and grow after them, because a meter
must never exceed its queue.

Nothing is remembered of a transition under way. The next step follows from what each layer may be acting on now and
from the plan that is wanted now; so it does not matter in which order confirmations come, which of them are lost, or
whether the wanted plan has changed meanwhile.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from operator import is_

from controller.plan.differences import differing_keys
from controller.plan.failover import carried, is_dead, turned
from controller.plan.plan import THE_REST, Entry, LinkPlan, Plan
from topology.network import Hop
from topology.protocol import FlowClass


class Stage(Enum):
    """The layer a step acts on."""

    HOSTS = "hosts"
    METERS = "meters"
    QUEUES = "queues"


@dataclass(frozen=True, slots=True)
class Step:
    """Bring one layer to what ``plan`` says of it; the next step waits for the confirmation.

    ``no_higher``: leave meters that are below what the plan says; nobody knows yet what else the switches hold.
    """

    stage: Stage
    plan: Plan
    no_higher: bool = False


@dataclass(frozen=True, slots=True)
class InForce:
    """What the layers may be acting on now.

    Attributes:
        meters: the plan whose rules and meters the switches have confirmed.
        queues: the plan whose queues they have.
    """

    meters: Plan
    queues: Plan


@dataclass(frozen=True, slots=True)
class Change:
    """What a step changes of one thing, in bit/s of Ethernet frames.

    Attributes:
        where: the host, or the link.
        what: the flow, or the class.
        from_bps: before, 0 if it was not there.
        to_bps: after, 0 if it is not there any more.
    """

    where: str
    what: str
    from_bps: int
    to_bps: int


def next_step(now: InForce, lesser: Plan, desired: Plan, *, is_within: bool) -> Step:
    """Return the step that is safe now and leads to the plan that is wanted, whose meters are not in force yet.

    ``lesser`` is between the meters' plan and that one (:func:`lesser_of`); ``is_within``: no host may be acting on
    more than it.

    Hosts down to the lesser of both plans; meters likewise; queues to the new plan; meters, then hosts, to the new.
    What is as it should be is left out. The step of the hosts is done when none may be acting on more than it says:
    until then it stays the next one; when it is the wanted plan's, there is no other after it.

    A flow that leaves a circuit which goes on keeps its queue there until the rules, which come with the meters, have
    turned it over; those that stay there grow after that.
    """
    if not is_within:
        return Step(Stage.HOSTS, lesser)
    via = _via(now, lesser, desired)
    if _same_queues(now.queues, via):
        return Step(Stage.METERS, via)
    if _above_queues(now.meters, via):
        return Step(Stage.METERS, lesser)
    return Step(Stage.QUEUES, via)


def _via(now: InForce, lesser: Plan, desired: Plan) -> Plan:
    """Return the plan to make for: the wanted one, unless flows leave circuits that go on; then one between.

    On such a circuit the one between keeps the queues, with meters that fit both plans; everywhere else it is the
    wanted plan already, and its rules turn the flows over. Only then has the circuit nothing of them left to hold.

    An image moves from a circuit of 1 Gbit/s to one of half of that, and raw images stay behind::

                                             before              between             after
        base20 --+         +-- north --+     image, raw images   raw images          raw images
                 +-- ls1 --+           +--
        base23 --+         +-- south --+     -                   image               image

    The queues in Mbit/s of frames, the image's and the raw images': the image keeps its queue in the north until its
    rules have turned it over, and the raw images grow after that. In the south all is as wanted.

    >>> from controller.plan.flows import flow_on
    >>> from controller.plan.keys import flow_id
    >>> from controller.plan.plan import PlanInput
    >>> from controller.plan.planning import planned
    >>> from controller.plan.policy import DEFAULT_POLICY
    >>> from mininet_tests.testing.networks import chile_illinois_2
    >>> network = chile_illinois_2()
    >>> def plan(line, epoch):
    ...     some = (("image", "base20", FlowClass.URGENT, line), ("raw", "base23", FlowClass.BACKGROUND, "north"))
    ...     flows = tuple(flow_on(network, flow_id(n, h), c, (h, "ls1", way, "ch1", "arch")) for n, h, c, way in some)
    ...     return planned(epoch, network, DEFAULT_POLICY, PlanInput(flows))
    >>> def queues(plan, line):
    ...     classes = plan.links[Hop("ls1", line)].classes
    ...     return [classes[c].queue_bps // 10**6 for c in (FlowClass.URGENT, FlowClass.BACKGROUND)]
    >>> before, after = plan("north", 2), plan("south", 4)
    >>> between = _via(InForce(before, before), lesser_of(before, after), after)
    >>> [queues(p, "north") for p in (before, between, after)]
    [[924, 9], [924, 9], [0, 933]]
    >>> [queues(p, "south") for p in (before, between, after)]
    [[0, 4], [462, 4], [462, 4]]
    >>> [(e.flow.path[2], e.frame_bps // 10**6) for e in between.entries if e.flow.host == "base20"]
    [('south', 462)]
    """
    left = _left_circuits(lesser, desired)
    if not left:
        return desired
    links = dict(desired.links)
    for hop in left:
        links[hop] = with_meters(now.queues.links[hop], _lesser_meters(lesser.links[hop], desired.links[hop]))
    return replace(lesser, links=links, entries=turned(lesser.entries, desired), down=desired.down)


def _left_circuits(lesser: Plan, desired: Plan) -> set[Hop]:
    """Return the circuits' links that flows are to leave and that go on without them."""
    moving = (e for e in lesser.apart(desired) if _goes_on_as(e, desired) is None)
    return {hop for e in moving for hop in e.flow.links if hop in desired.links and not is_dead(hop, desired)}


def with_meters(queues: LinkPlan, meters: LinkPlan) -> LinkPlan:
    """Return a link with the queues of one plan and the meters of another."""
    classes = {c: replace(limits, meter_bps=meters.classes[c].meter_bps) for c, limits in queues.classes.items()}
    return replace(queues, classes=classes)


def next_of_first(installed: Step | None, new: Plan) -> Step:
    """Return the step that brings a first plan into switches which may hold any other, after the one done last."""
    if installed is None or installed.plan is not new:
        return Step(Stage.METERS, new, no_higher=True)
    return Step(Stage.QUEUES, new) if installed.stage is Stage.METERS else Step(Stage.METERS, new)


def lesser_of(old: Plan, new: Plan) -> Plan:
    """Return the plan between two (its epoch is odd): each allocation and each meter is the lesser of its two values.

    An allocation that only one of the two knows is absent. A flow that moves to a circuit beside its own keeps the
    lesser on its old way, and a meter there keeps room for it. Which connections an allocation is for changes last.
    """
    entries: list[Entry | None] = [*old.entries]
    for place in old.places_apart(new):
        entry = old.entries[place]
        then = _goes_on_as(entry, new)
        entries[place] = None if then is None else _lesser(entry, then)
    moving, links = carried(old, new), dict(old.links)
    for name in _changed(old, new):
        links[name] = _lesser_meters(links[name], new.links[name], [e for e in moving if name in e.flow.links])
    is_same = not moving and all(map(is_, entries, old.entries)) and all(map(is_, links.values(), old.links.values()))
    if is_same and old.epoch == new.epoch - 1:  # nothing but the next step's start: all that was found of it stays
        return old
    whole = (*(e for e in entries if e is not None), *moving) if old.apart(new) else old.entries
    return replace(old, epoch=new.epoch - 1, links=links, entries=whole)


def no_more_than(acting: Iterable[Entry], plan: Plan) -> Plan:
    """Return a plan with no more for any host than it acts on already; on the way to it, so its epoch is odd.

    For as long as some host may be doing what an earlier controller granted, and the rules in force have no room for:
    the earlier plan had room for that, and for what all others do now; of room for more nobody knows.
    """
    return replace(lesser_of(replace(plan, entries=tuple(acting)), plan), epoch=plan.epoch - 1 + plan.epoch % 2)


def within(acting: Iterable[Entry], plan: Plan) -> bool:
    """Return whether nothing of what hosts may be acting on is more than a plan gives it, nor for more connections."""
    for one in acting:
        if plan.has(one):
            continue
        there = _goes_on_as(one, plan)
        if there is None or one.frame_bps > there.frame_bps:
            return False
        if there.flow is not one.flow and _is_for_the_rest(one) and not _is_for_the_rest(there):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Exceeding:
    """The hosts that may be acting on more than a plan gives them, and what that was found from.

    Attributes:
        plan: the plan.
        acting: by host, the most that it may be acting on.
        hosts: those that exceed.
    """

    plan: Plan
    acting: Mapping[str, tuple[Entry, ...]]
    hosts: frozenset[str] = frozenset()


NOBODY = Exceeding(Plan(0, {}, ()), {})


def exceeding(acting: Mapping[str, tuple[Entry, ...]], plan: Plan, before: Exceeding = NOBODY) -> Exceeding:
    """Return the hosts that may be acting on more than a plan gives them, or for more connections.

    The answer is the same whatever was found ``before``, and costs what differs from it.
    """
    differing = {*differing_keys(before.acting, acting), *plan.hosts_apart(before.plan)}
    beyond = {host for host in differing if not within(acting.get(host, ()), plan)}
    return Exceeding(plan, acting, before.hosts - differing | beyond)


def _goes_on_as(entry: Entry, plan: Plan) -> Entry | None:
    """Return what a plan has for the flow of an entry; None if it has nothing by the same way."""
    of_host = plan.of_host(entry.flow.machine)
    if len(of_host) == 1 and of_host[0].flow is entry.flow:  # as nearly all
        return of_host[0]
    there = {way: e for e in of_host for way in _ways(e)}
    return next((there[way] for way in _ways(entry) if way in there), None)


def _is_for_the_rest(entry: Entry) -> bool:
    return entry.flow.selector == THE_REST


def _ways(entry: Entry) -> list[tuple[str, FlowClass, tuple[str, ...]]]:
    """Return what must be the same of an allocation that goes on: for whom, in which class and by which way.

    One that stands for several promises goes on as long as one of them does.
    """
    flow = entry.flow
    return [(name, flow.flow_class, flow.path) for name in flow.names]


def _lesser(old: Entry, new: Entry) -> Entry:
    """Return the lesser of two allocations, for the connections that it has before and after, and with a mark if any.

    What a switch tells apart by its mark under the new rules is marked before these come, and until they have gone.
    """
    lesser = min(old, new, key=lambda e: e.frame_bps)
    widens = _is_for_the_rest(new) and not _is_for_the_rest(old)
    unmarks = new.flow.mark is None and old.flow.mark is not None
    told_as = old.flow if widens or unmarks else new.flow
    same = (old.flow.name, old.flow.selector, old.flow.mark) == (new.flow.name, new.flow.selector, new.flow.mark)
    return lesser if same else replace(lesser, flow=told_as)


def _lesser_meters(old: LinkPlan, new: LinkPlan, moving: Sequence[Entry] = ()) -> LinkPlan:
    classes = {}
    for c, limits in old.classes.items():
        moving_bps = -(-sum(e.frame_bps for e in moving if e.flow.flow_class is c) // 1000) * 1000  # kbit/s
        lesser_bps = min(limits.meter_bps, max(moving_bps, new.classes[c].meter_bps))
        classes[c] = limits if lesser_bps == limits.meter_bps else replace(limits, meter_bps=lesser_bps)
    return old if all(map(is_, classes.values(), old.classes.values())) else replace(old, classes=classes)


def _changed(old: Plan, new: Plan) -> list[Hop]:
    """Return the links of a plan for which another one has other values."""
    return [name for name in old.hops_apart(new) if name in old.links]


def _same_queues(old: Plan, new: Plan) -> bool:
    if old.links.keys() != new.links.keys():
        return False
    return all(_queues(old.links[name]) == _queues(new.links[name]) for name in _changed(old, new))


def _queues(link: LinkPlan) -> tuple[int, dict[FlowClass, int]]:
    return link.circuit_bps, {c: limits.queue_bps for c, limits in link.classes.items()}


def _above_queues(old: Plan, new: Plan) -> bool:
    """Return whether a meter is above the queue it is to have, so that it must shrink first.

    What a dead circuit's meters let through leaves by another, as long as there is a rule that uses them.
    """
    return any(
        limits.meter_bps > new.links[name].classes[c].queue_bps
        for name in _changed(old, new)
        if not is_dead(name, new)
        for c, limits in old.links[name].classes.items()
    )


def switch_changes(stage: Stage, old: Plan, new: Plan) -> tuple[Change, ...]:
    """Return what bringing the switches' meters or queues from one plan to another changes."""

    def bps(plan: Plan, hop: Hop, flow_class: FlowClass) -> int:
        limits = plan.links[hop].classes[flow_class]
        return limits.meter_bps if stage is Stage.METERS else limits.queue_bps

    pairs = ((hop, c) for hop in _changed(new, old) for c in new.links[hop].classes)
    found = (Change(str(hop), c, bps(old, hop, c), bps(new, hop, c)) for hop, c in pairs)
    return tuple(change for change in found if change.from_bps != change.to_bps)


def host_changes(host: str, old: Iterable[Entry], new: Iterable[Entry]) -> tuple[Change, ...]:
    """Return what telling a host of new allocations in place of old ones changes."""
    before, after = {e.flow.name: e.frame_bps for e in old}, {e.flow.name: e.frame_bps for e in new}
    found = (Change(host, name, before.get(name, 0), after.get(name, 0)) for name in before | after)
    return tuple(change for change in found if change.from_bps != change.to_bps)
