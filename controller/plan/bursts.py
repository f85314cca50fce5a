"""Bursts: what a port must hold when senders start at once, and what to do where it cannot. Pure.

What arrives from one side is no more than ``min(nic t, burst + then t)``; what leaves is ``port t``. The buffer holds
the difference, and its peak is at one of the corners, as all sides together are concave. Bytes are those of Ethernet
frames, as a switch counts them; of rates only the ratios count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil
from operator import itemgetter

from topology.printable import shown_names
from topology.units import shown_rate, shown_size
from topology.wire import Framing, Layer

# What of a paced connection leaves at once: hostagent/bpf/sharing.h has the same four.
UNITS_PER_S = 1024  # a departure is a 1024th of a second of the rate (sk_pacing_shift 10),
LEAST_UNIT_SEGMENTS = 2  # no less than this,
LARGEST_UNIT_BYTES = 65_536  # and no more than this
LARGEST_TOSS = 2  # the first one is tossed, so that those who begin together do not go on together,
UNPACED_SEGMENTS = 10  # the first ones of a new connection, before the first departure (tcp_update_skb_after_send)
MBIT = 1_000_000


class Choice(StrEnum):
    """What senders do at a port, in the order in which it is chosen."""

    PACE = "pace"  # the agent holds the share's rate
    NOTHING = "nothing"  # all of it fits
    STAGGER = "stagger"  # they start one after another
    CAP = "cap"  # their interfaces are made slower


@dataclass(frozen=True, slots=True)
class Source:
    """What comes to a port from one side.

    Attributes:
        nic_bps: the most at any instant.
        burst_bytes: what comes at that rate.
        then_bps: at which it goes on; 0 for a window that is used up.
    """

    nic_bps: int
    burst_bytes: int
    then_bps: int = 0


def needed_bytes(sources: Sequence[Source], port_bps: int) -> int:
    """Return the buffer that loses nothing when all sources start at one instant.

    N equal ones with a total window of W: ``W (1 - s / (N f))``, nothing if ``N f <= s``. Source: Freemon 2013 section
    V.A has three values of it, Antony 2003 eq. (3) is the one with N = 1 and W = s R.

    >>> half = Source(nic_bps=10**9, burst_bytes=11_250_000)
    >>> needed_bytes([half, half], port_bps=10**9)
    11250000

    Args:
        sources: what comes.
        port_bps: what the port sends, more than 0.

    Raises:
        ValueError: they go on above the port's rate: no buffer is enough.
    """
    if sum(min(s.then_bps, s.nic_bps) for s in sources) > port_bps:
        raise ValueError(f"what goes on at {[s.then_bps for s in sources]} bit/s has no end at {port_bps} bit/s")
    # Until its corner a source brings nic t, from then on burst + then t.
    bits, slope_bps, most_bits = 0, sum(s.nic_bps for s in sources) - port_bps, Fraction(0)
    cornered = (s for s in sources if s.nic_bps > s.then_bps)
    for at_s, source in sorted(((_corner_s(s), s) for s in cornered), key=itemgetter(0)):
        most_bits = max(most_bits, bits + slope_bps * at_s)
        bits += 8 * source.burst_bytes
        slope_bps -= source.nic_bps - source.then_bps
    return ceil(most_bits / 8)


def _corner_s(source: Source) -> Fraction:
    return Fraction(8 * source.burst_bytes, source.nic_bps - source.then_bps)


def departure_bytes(payload_bps: int, framing: Framing) -> int:
    """Return what of a paced connection comes above its rate at most when it begins, bytes of frames.

    >>> departure_bytes(470_000_000, Framing())
    128690
    """
    return UNPACED_SEGMENTS * framing.segment_bytes(Layer.FRAME) + resumed_bytes(payload_bps, framing)


def resumed_bytes(payload_bps: int, framing: Framing) -> int:
    """Return the same of a connection that goes on after a pause.

    Its first departure may be tossed twice as large, and the kernel has the next one wait half as long: then a quarter
    of the first has left at the connection's rate.

    >>> resumed_bytes(470_000_000, Framing())
    113550
    """
    first, unit = (_unit_segments(times * payload_bps, framing) for times in (LARGEST_TOSS, 1))
    return (-(-3 * first // 4) + unit) * framing.segment_bytes(Layer.FRAME)


def _unit_segments(payload_bps: int, framing: Framing) -> int:
    unit_bytes = min(LARGEST_UNIT_BYTES, payload_bps // 8 // UNITS_PER_S)
    return max(LEAST_UNIT_SEGMENTS, -(-unit_bytes // framing.mss_bytes))


@dataclass(frozen=True, slots=True)
class Sender:
    """A host that sends through a port.

    Attributes:
        host: its name.
        source: its whole window at once.
    """

    host: str
    source: Source


@dataclass(frozen=True, slots=True)
class BurstMeasure:
    """What some senders do at a port, and why.

    Attributes:
        choice: that.
        hosts: who.
        needed_bytes: what the port then needs for them.
        reason: one sentence with its numbers.
        offsets_us: for ``STAGGER``, when each one starts after the first.
        nic_bps: for ``CAP``, the rate of each one's interface.
    """

    choice: Choice
    hosts: tuple[str, ...]
    needed_bytes: int
    reason: str
    offsets_us: tuple[int, ...] = ()
    nic_bps: int | None = None


def chosen_unpaced(senders: Sequence[Sender], port_bps: int, free_bytes: int) -> BurstMeasure:
    """Return what senders without an agent must do: nothing, start one after another, or slow their interfaces.

    Args:
        senders: who starts, each with its whole window.
        port_bps: what the paced ones leave of the port.
        free_bytes: what they leave of its buffer.
    """
    hosts = tuple(s.host for s in senders)
    sources = [s.source for s in senders]
    at_once_bytes = needed_bytes(sources, port_bps)
    needs = f"without an agent {shown_names(hosts)} can put {shown_size(at_once_bytes)} at once"
    room = f"into {shown_size(max(0, free_bytes))}"
    if at_once_bytes <= free_bytes:
        return BurstMeasure(Choice.NOTHING, hosts, at_once_bytes, f"{needs} {room}: it fits")
    staggered = _staggered(sources, port_bps, free_bytes)
    if staggered is not None:
        offsets_us, held_bytes = staggered
        starts = ", ".join(f"{us / 1000:.1f}" for us in offsets_us[:3])
        starts += f" ... {offsets_us[-1] / 1000:.1f}" if len(offsets_us) > 3 else ""
        reason = f"{needs} {room}; started at {starts} ms they need {shown_size(held_bytes)}"
        return BurstMeasure(Choice.STAGGER, hosts, held_bytes, reason, offsets_us=offsets_us)
    nic_bps = _capped_bps(sources, port_bps, free_bytes)
    held_bytes = needed_bytes(_capped(sources, nic_bps), port_bps)
    reason = f"{needs} {room}, even one by one; with {shown_rate(nic_bps)} each they need {shown_size(held_bytes)}"
    return BurstMeasure(Choice.CAP, hosts, held_bytes, reason, nic_bps=nic_bps)


def _staggered(sources: Sequence[Source], port_bps: int, free_bytes: int) -> tuple[tuple[int, ...], int] | None:
    """Return the soonest starts, each after the one before has arrived, and the buffer they need; None if none fits."""
    offsets_us: list[int] = []
    arrived_s, held, most = Fraction(0), Fraction(0), Fraction(0)
    for source in sources:
        alone_bytes = needed_bytes([source], port_bps)
        if alone_bytes > free_bytes or len(sources) == 1:
            return None
        waits_s = max(Fraction(0), (held + alone_bytes - free_bytes) * 8 / port_bps)
        offsets_us.append(ceil((arrived_s + waits_s) * 1_000_000))
        starts_s = Fraction(offsets_us[-1], 1_000_000)
        held = max(Fraction(0), held - (starts_s - arrived_s) * port_bps / 8) + alone_bytes
        most = max(most, held)
        arrived_s = starts_s + Fraction(8 * source.burst_bytes, source.nic_bps)
    return tuple(offsets_us), ceil(most)


def _capped(sources: Sequence[Source], nic_bps: int) -> list[Source]:
    return [Source(min(s.nic_bps, nic_bps), s.burst_bytes, s.then_bps) for s in sources]


def _capped_bps(sources: Sequence[Source], port_bps: int, free_bytes: int) -> int:
    """Return the highest rate of each interface at which all may start at once, whole Mbit/s where that is not 0.

    At an equal part of the port each, nothing waits; what a buffer holds beyond that makes them faster.
    """
    fits_bps, too_fast_bps = max(1, port_bps // len(sources)), max(s.nic_bps for s in sources) + 1
    while too_fast_bps - fits_bps > 1:
        middle_bps = (fits_bps + too_fast_bps) // 2
        if needed_bytes(_capped(sources, middle_bps), port_bps) <= free_bytes:
            fits_bps = middle_bps
        else:
            too_fast_bps = middle_bps
    return fits_bps // MBIT * MBIT or fits_bps
