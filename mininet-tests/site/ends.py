"""What the file of a network leaves open, as an emulation has it: far ports' names, addresses in prefixes. Pure."""

from ipaddress import IPv4Address, IPv6Address

from topology.addresses import Address, Prefix
from topology.network import Hop, Host, Link, Network
from topology.relinking import relinked


def with_far_ports(network: Network) -> Network:
    """Return the network with a name for each port of a site that is not ours, which its file does not know."""
    far = {edge.name for edge in network.far_edges}
    beyond = {edge.site for edge in network.far_edges}
    hops = [Hop(tail, head) for tail, head, _ in network.links() if tail in far]
    names = {hop: f"x{number}" for number, hop in enumerate(hops)}
    names |= {Hop(host, edge): f"{host}-eth0" for edge, host in hops if host in beyond}

    def changed(hop: Hop, link: Link) -> Link:
        return (
            Link(link.rate_bps, link.delay_us, link.buffer_bytes, link.port_no, names[hop], link.circuit)
            if (hop in names)
            else link
        )

    return relinked(network, network.framing, changed) if far else network


def addresses_of(host: Host) -> tuple[Address, ...]:
    """Return an address of each of a host's prefixes: the only one, or that of a machine behind it."""
    return tuple(_one_of(prefix) for prefix in host.prefixes)


def address_of(host: Host, version: int) -> str:
    """Return the address of a family by which a host is reached; empty if it has none."""
    reached = (one for one in addresses_of(host) if one.version == version and not one.is_link_local)
    return str(next(reached, ""))


def _one_of(prefix: Prefix) -> IPv4Address | IPv6Address:
    return prefix[1 if prefix.num_addresses > 1 else 0]
