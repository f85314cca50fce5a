"""What misbehaving hosts send: Ethernet frames as bytes, of many kinds. Pure."""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address

FLOOD_MAC = "02:00:00:00:66:66"  # every flood's source, so that what of it arrives can be counted
BROADCAST_MAC, MULTICAST_MAC = "ff:ff:ff:ff:ff:ff", "01:00:5e:01:01:01"
PORT = 6000
FULL_BYTES, JUMBO_BYTES, SMALL_BYTES = 1500, 9000, 46  # of IP; the last fills the least Ethernet frame
VARIANTS = 4096  # as many different frames as a flood of random ones has
IPV4, ARP, IPV6, VLAN = 0x0800, 0x0806, 0x86DD, 0x8100
UDP, UNKNOWN_PROTOCOL = 17, 253  # the second is for experiments (RFC 3692)
MORE_FRAGMENTS = 0x2000


@dataclass(frozen=True, slots=True)
class FloodTarget:
    """Whose name a flood uses, whom it is for, and how it is marked.

    Attributes:
        source: IPv4 address it claims to come from.
        target: IPv4 address it goes to.
        target_mac: hardware address it goes to.
        dscp: its code point.
    """

    source: str
    target: str
    target_mac: str
    dscp: int = 0


def frames(kind: str, aim: FloodTarget) -> list[bytes]:
    """Return the frames that a flood of a kind sends in turn.

    Raises:
        KeyError: there is no such kind.
    """
    return KINDS[kind](aim)


def ethernet(target_mac: str, ether_type: int, payload: bytes) -> bytes:
    """Return a frame from the flood's address."""
    addresses = bytes.fromhex((target_mac + FLOOD_MAC).replace(":", ""))
    return addresses + struct.pack(">H", ether_type) + payload


def ip(aim: FloodTarget, size_bytes: int, *, protocol: int = UDP, fragment: int = 0) -> bytes:
    """Return an IPv4 packet of a size; if it is UDP and no later fragment, with a UDP header without checksum.

    Source: RFC 791 section 3.1, RFC 768.
    """
    addresses = IPv4Address(aim.source).packed + IPv4Address(aim.target).packed
    header = struct.pack(">BBHHHBBH", 0x45, aim.dscp << 2, size_bytes, 7, fragment, 64, protocol, 0) + addresses
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    rest_bytes = size_bytes - len(header)
    begins = protocol == UDP and not fragment & 0x1FFF
    body = struct.pack(">HHHH", PORT, PORT, rest_bytes, 0) if begins else b""
    return header[:10] + struct.pack(">H", checksum) + header[12:] + body.ljust(rest_bytes, b"\0")


def _udp(aim: FloodTarget, size_bytes: int = FULL_BYTES) -> bytes:
    return ethernet(aim.target_mac, IPV4, ip(aim, size_bytes))


def _from_anywhere(aim: FloodTarget) -> list[bytes]:
    """Return packets from random addresses, a quarter of them near the planned hosts' own."""
    rng = random.Random(1)
    near = int(IPv4Address(aim.source)) & ~0xFF
    sources = [near | rng.getrandbits(8) if n % 4 == 0 else rng.getrandbits(32) for n in range(VARIANTS)]
    return [_udp(FloodTarget(str(IPv4Address(s)), aim.target, aim.target_mac, aim.dscp)) for s in sources]


def _fragments(aim: FloodTarget) -> list[bytes]:
    """Return the first and a later fragment."""
    offsets = (MORE_FRAGMENTS, MORE_FRAGMENTS | 185)
    return [ethernet(aim.target_mac, IPV4, ip(aim, FULL_BYTES, fragment=offset)) for offset in offsets]


def _arp(aim: FloodTarget, target_mac: str = BROADCAST_MAC) -> bytes:
    """Return the question who has the target's address (RFC 826), as long as a frame may be."""
    sender = bytes.fromhex(FLOOD_MAC.replace(":", "")) + IPv4Address(aim.source).packed
    asked = bytes(6) + IPv4Address(aim.target).packed
    question = struct.pack(">HHBBH", 1, IPV4, 6, 4, 1) + sender + asked
    return ethernet(target_mac, ARP, question.ljust(FULL_BYTES, b"\0"))


def _to_all(aim: FloodTarget) -> list[bytes]:
    """Return a broadcast and a multicast packet."""
    network = str(IPv4Address(int(IPv4Address(aim.target)) | 0xFF))
    packets = ((network, BROADCAST_MAC), ("239.1.1.1", MULTICAST_MAC))
    return [_udp(FloodTarget(aim.source, address, mac, aim.dscp)) for address, mac in packets]


def _ipv6(aim: FloodTarget) -> list[bytes]:
    """Return an IPv6 packet (RFC 8200) marked with the code point."""
    addresses = bytes.fromhex("fd00" + "0" * 26 + "66" + "fd00" + "0" * 26 + "64")
    header = struct.pack(">IHBB", 6 << 28 | aim.dscp << 22, FULL_BYTES - 40, UDP, 64) + addresses
    return [ethernet(aim.target_mac, IPV6, header.ljust(FULL_BYTES, b"\0"))]


def _strange(aim: FloodTarget) -> list[bytes]:
    """Return frames of protocols that nobody knows."""
    types = range(0x9000, 0x9000 + VARIANTS)
    return [ethernet(aim.target_mac, ether_type, bytes(FULL_BYTES)) for ether_type in types]


def _tagged(aim: FloodTarget) -> list[bytes]:
    """Return packets in a VLAN, with the highest priority (IEEE 802.1Q PCP 7)."""
    tag = struct.pack(">HH", 7 << 13 | 5, IPV4)
    return [ethernet(aim.target_mac, VLAN, tag + ip(aim, FULL_BYTES - 4))]


KINDS: dict[str, Callable[[FloodTarget], list[bytes]]] = {
    "udp": lambda aim: [_udp(aim)],
    "small": lambda aim: [_udp(aim, SMALL_BYTES)],
    "jumbo": lambda aim: [_udp(aim, JUMBO_BYTES)],
    "random-sources": _from_anywhere,
    "fragments": _fragments,
    "unknown-protocol": lambda aim: [ethernet(aim.target_mac, IPV4, ip(aim, FULL_BYTES, protocol=UNKNOWN_PROTOCOL))],
    "arp": lambda aim: [_arp(aim)],
    "broadcast": _to_all,
    "ipv6": _ipv6,
    "unknown-ethertypes": _strange,
    "vlan": _tagged,
}
