"""Payload received per sender, counted by the receiving host's kernel, read without starting a program.

One nftables counter a sender stands where packets come in. Each packet, single or super-packet, carries one IP and one
TCP header, so payload = bytes - 52 x packets for segments with timestamps, whatever the packets' sizes. Segments that
come twice count twice: this is what the line delivered.
"""

import struct
import subprocess
from dataclasses import dataclass

from mininet_tests.site.netlink import Netlink, attributes

HEADERS_BYTES = 52  # IPv4 20, TCP 20, timestamps 12
NETLINK_NETFILTER = 12
_GET_OBJECT = (10 << 8) | 19  # linux/netfilter/nfnetlink.h NFNL_SUBSYS_NFTABLES, nf_tables.h NFT_MSG_GETOBJ
_NFGENMSG = struct.pack("=BBH", 1, 0, 0)  # struct nfgenmsg: NFPROTO_INET
_NAME, _DATA = 2, 4  # NFTA_OBJ_NAME, NFTA_OBJ_DATA
_BYTES, _PACKETS = 1, 2  # NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS


@dataclass(frozen=True, slots=True)
class Count:
    """What one counter shows."""

    size_bytes: int
    packets: int

    @property
    def payload_bytes(self) -> int:
        """TCP payload in these packets."""
        return self.size_bytes - HEADERS_BYTES * self.packets


def ruleset(addresses: dict[str, str]) -> str:
    """Return the nftables rules that count what comes from each address, under its name."""
    counters = "\n".join(f"  counter {name} {{ }}" for name in addresses)
    rules = "\n".join(f"    ip saddr {address} counter name {name}" for name, address in addresses.items())
    chain = f"  chain received {{\n    type filter hook prerouting priority -300;\n{rules}\n  }}"
    return f"table inet headway {{\n{counters}\n{chain}\n}}\n"


def install(pid: int, addresses: dict[str, str]) -> None:
    """Start counting in the network namespace of a process.

    Raises:
        subprocess.CalledProcessError: nft refused.
    """
    subprocess.run(["mnexec", "-a", str(pid), "nft", "-f", "-"], input=ruleset(addresses), text=True, check=True)


class NftCounters:
    """Reads the counters; made inside the namespace they are in."""

    def __init__(self) -> None:
        self._netlink = Netlink(NETLINK_NETFILTER)

    def read(self) -> dict[str, Count]:
        """Return every counter by name."""
        counts = {}
        for answer in self._netlink.dump(_GET_OBJECT, _NFGENMSG):
            shown = attributes(answer[len(_NFGENMSG) :])
            numbers = attributes(shown[_DATA])
            size_bytes, packets = (int.from_bytes(numbers[kind], "big") for kind in (_BYTES, _PACKETS))
            counts[shown[_NAME].rstrip(b"\0").decode()] = Count(size_bytes, packets)
        return counts
