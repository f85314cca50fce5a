"""bpf/headway.h in Python: values of the plan as the bytes the kernel part reads, and its counters as values."""

import struct
from dataclasses import dataclass

from hostagent.kernel.plan import Entry, Match, Tuning

NO_DSCP = 255  # HEADWAY_NO_DSCP
PORTS_BITS = 32  # struct match: the two ports stand before the address
SLOT = struct.Struct("=I")
_HOST = struct.Struct("=Q16s16sQQIIIxxxx")
_MATCH = struct.Struct("=I4s16s")
_PORTS = struct.Struct(">HH")
_MATCHED = struct.Struct("=II")
_CONTROL = struct.Struct("=QQ")
_ENTRY = struct.Struct("=QIIQQQIxxxx")
_COUNTERS = struct.Struct("=QQQIIIIQQQQQQQQQIxxxx")
ZERO_COUNTERS = bytes(_COUNTERS.size)
_DEMAND = struct.Struct("=16xQQQQiIII")  # behind the timer
ZERO_DEMAND = bytes(_DEMAND.size)


@dataclass(frozen=True, slots=True)
class Counters:
    """What the connections of one allocation have done and do now; ``struct counters``."""

    delivered_bytes: int
    sent_segments: int
    retransmitted_segments: int
    greedy: int
    lesser: int
    connections: int
    rtt_us: int
    slice_start_ns: int
    slice_bytes: int
    lesser_bytes_per_s: int
    lesser_bytes_per_s_before: int
    loss_start_ns: int
    loss_sent_segments: int
    loss_retransmitted_segments: int
    fallback_since_ns: int
    returned_ns: int
    fallbacks: int

    @property
    def active(self) -> int:
        """How many connections share the allocation now."""
        return self.greedy + self.lesser


@dataclass(frozen=True, slots=True)
class Demanded:
    """What the connections of a watched allocation want; ``struct demanded``."""

    ended_grant: int
    sent_bytes: int
    size_bytes: int
    due_ns: int
    waiting: int
    wants: int
    armed: int
    timer_made: int


def host_bytes(netns_cookie: int, algorithm: str, fallback_algorithm: str, tuning: Tuning) -> bytes:
    """Return ``struct host``."""
    return _HOST.pack(
        netns_cookie,
        algorithm.encode(),
        fallback_algorithm.encode(),
        tuning.loss_period_us * 1000,
        tuning.loss_hold_us * 1000,
        tuning.loss_trip_ppm,
        tuning.loss_clear_ppm,
        tuning.rto_min_us,
    )


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


def entry_bytes(entry: Entry, grant: int) -> bytes:
    """Return ``struct entry``; ``grant`` is the epoch under which a watched entry has its rate, 0 if under none."""
    dscp = NO_DSCP if entry.dscp is None else entry.dscp
    standby = entry.standby_bytes_per_s, entry.size_bytes, grant
    return _ENTRY.pack(entry.rate_bytes_per_s, entry.window_segments, dscp, *standby, entry.way)


def counters(data: bytes) -> Counters:
    """Return ``struct counters`` as a value."""
    return Counters(*_COUNTERS.unpack(data))


def demanded(data: bytes) -> Demanded:
    """Return ``struct demanded`` as a value, from ``struct demand``."""
    return Demanded(*_DEMAND.unpack(data))
