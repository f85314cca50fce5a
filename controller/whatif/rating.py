"""What every sending is given: by the plan, by what else is on its way, and by the store at its end. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.plan.keys import FlowId
from controller.plan.plan import Entry
from controller.whatif.fluid import filled, overloaded
from controller.whatif.receivers import Receivers
from controller.whatif.sendings import Sending, rates_bps, wire_bps
from topology.network import Hop, Network
from topology.wire import Layer, converted_bps


@dataclass(frozen=True, slots=True)
class Given:
    """Rates between two events.

    Attributes:
        payload_bps: by flow.
        entries: by flow that is in the plan, its allocation on the way that it takes.
        loads_bps: by link, on the wire.
    """

    payload_bps: Mapping[FlowId, int]
    entries: Mapping[FlowId, Entry]
    loads_bps: Mapping[Hop, int]


class Rating:
    """Gives rates on one network."""

    def __init__(self, network: Network, receivers: Receivers) -> None:
        self._network = network
        self._receivers = receivers
        self._rates_bps = {Hop(tail, head): link.rate_bps for tail, head, link in network.links()}

    def given(self, active: Sequence[Sending], held: Sequence[Entry], dead: frozenset[str]) -> Given:
        """Return the rates of those that have something to send.

        Args:
            active: they.
            held: what the hosts act on, where the rules in force send it.
            dead: circuits that carry nothing.
        """
        by_plan = rates_bps(active, held, self._network, dead)
        entries = {name: entry for name, (_, entry) in by_plan.items()}
        ways = {name: entry.flow.links for name, entry in entries.items()}
        rates = {name: bps for name, (bps, _) in by_plan.items()}
        framings = {name: self._network.framing_of(entry.flow.path) for name, entry in entries.items()}
        wires = {name: wire_bps(bps, framings[name]) for name, bps in rates.items()}
        if overloaded(wires, ways, self._rates_bps):
            for name, bps in filled(wires, ways, self._rates_bps).items():
                if bps < wires[name]:
                    rates[name] = converted_bps(bps, Layer.WIRE, Layer.PAYLOAD, framings[name])
        rates = self._receivers.limited(rates, {name: entry.flow for name, entry in entries.items()})
        loads: dict[Hop, int] = {}
        for name, payload_bps in rates.items():
            is_as_planned = payload_bps == by_plan[name][0]
            load_bps = wires[name] if is_as_planned else wire_bps(payload_bps, framings[name])
            if load_bps:
                for hop in ways[name]:
                    loads[hop] = loads.get(hop, 0) + load_bps
        return Given(rates, entries, loads)
