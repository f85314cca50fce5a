"""Addresses and prefixes of both families, and which of them two hosts can use with each other. Pure."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, collapse_addresses, ip_network

Address = IPv4Address | IPv6Address
Prefix = IPv4Network | IPv6Network
_WITH_PORT = re.compile(r"(.*):([0-9]{1,5})", re.ASCII)


def prefix_of(known: Address | Prefix) -> Prefix:
    """Return an address as the prefix that holds it alone; a prefix as it is."""
    return known if isinstance(known, IPv4Network | IPv6Network) else ip_network(known)


def shown_address(known: Address | Prefix) -> str:
    """Return an address, or a prefix, as people write it: one that holds a single address without its length.

    >>> shown_address(ip_network("192.0.2.7/32")), shown_address(ip_network("2001:db8::/48"))
    ('192.0.2.7', '2001:db8::/48')
    """
    prefix = prefix_of(known)
    return str(prefix.network_address) if prefix.prefixlen == prefix.max_prefixlen else str(prefix)


def unmapped(host: str) -> str:
    """Return an address as people know it: who comes by IPv4 to a socket of both families has an IPv4-mapped one.

    RFC 4291 section 2.5.5.2.

    >>> unmapped("::ffff:192.0.2.7"), unmapped("2001:db8::1")
    ('192.0.2.7', '2001:db8::1')
    """
    return host.removeprefix("::ffff:")


def shown_peer(address: object) -> str:
    """Return the other end of a socket, as people write it.

    >>> shown_peer(("2001:db8::1", 4711, 0, 0)), shown_peer(("192.0.2.7", 4711)), shown_peer("")
    ('[2001:db8::1]:4711', '192.0.2.7:4711', 'unix')
    >>> shown_peer(("::ffff:192.0.2.7", 4711, 0, 0))  # by IPv4, to a socket of both families
    '192.0.2.7:4711'
    """
    if not isinstance(address, tuple):
        return str(address) or "unix"
    host, port = unmapped(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_and_port(text: str) -> tuple[str, int] | None:
    """Return the two parts of ``ADDRESS:PORT``, the first as it is written; None if there is no such port.

    >>> host_and_port("ctl.example.org:443"), host_and_port("[2001:db8::1]:6640")
    (('ctl.example.org', 443), ('[2001:db8::1]', 6640))
    >>> host_and_port("192.0.2.7:99999"), host_and_port("192.0.2.7:0"), host_and_port("192.0.2.7")
    (None, None, None)
    """
    match = _WITH_PORT.fullmatch(text)
    return (match[1], int(match[2])) if match and 0 < int(match[2]) < 65536 else None


def is_within(inner: Prefix, outer: Prefix) -> bool:
    """Return whether all addresses of a prefix are in another one; those of two families never are.

    >>> is_within(ip_network("192.0.2.7/32"), ip_network("192.0.2.0/24"))
    True
    >>> is_within(ip_network("::/0"), ip_network("0.0.0.0/0"))
    False
    """
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)


def families(prefixes: Iterable[Prefix]) -> frozenset[int]:
    """Return the versions of IP, 4 or 6, that some prefixes are reached by from anywhere.

    Link-local addresses (RFC 4291 section 2.5.6) do not count: nobody sends data to them.
    """
    return frozenset(prefix.version for prefix in prefixes if not prefix.is_link_local)


def reached_from(sender: Iterable[Prefix], target: Iterable[Prefix]) -> tuple[Prefix, ...]:
    """Return those of a target's prefixes that a sender can send data to: of the families that both have."""
    of_sender = families(sender)
    return tuple(prefix for prefix in target if prefix.version in of_sender and not prefix.is_link_local)


def joined_prefixes(prefixes: Iterable[Prefix]) -> tuple[Prefix, ...]:
    """Return the fewest prefixes that hold the addresses of some, and no other.

    >>> list(map(str, joined_prefixes(map(ip_network, ("192.0.2.0", "192.0.2.1", "192.0.2.2", "2001:db8::")))))
    ['192.0.2.0/31', '192.0.2.2/32', '2001:db8::/128']
    """
    known = tuple(prefixes)
    of_4 = collapse_addresses(p for p in known if isinstance(p, IPv4Network))
    of_6 = collapse_addresses(p for p in known if isinstance(p, IPv6Network))
    return (*of_4, *of_6)
