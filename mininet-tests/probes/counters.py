"""Payload received per sender, counted by the receiving host's kernel, read without starting a program.

One nftables counter a sender stands where packets come in. Each packet, single or super-packet, carries one IP and one
TCP header, so payload = bytes - 52 x packets of IPv4, or 72 x of IPv6, for segments with timestamps, whatever the
packets' sizes. Segments that come twice count twice: this is what the line delivered.
"""

import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from mininet_tests.site.netlink import Netlink, attributes

HEADERS_BYTES = 52  # IPv4 20, TCP 20, timestamps 12
IPV6_MORE_BYTES = 20  # its header has 40
NETLINK_NETFILTER = 12
_GET_OBJECT = (10 << 8) | 19  # linux/netfilter/nfnetlink.h NFNL_SUBSYS_NFTABLES, nf_tables.h NFT_MSG_GETOBJ
_NFGENMSG = struct.pack("=BBH", 1, 0, 0)  # struct nfgenmsg: NFPROTO_INET
_NAME, _DATA = 2, 4  # NFTA_OBJ_NAME, NFTA_OBJ_DATA
_BYTES, _PACKETS = 1, 2  # NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS


@dataclass(frozen=True, slots=True)
class Count:
    """What one counter shows.

    Attributes:
        size_bytes: of IP.
        packets: single and super-packets.
        headers_bytes: of each packet.
    """

    size_bytes: int
    packets: int
    headers_bytes: int = HEADERS_BYTES

    @property
    def payload_bytes(self) -> int:
        """TCP payload in these packets."""
        return self.size_bytes - self.headers_bytes * self.packets


def ruleset(addresses: Mapping[str, str]) -> str:
    """Return the nftables rules that count what comes from each address, of either family, under its name."""
    counters = "\n".join(f"  counter {name} {{ }}" for name in addresses)
    rules = "\n".join(f"    {_matched(address)} counter name {name}" for name, address in addresses.items())
    chain = f"  chain received {{\n    type filter hook prerouting priority -300;\n{rules}\n  }}"
    return f"table inet headway {{\n{counters}\n{chain}\n}}\n"


def _matched(address: str) -> str:
    """Return what matches a sender's segments; what finds neighbours of IPv6 is none."""
    return f"ip6 saddr {address} meta l4proto != ipv6-icmp" if ":" in address else f"ip saddr {address}"


def install(pid: int, addresses: Mapping[str, str]) -> None:
    """Start counting in the network namespace of a process.

    Raises:
        subprocess.CalledProcessError: nft refused.
    """
    subprocess.run(["mnexec", "-a", str(pid), "nft", "-f", "-"], input=ruleset(addresses), text=True, check=True)


class NftCounters:
    """Reads the counters; made inside the namespace they are in."""

    def __init__(self, *, is_ipv6: bool = False) -> None:
        """Begin.

        Args:
            is_ipv6: whether what is counted are packets of IPv6.
        """
        self._netlink = Netlink(NETLINK_NETFILTER)
        self._headers_bytes = HEADERS_BYTES + (IPV6_MORE_BYTES if is_ipv6 else 0)

    def read(self) -> dict[str, Count]:
        """Return every counter by name."""
        counts = {}
        for answer in self._netlink.dump(_GET_OBJECT, _NFGENMSG):
            shown = attributes(answer[len(_NFGENMSG) :])
            numbers = attributes(shown[_DATA])
            size_bytes, packets = (int.from_bytes(numbers[kind], "big") for kind in (_BYTES, _PACKETS))
            counts[shown[_NAME].rstrip(b"\0").decode()] = Count(size_bytes, packets, self._headers_bytes)
        return counts
