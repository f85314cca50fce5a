"""bpf/headway.h in Python: values of the plan as the bytes the kernel part reads, and its counters as values."""

import struct
from dataclasses import dataclass

from hostagent.plan import Entry, Match

EPOCH_NS = 200_000_000  # HEADWAY_EPOCH_NS
PORTS_BITS = 32  # struct match: the two ports stand before the address
SLOT = struct.Struct("=I")
_HOST = struct.Struct("=Q16s16s")
_MATCH = struct.Struct("=I4s16s")
_PORTS = struct.Struct(">HH")
_MATCHED = struct.Struct("=II")
_CONTROL = struct.Struct("=QQ")
_ENTRY = struct.Struct("=QII")
_COUNTERS = struct.Struct("=QQQQIIII")
ZERO_COUNTERS = bytes(_COUNTERS.size)


@dataclass(frozen=True, slots=True)
class Counters:
    """What the connections of one allocation have done; ``struct counters``."""

    delivered_bytes: int
    sent_segments: int
    retransmitted_segments: int
    epoch_start_ns: int
    active_now: int
    active_before: int
    connections: int
    rtt_us: int

    def active(self, now_ns: int) -> int:
        """Return how many connections share the allocation at ``now_ns`` (CLOCK_MONOTONIC).

        The kernel part begins an epoch only when a segment is confirmed, so an old epoch says that nobody sends.
        """
        epoch_ns = max(EPOCH_NS, self.rtt_us * 1000)
        if now_ns - self.epoch_start_ns > 2 * epoch_ns:
            return 0
        return max(self.active_now, self.active_before)


def host_bytes(netns_cookie: int, algorithm: str, fallback: str) -> bytes:
    """Return ``struct host``."""
    return _HOST.pack(netns_cookie, algorithm.encode(), fallback.encode())


def match_bytes(match: Match) -> bytes:
    """Return ``struct match``, the key of the trie."""
    ports = _PORTS.pack(match.dest_port, match.local_port)
    return _MATCH.pack(PORTS_BITS + match.dest.prefixlen, ports, match.dest.network_address.packed)


def matched_bytes(match: Match, slot: int) -> bytes:
    """Return ``struct matched``."""
    return _MATCHED.pack(slot, match.dest.prefixlen)


def control_bytes(generation: int, expires_ns: int) -> bytes:
    """Return ``struct control``; ``expires_ns`` by CLOCK_MONOTONIC."""
    return _CONTROL.pack(generation, expires_ns)


def entry_bytes(entry: Entry) -> bytes:
    """Return ``struct entry``."""
    return _ENTRY.pack(entry.rate_bytes_per_s, entry.window_segments, entry.dscp)


def counters(data: bytes) -> Counters:
    """Return ``struct counters`` as a value."""
    return Counters(*_COUNTERS.unpack(data))
