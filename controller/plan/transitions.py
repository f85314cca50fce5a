"""From one plan to the next without a moment in which any layer lets through more than the circuit.

A sender whose window shrinks is silent until its flight has drained, so what it gives up is free as soon as the
*host has confirmed*, not a round trip later. Meters shrink before queues do and grow after them, because a meter
must never exceed its queue.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from controller.plan.plan import Entry, LinkPlan, Plan
from topology.protocol import FlowClass


class Place(Enum):
    """The layer a step acts on."""

    HOSTS = "hosts"
    METERS = "meters"
    QUEUES = "queues"


@dataclass(frozen=True, slots=True)
class Step:
    """Bring one layer to what ``plan`` says of it; the next step waits for the confirmation."""

    place: Place
    plan: Plan


def transition(old: Plan, new: Plan) -> tuple[Step, ...]:
    """Return the steps from one plan to the next, in order.

    Hosts down to the lesser of both plans; meters likewise; queues to the new plan; meters, then hosts, to the new.
    """
    lesser = _lesser(old, new)
    return (
        Step(Place.HOSTS, lesser),
        Step(Place.METERS, lesser),
        Step(Place.QUEUES, new),
        Step(Place.METERS, new),
        Step(Place.HOSTS, new),
    )


def installation(new: Plan) -> tuple[Step, ...]:
    """Return the steps that install a first plan where none was: the widest layer first."""
    return (Step(Place.QUEUES, new), Step(Place.METERS, new), Step(Place.HOSTS, new))


def _lesser(old: Plan, new: Plan) -> Plan:
    """Return the plan between two (its epoch is odd): each allocation and each meter is the lesser of its two values.

    An allocation that only one of the two knows is absent.
    """
    to_come = {_way(e): e for e in new.entries}
    entries = (min(e, to_come[_way(e)], key=lambda x: x.frame_bps) for e in old.entries if _way(e) in to_come)
    links = {name: _lesser_meters(link, new.links[name]) for name, link in old.links.items()}
    return replace(old, epoch=new.epoch - 1, links=links, entries=tuple(entries))


def _way(entry: Entry) -> tuple[str, FlowClass, tuple[str, ...]]:
    """Return what must be the same of an allocation that goes on: where it counts, and in which class."""
    return entry.flow.name, entry.flow.flow_class, entry.flow.path


def _lesser_meters(old: LinkPlan, new: LinkPlan) -> LinkPlan:
    classes = {
        c: replace(limits, meter_bps=min(limits.meter_bps, new.classes[c].meter_bps))
        for c, limits in old.classes.items()
    }
    return replace(old, classes=classes)


def most(*held: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return, for each flow, the largest allocation among those a host may be acting on.

    Between the sending of an allocation and its confirmation a host may act on either of the two.
    """
    largest: dict[str, Entry] = {}
    for entry in (e for entries in held for e in entries):
        known = largest.get(entry.flow.name)
        if known is None or entry.frame_bps > known.frame_bps:
            largest[entry.flow.name] = entry
    return tuple(largest.values())
