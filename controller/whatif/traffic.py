"""All that is sent, at the rates that it has until something happens, and what of circuits that uses. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from controller.plan.keys import FlowId
from controller.plan.plan import Entry, Flow
from controller.whatif.movers import Mover
from controller.whatif.outcomes import CircuitUse
from controller.whatif.rating import Rating
from controller.whatif.receivers import Receivers
from controller.whatif.sendings import Sending, delay_to_us
from controller.whatif.underway import Underway
from topology.network import Hop, Network

SLICES = 240  # of the use of circuits over time
_NO_PAUSE = Mover()


class SimulatedTraffic:
    """What is sent.

    Attributes:
        receivers: what the stores at its ends do.
        sendings: by flow.
        standing: those of them that are always there.
        transfers: by name, what is under way.
        use: what circuits have carried.
        uses_bps: what they carry now, by direction.
        ends_in_us: how soon the first sending ends, or a store is full or empty; None if never.
    """

    def __init__(self, network: Network, receivers: Receivers, from_us: int, until_us: int) -> None:
        self._network = network
        self.receivers = receivers
        self.sendings: dict[FlowId, Sending] = {}
        self.standing: dict[FlowId, Sending] = {}
        self.transfers: dict[str, Underway] = {}
        self._circuit_hops = dict.fromkeys(Hop(tail, head) for tail, head, _ in network.circuit_links)
        slice_us = -(-(until_us - from_us) // SLICES)
        self.use = CircuitUse(from_us, slice_us, {str(hop): [0] * SLICES for hop in self._circuit_hops})
        self.uses_bps: dict[str, int] = {}
        self.ends_in_us: int | None = None
        self._rating = Rating(network, receivers)

    def stands(self, flows: Iterable[Flow], now_us: int) -> None:
        """Have flows that always send."""
        for flow in flows:
            one = Sending(flow.name, flow.machine, flow.target, None, _NO_PAUSE, since_us=now_us)
            self.sendings[flow.name] = self.standing[flow.name] = one

    def go_on(self, from_us: int, until_us: int) -> None:
        """Let all of it go on for a time."""
        for one in self.sendings.values():
            one.goes_on(until_us - from_us)
        self.receivers.go_on(until_us - from_us)
        for known in self.transfers.values():
            known.goes_on(from_us, until_us, self._network)
        self.use.add(self.uses_bps, from_us, until_us)

    def rate(self, held: Sequence[Entry], dead: frozenset[str], now_us: int) -> Mapping[Hop, int]:
        """Give every sending its rate; return what that is on the wire of each link.

        Args:
            held: what the hosts act on, where the rules in force send it.
            dead: circuits that carry nothing.
            now_us: Unix time.
        """
        active = [one for one in self.sendings.values() if one.ended_us is None]
        given = self._rating.given(active, held, dead)
        for one in active:
            entry, rate_bps = given.entries.get(one.flow), given.payload_bps.get(one.flow, 0)
            if rate_bps != one.rate_bps or (entry and entry.flow.path != one.path):
                one.rate_bps, one.since_us = rate_bps, now_us
            one.path = entry.flow.path if entry else one.path
        self.uses_bps = {str(hop): bps for hop, bps in given.loads_bps.items() if hop in self._circuit_hops}
        ends_us = (self.receivers.changes_in_us, *(one.ends_in_us for one in active))
        self.ends_in_us = min((in_us for in_us in ends_us if in_us is not None), default=None)
        return given.loads_bps

    def loses(self, circuit: str, now_us: int) -> Iterator[Sending]:
        """Take back what was on a circuit that dies; yield what had ended, and is to begin again a round trip later."""
        for one in tuple(self.sendings.values()):
            delay_us = delay_to_us(self._network, one.path, circuit)
            if delay_us is None or (one.ended_us is not None and now_us - one.ended_us >= delay_us):
                continue  # it does not go there, or the last of it has passed
            one.loses(now_us, delay_us)
            if one.ended_us is not None:
                one.ended_us = one.confirmed_us = None
                one.rate_bps = 0
                del self.sendings[one.flow]
                yield one
