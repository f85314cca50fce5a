"""What switches and their queues really hold, whatever a controller believes of it, and what that lets through."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from controller.plan.faults import Closed
from controller.plan.invariant import Layers
from controller.plan.plan import THE_REST, Entry, Flow, Plan
from topology.network import Hop, Network
from topology.protocol import FlowClass


class Ground:
    """The layers below the hosts of a network; at first as a plan for nothing has them."""

    def __init__(self, network: Network, nothing: Plan) -> None:
        self.meters = {n: {c: x.meter_bps for c, x in link.classes.items()} for n, link in nothing.links.items()}
        self.queues = {n: {c: x.queue_bps for c, x in link.classes.items()} for n, link in nothing.links.items()}
        self.circuits = {n: link.circuit_bps for n, link in nothing.links.items()}
        self.routed: dict[str, dict[tuple[str, str, int], Flow]] = {switch.name: {} for switch in network.switches}

    def meter_parts(
        self, switch: str, plan: Plan, shut: Closed, *, no_higher: bool = False
    ) -> Iterator[Callable[[], None]]:
        """Yield what a switch is told, one after the other: meters that shrink, then rules, then meters that grow."""
        hops = [hop for hop in plan.links if hop.tail == switch]
        wanted = {n: {c: x.meter_bps for c, x in plan.links[n].classes.items()} for n in hops}
        for n in hops:
            if no_higher or n in shut.unsure:
                wanted[n] = {c: min(bps, self.meters[n][c]) for c, bps in wanted[n].items()}
        lower = {n: {c: min(bps, self.meters[n][c]) for c, bps in by_class.items()} for n, by_class in wanted.items()}
        for n in hops:
            yield lambda n=n: self.meters.update({n: lower[n]})  # type: ignore[misc]
        routed = {seen_as(e.flow): e.flow for e in plan.entries if switch in e.flow.path}
        yield lambda: self.routed.update({switch: routed})
        for n in hops:
            yield lambda n=n: self.meters.update({n: wanted[n]})  # type: ignore[misc]

    def put_port_queues(self, plan: Plan, hops: Collection[Hop]) -> None:
        """Give ports their queues, in one transaction."""
        for hop in hops:
            self.queues[hop] = {c: x.queue_bps for c, x in plan.links[hop].classes.items()}
            self.circuits[hop] = plan.links[hop].circuit_bps

    def has_queues(self, plan: Plan, hop: Hop) -> bool:
        """Return whether a port has the queues of a plan."""
        wanted = {c: x.queue_bps for c, x in plan.links[hop].classes.items()}
        return (self.queues[hop], self.circuits[hop]) == (wanted, plan.links[hop].circuit_bps)

    def layers(self, acting: Iterable[Entry]) -> dict[Hop, Layers]:
        """Return what hosts that act on entries send to each link, and what the layers below let through."""
        entries = [*acting]
        return {n: self._on(n, [self._seen(e, n) for e in entries]) for n in self.meters}

    def is_as_planned(self, plan: Plan) -> bool:
        """Return whether all is as a plan has it."""
        meters = {n: {c: x.meter_bps for c, x in k.classes.items()} for n, k in plan.links.items()}
        queues = {n: {c: x.queue_bps for c, x in k.classes.items()} for n, k in plan.links.items()}
        routed = {s: {seen_as(e.flow): e.flow for e in plan.entries if s in e.flow.path} for s in self.routed}
        return (self.meters, self.queues, self.routed) == (meters, queues, routed)

    def _seen(self, entry: Entry, link: Hop) -> Entry | None:
        """Return what a host acts on as it is led over a link: by its first switch, and by the link's own."""
        first, own = (self._led(entry.flow, switch) for switch in (entry.flow.path[1], link.tail))
        crosses = first is not None and own is not None and link in first.links and link in own.links
        return replace(entry, flow=first) if crosses else None

    def _led(self, flow: Flow, switch: str) -> Flow | None:
        """Return the flow that a switch takes one for: by its mark, or else for the rest of its pair."""
        rules, seen = self.routed[switch], seen_as(flow)
        return rules.get(seen, rules.get((*seen[:2], 0)))

    def _on(self, link: Hop, seen: list[Entry | None]) -> Layers:
        crossing = [e for e in seen if e is not None]
        hosts = {c: sum(e.frame_bps for e in crossing if e.flow.flow_class is c) for c in FlowClass}
        return Layers(hosts, self.meters[link], self.queues[link], self.circuits[link])


def seen_as(flow: Flow) -> tuple[str, str, int]:
    """Return what a switch sees of a flow: the pair of hosts, and its mark; the rest it matches without one."""
    return flow.host, flow.target, 0 if flow.selector == THE_REST else flow.mark or 0
