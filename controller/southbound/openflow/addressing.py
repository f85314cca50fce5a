"""What a packet from or for an address looks like to a switch, in both families. Pure.

Who looks for a neighbour does so by ARP (RFC 826), or by IPv6's neighbour discovery (RFC 4861): a solicitation names
the address that is sought as its target, and is from the one who seeks; an advertisement names its own as its target.
"""

from collections.abc import Iterable
from functools import lru_cache

from controller.southbound.openflow.state import MatchValue
from topology.addresses import Prefix
from topology.network import Network

IPV4, ARP, IPV6 = 0x0800, 0x0806, 0x86DD
_ICMPV6 = 58
_SOLICITATION, _ADVERTISEMENT = 135, 136  # RFC 4861 sections 4.3 and 4.4
_CODE = 0  # sections 7.1.1 and 7.1.2: hosts do not look at one with another code

Fields = dict[str, MatchValue]


@lru_cache(maxsize=1024)
def ip_types(network: Network) -> tuple[int, ...]:
    """Return the Ethernet types of IP packets in a network: IPv6's only if one of its hosts has such an address."""
    return (IPV4, IPV6) if any(prefix.version == 6 for host in network.hosts for prefix in host.prefixes) else (IPV4,)


def sent_by(prefix: Prefix) -> Fields:
    """Return what an IP packet from an address matches."""
    if prefix.version == 4:
        return {"eth_type": IPV4, "ipv4_src": str(prefix)}
    return {"eth_type": IPV6, "ipv6_src": str(prefix)}


def named_by(prefix: Prefix) -> tuple[Fields, ...]:
    """Return what packets match that say where an address is: whoever believes a false one sends it to a stranger."""
    if prefix.version == 4:
        return ({"eth_type": ARP, "arp_spa": str(prefix)},)
    asks, answers = _seeking(_SOLICITATION), _seeking(_ADVERTISEMENT)
    return asks | {"ipv6_src": str(prefix)}, answers | {"ipv6_nd_target": str(prefix)}


def sent_to(prefix: Prefix) -> tuple[Fields, ...]:
    """Return what packets for an address match, but for IPv6's neighbour discovery."""
    if prefix.version == 4:
        return {"eth_type": IPV4, "ipv4_dst": str(prefix)}, {"eth_type": ARP, "arp_tpa": str(prefix)}
    return ({"eth_type": IPV6, "ipv6_dst": str(prefix)},)


def seeking(prefix: Prefix) -> tuple[Fields, ...]:
    """Return what neighbour discovery matches that is for who has an IPv6 address; nothing for IPv4, see ARP."""
    if prefix.version == 4:
        return ()
    asks, answers = _seeking(_SOLICITATION), _seeking(_ADVERTISEMENT)
    return asks | {"ipv6_nd_target": str(prefix)}, answers | {"ipv6_dst": str(prefix)}


def marked(network: Network, dscp: int) -> Iterable[Fields]:
    """Return what IP packets with a code point match."""
    return ({"eth_type": ether_type, "ip_dscp": dscp} for ether_type in ip_types(network))


def _seeking(icmpv6_type: int) -> Fields:
    """Return what one sort of neighbour discovery matches.

    Its code is named because Open vSwitch (3.1) leaves the target out of what it gives to the kernel where a rule does
    not name the code: for ten seconds, whoever else was sought from there was sought at the same port.
    """
    return {"eth_type": IPV6, "ip_proto": _ICMPV6, "icmpv6_type": icmpv6_type, "icmpv6_code": _CODE}
