"""The ports of a network at which a plan's senders converge: what a start of all of them needs there. Pure."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from controller.plan.bursts import (
    BurstMeasure,
    Choice,
    Sender,
    Source,
    chosen_unpaced,
    departure_bytes,
    needed_bytes,
)
from controller.plan.plan import Entry, Plan
from topology.network import Hop, Network
from topology.printable import shown_names
from topology.units import shown_rate, shown_size
from topology.wire import Layer, converted_bps

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PortBurst:
    """A start of all senders that meet at a switch's port, at one instant.

    Attributes:
        link: the direction that leaves by the port.
        circuit: the circuit that it is; None on a site's own network.
        hosts: who sends through it.
        window_bytes: the windows of all, in frames.
        unpaced_bytes: what the port needs if nobody is paced.
        chosen: what the senders do: those with an agent first, then those without.
        buffer_bytes: what the port holds.
    """

    link: Hop
    circuit: str | None
    hosts: tuple[str, ...]
    window_bytes: int
    unpaced_bytes: int
    chosen: tuple[BurstMeasure, ...]
    buffer_bytes: int

    @property
    def chosen_bytes(self) -> int:
        """What the port needs as chosen."""
        return sum(c.needed_bytes for c in self.chosen)

    @property
    def fits(self) -> bool:
        """Whether the port holds that."""
        return self.chosen_bytes <= self.buffer_bytes


def port_bursts(plan: Plan, network: Network, paced: Collection[str]) -> tuple[PortBurst, ...]:
    """Return every switch port that the plan's data crosses, with what a start of all its senders needs there.

    Args:
        plan: who may send how much; a host without an agent is taken to send the same window, but at once.
        network: where.
        paced: the hosts whose agent holds the plan.
    """
    switches = {switch.name for switch in network.switches}
    by_link: dict[Hop, list[Entry]] = {}
    for entry in plan.entries:
        for hop in entry.flow.links:
            by_link.setdefault(hop, []).append(entry)
    crossed = (hop for hop in (Hop(t, h) for t, h, _ in network.links()) if hop.tail in switches and hop in by_link)
    return tuple(_Port(plan, network, hop).burst(by_link[hop], paced) for hop in crossed)


class _Port:
    """A switch's port under a plan."""

    def __init__(self, plan: Plan, network: Network, hop: Hop) -> None:
        self._plan, self._network = plan, network
        self._hop, self._link = hop, network.link(*hop)
        self.rate_bps = max(1, self._carried_bps(hop))
        self.buffer_bytes = self._link.buffer_bytes

    def _carried_bps(self, hop: Hop) -> int:
        """Return what a link carries now, on the wire: a circuit may have less to give than its line."""
        planned = self._plan.links.get(hop)
        return self._network.link(*hop).rate_bps if planned is None else planned.wire_bps

    def burst(self, crossing: Sequence[Entry], paced: Collection[str]) -> PortBurst:
        """Return what a start of all entries that cross the port needs."""
        held = [e for e in crossing if e.flow.machine in paced]
        others = [e for e in crossing if e.flow.machine not in paced]
        # Beside others the paced ones count on no more than their shares of the port, the others on what these leave.
        shares_bps = sum(self._wire_bps(e) for e in held)
        own_bps = shares_bps if others else self.rate_bps
        chosen = [self._paced(held, min(own_bps, self.rate_bps))] if held else []
        if others:
            left_bps = max(1, self.rate_bps - shares_bps)
            free_bytes = self.buffer_bytes - sum(c.needed_bytes for c in chosen)
            chosen.append(chosen_unpaced(self._senders(others), left_bps, free_bytes))
        return PortBurst(
            link=self._hop,
            circuit=self._link.circuit,
            hosts=tuple(dict.fromkeys(e.flow.host for e in crossing)),
            window_bytes=self.frames_bytes(crossing),
            unpaced_bytes=needed_bytes(self._sources(crossing, self._window_source), self.rate_bps),
            chosen=tuple(chosen),
            buffer_bytes=self.buffer_bytes,
        )

    def _paced(self, entries: Sequence[Entry], port_bps: int) -> BurstMeasure:
        hosts = tuple(dict.fromkeys(e.flow.host for e in entries))
        sources = self._sources(entries, self._paced_source)
        if sum(s.then_bps for s in sources) > port_bps:  # on a site's own network: the plan divides circuits
            held_bytes = self.frames_bytes(entries)
            why = (
                f"more than {shown_rate(self.rate_bps)}, so their windows can all wait there: {shown_size(held_bytes)}"
            )
            return BurstMeasure(Choice.PACE, hosts, held_bytes, f"their shares are together {why}")
        held_bytes = needed_bytes(sources, port_bps)
        count = f"{len(entries)} allocation{'s' if len(entries) > 1 else ''}"
        sizes = f"{shown_size(held_bytes)} at once into {shown_size(self.buffer_bytes)}"
        puts = f"{count} of {shown_names(hosts)} can put {sizes}"
        return BurstMeasure(Choice.PACE, hosts, held_bytes, f"held at their shares by agents, {puts}")

    def frames_bytes(self, entries: Sequence[Entry]) -> int:
        """Return the windows of some entries, in frames."""
        return sum(e.window_segments for e in entries) * self._network.framing.segment_bytes(Layer.FRAME)

    def _sources(self, entries: Sequence[Entry], source: Callable[[Sequence[Entry]], Source]) -> list[Source]:
        """Return what each side brings: all that come by the same link are one."""
        return [source(members) for members in _grouped(entries, lambda e: self._earlier(e)[-1]).values()]

    def _senders(self, entries: Sequence[Entry]) -> list[Sender]:
        """Return each host with its whole window."""
        by_host = _grouped(entries, lambda e: e.flow.host)
        return [Sender(host, self._window_source(members)) for host, members in by_host.items()]

    def _window_source(self, entries: Sequence[Entry]) -> Source:
        return Source(self._nic_bps(entries), self.frames_bytes(entries))

    def _paced_source(self, entries: Sequence[Entry]) -> Source:
        burst_bytes = sum(departure_bytes(e.payload_bps, self._network.framing) for e in entries)
        return Source(self._nic_bps(entries), burst_bytes, sum(self._wire_bps(e) for e in entries))

    def _nic_bps(self, entries: Sequence[Entry]) -> int:
        """Return how fast entries from one side can come: as the links before the port let them."""
        sides = {self._earlier(e)[-1] for e in entries}
        hosts = {(e.flow.host, min(self._carried_bps(hop) for hop in self._earlier(e))) for e in entries}
        return max(1, min(sum(self._carried_bps(hop) for hop in sides), sum(bps for _, bps in hosts)))

    def _earlier(self, entry: Entry) -> tuple[Hop, ...]:
        """Return the hops of an entry before it comes to the port."""
        return entry.flow.links[: entry.flow.links.index(self._hop)]

    def _wire_bps(self, entry: Entry) -> int:
        return converted_bps(entry.frame_bps, Layer.FRAME, Layer.WIRE, self._network.framing)


def _grouped(entries: Sequence[Entry], key: Callable[[Entry], T]) -> dict[T, list[Entry]]:
    groups: dict[T, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return groups
