"""Values of the plan as the bytes that the kernel part reads, and its counters as values.

Where each member stands is written once, in bpf/headway.h: it is read here from the types in the built object.
"""

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields

from hostagent.kernel.btf import Btf, MapDefinition, Record
from hostagent.kernel.deals import Deal, Destination
from hostagent.kernel.plan import KernelEntry, Match, Tuning

NO_DSCP = 255  # HEADWAY_NO_DSCP
SLOT = struct.Struct("=I")  # the key of all arrays


@dataclass(frozen=True, slots=True)
class EntryCounters:
    """What the connections of one allocation have done and do now; ``struct counters``."""

    delivered_bytes: int
    delivered_ns: int
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
    term: int
    delivered_segments: int
    accounted_ns: int
    loss_start_ns: int
    loss_fresh_segments: int
    loss_delivered_segments: int
    loss_retransmitted_segments: int
    loss_behind_gap: int
    behind_gap: int
    fallback_since_ns: int
    returned_ns: int
    fallbacks: int
    least_rtt_us: int

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


_COUNTERS, _DEMANDED = (tuple(field.name for field in fields(kind)) for kind in (EntryCounters, Demanded))


class Layout:
    """The bytes in the maps of one object.

    Each method raises LayoutDiffers if its struct has others than the members that are known here.
    """

    def __init__(self, host: Record, maps: Mapping[str, MapDefinition]) -> None:
        self._host = host
        self._match, self._matched = maps["hw_plan"].key, maps["hw_plan"].value
        self._control, self._entry = maps["hw_control"].value, maps["hw_entries"].value
        self._counters, self._demand = maps["hw_counters"].value, maps["hw_demand"].value
        self._turn, self._dealt = maps["hw_deal"].key, maps["hw_deal"].value
        self.zero_counters, self.zero_demand = bytes(self._counters.size_bytes), bytes(self._demand.size_bytes)
        self._term_at_bytes = self._counters.offset_bytes("term")

    def host_bytes(self, netns_cookie: int, algorithm: str, fallback_algorithm: str, tuning: Tuning) -> bytes:
        """Return ``struct host``."""
        return self._host.packed(
            {
                "netns_cookie": netns_cookie,
                "algorithm": algorithm.encode(),
                "fallback": fallback_algorithm.encode(),
                "loss_period_ns": tuning.loss_period_us * 1000,
                "loss_hold_ns": tuning.loss_hold_us * 1000,
                "loss_trip_ppm": tuning.loss_trip_ppm,
                "loss_clear_ppm": tuning.loss_clear_ppm,
                "rto_min_us": tuning.rto_min_us,
                "tail_copies": int(tuning.tail_copies),
            }
        )

    def match_bytes(self, match: Match) -> bytes:
        """Return ``struct match``, the key of the trie. What stands before the address is always compared."""
        selector_bits = 8 * (self._match.offset_bytes("addr") - self._match.offset_bytes("dest_port"))
        return self._match.packed(
            {
                "prefixlen": selector_bits + match.dest.prefixlen,
                "dest_port": socket.htons(match.dest_port),
                "local_port": socket.htons(match.local_port),
                "own_dscp": NO_DSCP if match.own_dscp is None else match.own_dscp,
                "local_addr": bytes(16) if match.source is None else match.source.packed,
                "addr": match.dest.network_address.packed,
            }
        )

    def matched_bytes(self, match: Match, slot: int) -> bytes:
        """Return ``struct matched``."""
        return self._matched.packed({"slot": slot, "prefix_bits": match.dest.prefixlen})

    def turn_bytes(self, destination: Destination, number: int) -> bytes:
        """Return ``struct turn``."""
        address, port = destination.address.packed, socket.htons(destination.port)
        return self._turn.packed({"addr": address, "dest_port": port, "number": number})

    def dealt_bytes(self, deal: Deal, number: int) -> bytes:
        """Return ``struct dealt`` of a turn, before the first connection."""
        turns, address = len(deal.turns), deal.turns[number].packed
        return self._dealt.packed({"addr": address, "turns": turns, "connections": 0, "is_far": deal.is_far})

    def control_bytes(self, generation: int, expires_ns: int) -> bytes:
        """Return ``struct control``; ``expires_ns`` by CLOCK_BOOTTIME."""
        return self._control.packed({"generation": generation, "expires_ns": expires_ns})

    def entry_bytes(self, entry: KernelEntry, grant: int) -> bytes:
        """Return ``struct entry``; ``grant`` is the epoch under which a watched entry has its rate, 0 if under none."""
        return self._entry.packed(
            {
                "rate_bytes_per_s": entry.rate_bytes_per_s,
                "window_segments": entry.window_segments,
                "dscp": NO_DSCP if entry.dscp is None else entry.dscp,
                "standby_bytes_per_s": entry.standby_bytes_per_s,
                "size_bytes": entry.size_bytes,
                "grant": grant,
                "way": entry.way,
                "ahead_bytes": entry.ahead_bytes,
                "tail_coded": int(entry.tail_coded),
            }
        )

    def counters(self, data: bytes) -> EntryCounters:
        """Return ``struct counters`` as a value."""
        return EntryCounters(*self._counters.read(data, _COUNTERS))

    def fresh_counters(self, term: int) -> bytes:
        """Return ``struct counters`` of an allocation that nothing was done for yet."""
        at_bytes = self._term_at_bytes
        return self.zero_counters[:at_bytes] + SLOT.pack(term) + self.zero_counters[at_bytes + SLOT.size :]

    def fallback_end(self, now_ns: int) -> dict[int, int]:
        """Return what ends a fallback in ``struct counters``: numbers of eight bytes by their offset, in order."""
        words = {"returned_ns": now_ns, "fallback_since_ns": 0}
        return {self._counters.offset_bytes(name): value for name, value in words.items()}

    def demanded(self, data: bytes) -> Demanded:
        """Return ``struct demanded`` as a value, from ``struct demand``."""
        return Demanded(*self._demand.read(data, _DEMANDED))


def layout_of(image: bytes) -> Layout:
    """Return the layout of an object file.

    Raises:
        LayoutDiffers: there is no struct host in it.
        ValueError: it is no object file with types.
    """
    types = Btf(image)
    return Layout(types.record("host"), types.maps())
