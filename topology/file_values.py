"""The values in a network's file: each read from what YAML made of it, within bounds, or refused with the cure."""

import re
from ipaddress import IPv4Network, IPv6Address, ip_address, ip_network
from zlib import crc32

from topology import units
from topology.addresses import Address, Prefix, prefix_of
from topology.relinking import VLAN_VIDS

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,14}", re.ASCII)  # Linux: IFNAMSIZ less its end
_DPID = re.compile(r"(?:0x)?[0-9a-fA-F]{16}", re.ASCII)
LEAST_RATE_BPS, MOST_RATE_BPS = 10**6, 100 * 10**12
MOST_DELAY_US = 10_000_000
MOST_BUFFER_BYTES = 10**12
MTUS = range(576, 9217)
PORT_NUMBERS = range(1, 0xFF00)  # OpenFlow 1.3: OFPP_MAX


def is_name(text: str) -> bool:
    """Return whether something can have this name."""
    return _NAME.fullmatch(text) is not None


def name(found: object) -> str:
    """Return a name.

    Raises:
        ValueError: it is not text, or has characters that a name cannot have.
    """
    text = _text(found, "a name")
    if not is_name(text):
        raise ValueError(f'"{text[:80]}" is not a name: letters, digits, ".", "_" and "-", at most 63, no spaces')
    return text


def interface(found: object) -> str:
    """Return the name of a port or a bridge, which is a Linux interface.

    Raises:
        ValueError: no interface can have this name.
    """
    text = _text(found, "an interface's name")
    if not _INTERFACE.fullmatch(text):
        raise ValueError(f'"{text[:80]}" is no interface: at most 15 letters, digits, ".", "_", "-" (see `ip link`)')
    return text


def dpid(found: object) -> int:
    """Return a datapath id.

    Raises:
        ValueError: it is not 16 hexadecimal digits in quotes.
    """
    cure = 'as 16 hexadecimal digits in quotes, as `ovs-vsctl get bridge br0 datapath_id` shows it: "0000000000000001"'
    if not isinstance(found, str) or not _DPID.fullmatch(found) or not int(found, 16):
        raise ValueError(f"write the datapath id {cure}")
    return int(found, 16)


def address(found: object) -> Address:
    """Return a host's address.

    Raises:
        ValueError: it is not one address that a host can have.
    """
    text = _text(found, "an address")
    if "/" in text:
        raise ValueError(f"{text[:80]} is a prefix: write `addresses: [{text[:80]}]`")
    try:
        found_address = ip_address(text)
    except ValueError as error:
        raise ValueError(f'"{text[:80]}" is not an address, such as 192.0.2.10 or 2001:db8::10') from error
    _check_reachable(prefix_of(found_address), text)
    return found_address


def only_address(found: object) -> Address:
    """Return a host's address where it has no other.

    Raises:
        ValueError: it is not one address that a host can have, or nobody could send data there.
    """
    known = address(found)
    _check_sendable((known,))
    return known


def host_addresses(found: object) -> tuple[Address | Prefix, ...]:
    """Return all that a host is reached by: addresses, and prefixes of a cluster that it stands for.

    Raises:
        ValueError: it is no list of them, or nobody could send data there.
    """
    if not isinstance(found, list) or not found:
        raise ValueError("must be a list, such as [192.0.2.10, 2001:db8::10]")
    whole = tuple(_prefix(each) if isinstance(each, str) and "/" in each else address(each) for each in found)
    _check_sendable(whole)
    return whole


def prefixes(found: object) -> tuple[Prefix, ...]:
    """Return who can be reached at a site that is not ours.

    Raises:
        ValueError: it is no list of prefixes, or nobody could send data to one.
    """
    if not isinstance(found, list) or not found:
        raise ValueError("must be a list, such as [198.51.100.0/24, 2001:db8:5::/48]")
    whole = tuple(map(_prefix, found))
    _check_sendable(whole)
    return whole


def _prefix(found: object) -> Prefix:
    text = _text(found, "a prefix")
    try:
        prefix = ip_network(text)
    except ValueError as error:
        try:
            cure = f"has bits beyond its length: write {ip_network(text, strict=False)}"
        except ValueError:
            cure = "is not a prefix, such as 198.51.100.0/24 or 2001:db8:5::/48"
        raise ValueError(f'"{text[:80]}" {cure}') from error
    _check_reachable(prefix, text)
    return prefix


