"""The network with other circuits than its file has. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from controller.whatif.sections import SupposedCircuitSection
from topology.network import Hop, Link, Network
from topology.problems import Problems
from topology.relinking import relinked


def with_circuits(network: Network, sections: Mapping[str, SupposedCircuitSection], problems: Problems) -> Network:
    """Return the network with other circuits than its file has."""
    known = [circuit.name for circuit in network.circuits]
    for name in sections:
        if name not in known:
            problems.at(name).add(f"there is no such circuit; there are {', '.join(known)}")
    if not sections:
        return network
    ends = {end: far.name for far in network.far_edges for end in (far.name, far.site)}

    def rate_of(circuit: str, link: Link) -> int:
        said = sections.get(circuit)
        return link.rate_bps if said is None or said.rate is None else said.rate

    def behind_bps(far: str) -> int:
        """What is behind a far end carries all that its circuits do, both ways."""
        met = (circuit for circuit in network.circuits if far in (circuit.a_end, circuit.z_end))
        return sum(rate_of(circuit.name, link) for circuit in met for link in network.links_of(circuit))

    def link_of(hop: Hop, link: Link) -> Link:
        """Its rate is that of the link into it, and of the one out of it; its delay is in the first."""
        if link.circuit is None and hop.tail in ends and ends.get(hop.head) == ends[hop.tail]:
            return replace(link, rate_bps=behind_bps(ends[hop.tail]))
        name = link.circuit or hop.tail
        rate_bps, said = rate_of(name, link), sections.get(name)
        if link.circuit is None or said is None or said.delay is None:
            return replace(link, rate_bps=rate_bps)
        return replace(link, rate_bps=rate_bps, delay_us=said.delay, is_bound=False)

    return relinked(network, network.framing, link_of)
