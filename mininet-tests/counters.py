"""Payload received per sender, counted by the receiving host's kernel, read without starting a program.

One nftables counter a sender stands where packets come in. Each packet, single or super-packet, carries one IP and one
TCP header, so payload = bytes - 52 x packets for segments with timestamps, whatever the packets' sizes. Segments that
come twice count twice: this is what the line delivered.
"""

import socket
import struct
import subprocess
from dataclasses import dataclass

HEADERS_BYTES = 52  # IPv4 20, TCP 20, timestamps 12
NETLINK_NETFILTER = 12
_DUMP = (10 << 8) | 19  # linux/netfilter/nfnetlink.h NFNL_SUBSYS_NFTABLES, nf_tables.h NFT_MSG_GETOBJ
_NAME, _DATA = 2, 4  # NFTA_OBJ_NAME, NFTA_OBJ_DATA
_BYTES, _PACKETS = 1, 2  # NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS
_REQUEST, _WHOLE_DUMP, _DONE, _ERROR = 1, 0x300, 3, 2


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


class Counters:
    """Reads the counters; made inside the namespace they are in."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        self._socket.bind((0, 0))
        body = struct.pack("=BBH", 1, 0, 0)  # nfgenmsg: NFPROTO_INET
        self._request = struct.pack("=IHHII", 16 + len(body), _DUMP, _REQUEST | _WHOLE_DUMP, 1, 0) + body

    def read(self) -> dict[str, Count]:
        """Return every counter by name."""
        self._socket.send(self._request)
        counts: dict[str, Count] = {}
        while True:
            data = self._socket.recv(1 << 16)
            at = 0
            while at < len(data):
                length, kind, _, _, _ = struct.unpack_from("=IHHII", data, at)
                if kind in (_DONE, _ERROR):
                    return counts
                name, count = _counter(data[at + 20 : at + length])
                counts[name] = count
                at += (length + 3) & ~3


def _attributes(data: bytes) -> dict[int, bytes]:
    """Return netlink attributes by type."""
    found = {}
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def _counter(data: bytes) -> tuple[str, Count]:
    attributes = _attributes(data)
    numbers = _attributes(attributes[_DATA])
    size_bytes, packets = (struct.unpack(">Q", numbers[kind])[0] for kind in (_BYTES, _PACKETS))
    return attributes[_NAME].rstrip(b"\0").decode(), Count(size_bytes, packets)
