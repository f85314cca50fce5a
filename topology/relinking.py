"""A network again with other links: its circuits in VLANs, or what emulation and switches make of its ports. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from topology.network import Hop, Link, Network, Node
from topology.wire import Framing

VLAN_VIDS = range(1, 4095)  # IEEE 802.1Q: 0 is no VLAN, 4095 is reserved


def tagged(network: Network, vlan_vids: Mapping[str, int]) -> Network:
    """Return the network with some of its circuits handed over as VLANs, at both ends.

    Args:
        network: where.
        vlan_vids: the VLAN of each such circuit by its name; the others stay as they are.

    Raises:
        ValueError: there is no such VLAN.
    """
    for name, vlan_vid in vlan_vids.items():
        if vlan_vid not in VLAN_VIDS:
            raise ValueError(f"{name}: VLAN {vlan_vid} is outside {VLAN_VIDS.start}..{VLAN_VIDS.stop - 1}")

    def changed(_: Hop, link: Link) -> Link:
        return replace(link, vlan_vid=vlan_vids.get(link.circuit or "", link.vlan_vid))

    tags = int(any(changed(Hop(t, h), link).vlan_vid is not None for t, h, link in network.links()))
    return relinked(network, replace(network.framing, vlan_tags=tags), changed)


def relinked(network: Network, framing: Framing, changed: Callable[[Hop, Link], Link]) -> Network:
    """Return a network with the same nodes and circuits whose links are others.

    Args:
        network: that.
        framing: how its segments are wrapped.
        changed: gives, for a hop and its link, the link that there is in its place.
    """
    nodes: tuple[Node, ...] = tuple(network.graph.nodes[name]["node"] for name in network.graph)
    new = Network(network.name, framing, nodes)
    for tail, head, link in network.links():
        new.graph.add_edge(tail, head, link=changed(Hop(tail, head), link))
    for circuit in network.circuits:
        new.add_circuit(circuit.name, (circuit.a_end, circuit.z_end))
    if not network.measured_us:
        return new
    bounds = {link.circuit for _, _, link in new.circuit_links if link.is_bound}
    return new.with_measured({name: us for name, us in network.measured_us.items() if name in bounds})
