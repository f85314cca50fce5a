"""How much memory TCP needs for a window, and what each kernel setting must be for it. Pure.

A receiver announces about half of its buffer; a sender keeps all that is not confirmed. Both begin small and grow; how
far is set per network namespace (``tcp_rmem``, ``tcp_wmem``), how much all connections of the kernel may hold together
by ``tcp_mem``, in pages.
"""

import mmap
from dataclasses import dataclass
from typing import Self

from topology.wire import Framing, Layer, converted_bps, cwnd_segments

BDPS_OF_WINDOW = 3  # what the controller asks for: one under way, one being repeated, one if a repetition is lost
BUFFER_PER_WINDOW = 2  # half of a receive buffer is announced (tcp_adv_win_scale 1, and its successor's first guess)
LARGEST_BYTES = 2**31 - 1  # the sysctls are int
LARGEST_WINDOW_BYTES = 2**30  # RFC 7323 section 2.3: 65535 << 14
LARGEST_SCALE = 14
UNSCALED_BYTES = 65535
PAGE_BYTES = mmap.PAGESIZE
PAUSED_READERS = 4  # receiving connections that may lie full at once, where nobody has said how many
# tcp_sndbuf_expand: twice what a segment occupies, a 9000-byte one rounded up to 16 KiB; with smaller segments the
# kernel itself stays below this ceiling
SEND_BUFFER_PER_SEGMENT_BYTES = 2 * (16384 + 256)
_HEADERS_OF_SEGMENT_BYTES = 576  # MAX_TCP_HEADER and struct skb_shared_info
_SKB_BYTES = 256  # struct sk_buff


@dataclass(frozen=True, slots=True)
class Numbers:
    """A setting of one number or several, as /proc/sys shows it."""

    of: tuple[int, ...]

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Return the setting from its text.

        Raises:
            ValueError: not integers.
        """
        return cls(tuple(int(word) for word in text.split()))

    def __str__(self) -> str:
        """Return the setting's text."""
        return " ".join(str(number) for number in self.of)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a host is to carry.

    Attributes:
        rate_bps: of all its planned connections together, on the wire.
        rtt_us: of the longest path.
        framing: how segments are wrapped on it.
        connections: how many of them receive at once.
    """

    rate_bps: int
    rtt_us: int
    framing: Framing
    connections: int = PAUSED_READERS

    @property
    def payload_bps(self) -> int:
        """The rate counted at the payload, bit/s."""
        return converted_bps(self.rate_bps, Layer.WIRE, Layer.PAYLOAD, self.framing)

    @property
    def bdp_bytes(self) -> int:
        """Payload under way when the path is full: rate times round trip."""
        return self.payload_bps * self.rtt_us // 8_000_000

    @property
    def window_bytes(self) -> int:
        """The window a receiver must announce, recovery included; TCP ends at 1 GiB."""
        return min(BDPS_OF_WINDOW * self.bdp_bytes, LARGEST_WINDOW_BYTES)

    @property
    def receive_buffer_bytes(self) -> int:
        """``tcp_rmem`` for that window."""
        return min(BUFFER_PER_WINDOW * self.window_bytes, LARGEST_BYTES)

    @property
    def send_buffer_bytes(self) -> int:
        """``tcp_wmem`` with which one connection can fill the path."""
        mss_bytes = self.framing.mss_bytes
        segments = cwnd_segments(self.payload_bps, self.rtt_us, mss_bytes)
        return min(send_memory_bytes(segments, mss_bytes), LARGEST_BYTES)

    @property
    def flowing_bytes(self) -> int:
        """The memory it takes while everybody reads: what is sent, and one window that waits for a repetition."""
        return self.send_buffer_bytes + self.receive_buffer_bytes

    @property
    def worst_bytes(self) -> int:
        """The memory it takes at most: each receiving connection's whole buffer, all of them paused."""
        return self.send_buffer_bytes + self.connections * self.receive_buffer_bytes


def receive_buffer(was: Numbers, window_bytes: int) -> Numbers:
    """Return tcp_rmem that opens ``window_bytes`` from the first segment on; never less than it was.

    >>> receive_buffer(Numbers((4096, 131072, 6291456)), 32_000_000)
    Numbers(of=(4096, 64000000, 64000000))
    """
    least, default, largest = was.of
    wanted = min(window_bytes * BUFFER_PER_WINDOW, LARGEST_BYTES)
    return Numbers((least, max(default, wanted), max(largest, wanted)))


def send_buffer(was: Numbers, window_segments: int) -> Numbers:
    """Return tcp_wmem that keeps a window of ``window_segments`` of one connection; never less than it was."""
    least, default, largest = was.of
    wanted = min(window_segments * SEND_BUFFER_PER_SEGMENT_BYTES, LARGEST_BYTES)
    return Numbers((least, default, max(largest, wanted)))


def at_least(was: Numbers, wanted: int) -> Numbers:
    """Return a setting of one number, never less than it was."""
    return Numbers((max(was.of[0], wanted),))


def pages_for(was: Numbers, memory_bytes: int, host_bytes: int) -> Numbers:
    """Return tcp_mem under which ``memory_bytes`` are no pressure; never less than it was, nor more than half the host.

    Under pressure (the second number) windows shrink, above the third nothing is sent or taken any more. The three keep
    the kernel's own proportions, 3 to 4 to 6 (tcp_init_mem).

    >>> pages_for(Numbers((3, 4, 6)), 400 * 4096, 2**30)
    Numbers(of=(300, 400, 600))
    >>> pages_for(Numbers((3, 4, 6)), 400 * 4096, 2 * 200 * 4096)
    Numbers(of=(150, 200, 300))
    """
    pressure = -(-min(memory_bytes, host_bytes // 2) // PAGE_BYTES)
    wanted = (pressure * 3 // 4, pressure, pressure * 3 // 2)
    return Numbers(tuple(max(old, new) for old, new in zip(was.of, wanted, strict=True)))


def send_memory_bytes(segments: int, mss_bytes: int) -> int:
    """Return what a sending window occupies in memory: twice its segments, for those that are repeated.

    Source: tcp_sndbuf_expand (net/ipv4/tcp_input.c); seen: 2,304,000 bytes for 500 segments of 1448 bytes.

    >>> send_memory_bytes(500, 1448)
    2304000
    """
    return 2 * segments * ((1 << (mss_bytes + _HEADERS_OF_SEGMENT_BYTES - 1).bit_length()) + _SKB_BYTES)


def scale(largest_buffer_bytes: int) -> int:
    """Return the window scale that the kernel offers in a SYN.

    Source: tcp_select_initial_window (net/ipv4/tcp_output.c), from the larger of tcp_rmem's third number and rmem_max.

    >>> scale(6_291_456), scale(2**31 - 1)
    (7, 14)
    """
    return max(0, min(largest_buffer_bytes.bit_length() - 1 - 15, LARGEST_SCALE))


def largest_window_bytes(window_scale: int) -> int:
    """Return the widest window that can be announced with a scale."""
    return UNSCALED_BYTES << window_scale


def opening_round_trips(default_buffer_bytes: int, bdp_bytes: int) -> int:
    """Return how many round trips pass before a receiver's window covers a path; it about triples in each.

    The kernel announces half of ``tcp_rmem``'s second number at first.

    >>> opening_round_trips(131_072, 211_833_540), opening_round_trips(1_271_001_240, 211_833_540)
    (8, 0)
    """
    window_bytes, trips = max(1, default_buffer_bytes // BUFFER_PER_WINDOW), 0
    while window_bytes < bdp_bytes:
        window_bytes *= 3
        trips += 1
    return trips