def _check_sendable(whole: tuple[Address | Prefix, ...]) -> None:
    if all(prefix_of(each).is_link_local for each in whole):
        raise ValueError(f"{whole[0]} is a link-local address: add one that data can be sent to")


def _check_reachable(prefix: Prefix, text: str) -> None:
    if "%" in text:  # RFC 4007 section 11: a zone, which no packet has
        plain = re.sub("%[^/]*", "", text)
        raise ValueError(f"{text[:80]} names an interface of the machine where it was looked up: write {plain[:80]}")
    is_mapped = isinstance(prefix.network_address, IPv6Address) and prefix.network_address.ipv4_mapped
    if prefix.is_multicast or prefix.is_unspecified or prefix.is_loopback or is_mapped:
        raise ValueError(f"{text} is not an address that others can send to")
    if prefix.is_link_local and prefix.num_addresses > 1:
        raise ValueError(f"{text} is for link-local addresses: write the host's own, as `ip address` shows it")


def mac_of(known: Address | Prefix) -> str:
    """Return the hardware address that a host has where the network is emulated: made of its first address.

    >>> mac_of(ip_address("10.20.20.100"))
    '02:00:0a:14:14:64'
    """
    prefix = prefix_of(known)
    packed = prefix.network_address.packed
    made = (0, *packed) if isinstance(prefix, IPv4Network) else (6, *crc32(packed).to_bytes(4, "big"))
    return ":".join(f"{byte:02x}" for byte in (2, *made))


def line_rate_bps(found: object) -> int:
    """Return a rate on the wire, bit/s.

    Raises:
        ValueError: it is none, or one that no line has.
    """
    bounds = f"between {units.shown_rate(LEAST_RATE_BPS)} and {units.shown_rate(MOST_RATE_BPS)}"
    return _within(units.rate_bps(str(found)), LEAST_RATE_BPS, MOST_RATE_BPS, found, bounds)


def delay_us(found: object) -> int:
    """Return a one-way delay, microseconds.

    Raises:
        ValueError: it is none, or one that no circuit has.
    """
    return _within(units.duration_us(str(found)), 1, MOST_DELAY_US, found, "between 1 us and 10 s")


def buffer_bytes(found: object) -> int:
    """Return what a port holds, bytes.

    Raises:
        ValueError: it is no size, or one that no port has.
    """
    return _within(units.size_bytes(str(found)), 0, MOST_BUFFER_BYTES, found, "at most 1 TB")


def mtu_bytes(found: object) -> int:
    """Return the largest IP packet, bytes.

    Raises:
        ValueError: it is no whole number, or out of bounds.
    """
    return _number(found, MTUS)


def port_number(found: object) -> int:
    """Return an OpenFlow port number.

    Raises:
        ValueError: it is no whole number, or out of bounds.
    """
    return _number(found, PORT_NUMBERS)


def vlan_vid(found: object) -> int:
    """Return a VLAN.

    Raises:
        ValueError: it is no whole number, or out of bounds.
    """
    return _number(found, VLAN_VIDS)


def is_so(found: object) -> bool:
    """Return whether something is so.

    Raises:
        ValueError: it is neither yes nor no.
    """
    if not isinstance(found, bool):
        raise ValueError(f"{str(found)[:80]} is neither yes nor no")  # noqa: TRY004 what is wrong is the file
    return found


def _text(found: object, kind: str) -> str:
    if isinstance(found, bool):  # YAML 1.1 has it of yes, NO, On, off and more, and which one it was is lost
        raise ValueError('YAML reads this as yes or no: put what you wrote in quotes, as "NO"')  # noqa: TRY004 as below
    if not isinstance(found, str):
        raise ValueError(  # noqa: TRY004 what is wrong is the file
            f'{str(found)[:80]} is not {kind} to YAML: put it in quotes, "{str(found)[:80]}"'
        )
    return found


def _number(found: object, allowed: range) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or found not in allowed:
        raise ValueError(f"{str(found)[:80]} is not a whole number from {allowed.start} to {allowed.stop - 1}")
    return found


def _within(number: int, least: int, most: int, found: object, bounds: str) -> int:
    if not least <= number <= most:
        raise ValueError(f"{str(found)[:80]} is out of bounds: it must be {bounds}")
    return number
