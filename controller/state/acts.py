"""What hosts may be acting on, and how much that is on each link; found where it differs from the last look. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import is_

from controller.plan.differences import differing_keys, with_changed
from controller.plan.failover import turned
from controller.plan.plan import Entry, Plan
from controller.state.reported import NO_LEASES, HostState, Reported
from topology.network import Hop
from topology.protocol import FlowClass


@dataclass(frozen=True, slots=True)
class Acts:
    """What every host may be acting on at an instant.

    Attributes:
        hosts: what is known of each, from which it was found.
        meters: the plan whose rules are in force; None before the first.
        by_host: the most that each may be acting on, where those rules send it; nothing of hosts without any.
        bps: by link and class, the sum of that, bit/s of Ethernet frames; a link may be left with zeros.
        ends_us: by host that will act on less by itself, when that begins, elapsed time.
    """

    hosts: Mapping[str, HostState] = field(default_factory=dict)
    meters: Plan | None = None
    by_host: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    bps: Mapping[Hop, Mapping[FlowClass, int]] = field(default_factory=dict)
    ends_us: Mapping[str, int] = field(default_factory=dict)


NOTHING = Acts()


def acts(reported: Reported, meters: Plan | None, elapsed_us: int, before: Acts = NOTHING) -> Acts:
    """Return what hosts may be acting on now.

    The answer is the same whatever it is worked out from, if that is not later, and costs what differs from it.
    """
    changed = dict.fromkeys(differing_keys(before.hosts, reported.hosts))
    changed.update((name, None) for name, at_us in before.ends_us.items() if at_us <= elapsed_us)
    if meters is not None and meters is not before.meters:
        changed.update(dict.fromkeys(meters.hosts_apart(before.meters) if before.meters else before.hosts))
    if not changed:
        return Acts(reported.hosts, meters, before.by_host, before.bps, before.ends_us)
    acting, ends_us = dict[str, tuple[Entry, ...]](), dict(before.ends_us)
    for name in changed:
        ends_us.pop(name, None)
        leases = reported.hosts[name].leases if name in reported.hosts else NO_LEASES
        if (at_us := leases.changes_us(elapsed_us)) is not None:
            ends_us[name] = at_us
        held, had = leases.acting(elapsed_us), before.by_host.get(name, ())
        now = turned(held, meters) if meters else held
        if len(now) != len(had) or not all(map(is_, now, had)):
            acting[name] = now
    if not acting:
        return Acts(reported.hosts, meters, before.by_host, before.bps, ends_us)
    sums = _Sums(before.bps)
    for name, now in acting.items():
        sums.add(before.by_host.get(name, ()), -1)
        sums.add(now, 1)
    return Acts(reported.hosts, meters, with_changed(before.by_host, acting), sums.by_hop, ends_us)


class _Sums:
    """Sums by link and class; those of a link are copied before they change."""

    def __init__(self, by_hop: Mapping[Hop, Mapping[FlowClass, int]]) -> None:
        self.by_hop: dict[Hop, Mapping[FlowClass, int]] = dict(by_hop)
        self._own: dict[Hop, dict[FlowClass, int]] = {}

    def add(self, entries: Iterable[Entry], sign: int) -> None:
        """Add what entries send by each link of theirs, or take it away."""
        for entry in entries:
            for hop in dict.fromkeys(entry.flow.links):
                if hop not in self._own:
                    self.by_hop[hop] = self._own[hop] = dict(self.by_hop.get(hop, NO_BPS))
                self._own[hop][entry.flow.flow_class] += sign * entry.frame_bps


NO_BPS: Mapping[FlowClass, int] = dict.fromkeys(FlowClass, 0)
