"""What Freemon 2013 measured, as data; what the line allows, and what it allows a perfect sender. Pure."""

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from topology.wire import ETHERNET_HEADER_BYTES, ETHERNET_REST_BYTES, Framing, Layer, converted_bps

IMAGE_SLICE_BYTES = 4102 * 65536  # section V.B: nuttcp -n 4102, in buffers of 64 KiB; printed as 268.8 MB
RATE_BPS = 10**9
UNSCALED_WINDOW_BYTES = 65_535
FIGURE3_S = {"sender connects": 2.65, "reused": 2.47}  # section V.B: printed, and what it is without the first pause
BOX_S = 2.30  # section V.D: how wide "the box" of figure 3 is, or less
STARTS_BYTES = {2: 11_000_000, 10: 20_000_000}  # section V.A: the buffer that servers need, by their number
LATENCIES_MS = (0, 50, 100, 150, 180, 200, 300, 400, 500, 600, 700, 800)
RESOLUTION_S = 1e-5  # of the ideal sender's times
SUPER_PACKETS, SEGMENTS = "super-packet", "packet"  # what a line loses at once: the loss models
LOSSES_PERCENT = (0.0, 0.001, 0.01, 0.1, 1.0)  # each way

# Table 1, new connections: median, mean and standard deviation of 20 runs, seconds. Its caption names the mean first,
# but it is the first column that Table 2 takes its medians from.
TABLE1 = """
0    2.29 2.29 0.00  2.29 2.29 0.00  2.29 2.29 0.00  2.29 2.29 0.00  2.31 2.33 0.06
50   2.39 2.39 0.00  2.39 2.39 0.00  2.39 2.39 0.01  2.39 2.40 0.01  2.46 2.57 0.19
100  2.49 2.49 0.00  2.49 2.49 0.00  2.49 2.49 0.02  2.53 2.53 0.04  2.61 2.69 0.18
150  2.59 2.59 0.00  2.59 2.60 0.03  2.59 2.61 0.04  2.69 2.70 0.15  2.75 2.89 0.30
180  2.65 2.65 0.00  2.65 2.67 0.08  2.65 2.67 0.05  2.75 2.84 0.43  2.85 3.04 0.40
200  2.69 2.69 0.00  2.69 2.69 0.00  2.69 2.72 0.06  2.80 2.88 0.33  2.91 3.11 0.33
300  2.89 2.89 0.00  2.89 2.89 0.00  2.89 2.91 0.06  3.10 3.06 0.11  3.21 3.59 0.55
400  3.09 3.09 0.00  3.09 3.10 0.05  3.09 3.15 0.11  3.42 3.48 0.41  3.51 4.16 0.93
500  3.29 3.29 0.00  3.29 3.31 0.07  3.29 3.34 0.12  3.72 3.82 0.53  5.49 5.17 0.98
600  3.49 3.49 0.00  3.49 3.51 0.11  3.49 3.67 0.30  4.03 3.98 0.10  5.97 5.56 1.30
700  3.69 3.69 0.00  3.69 3.70 0.05  3.69 3.84 0.21  4.26 4.26 0.08  6.93 6.04 1.51
800  3.89 3.89 0.00  3.89 3.92 0.15  3.89 4.04 0.24  4.60 4.57 0.12  7.95 7.57 1.60
"""
# Table 2, connections that are used again: medians, seconds.
TABLE2 = """
0    2.29 2.29 2.29 2.29 2.31
50   2.34 2.34 2.34 2.34 2.41
100  2.39 2.39 2.39 2.43 2.51
150  2.44 2.44 2.44 2.54 2.60
180  2.47 2.47 2.47 2.57 2.67
200  2.49 2.49 2.49 2.60 2.71
300  2.59 2.59 2.59 2.80 2.91
400  2.69 2.69 2.69 3.02 3.11
500  2.79 2.79 2.79 3.22 4.99
600  2.89 2.89 2.89 3.43 5.37
700  2.99 2.99 2.99 3.56 6.23
800  3.09 3.09 3.09 3.80 7.15
"""


@dataclass(frozen=True, slots=True)
class Printed:
    """A cell of Table 1, seconds as printed."""

    median: Decimal
    mean: Decimal
    deviation: Decimal


def _rows(table: str) -> dict[int, list[Decimal]]:
    rows = (line.split() for line in table.strip().splitlines())
    return {int(first): [Decimal(number) for number in rest] for first, *rest in rows}


def table1() -> dict[tuple[int, float], Printed]:
    """Return Table 1 by latency (milliseconds) and loss (percent)."""
    rows = _rows(TABLE1)
    return {
        (rtt_ms, loss): Printed(*row[3 * n : 3 * n + 3])
        for rtt_ms, row in rows.items()
        for n, loss in enumerate(LOSSES_PERCENT)
    }


def table2() -> dict[tuple[int, float], Decimal]:
    """Return Table 2 by latency (milliseconds) and loss (percent)."""
    return {(rtt_ms, LOSSES_PERCENT[n]): s for rtt_ms, row in _rows(TABLE2).items() for n, s in enumerate(row)}


def rounded(seconds: float) -> Decimal:
    """Return a time as the paper prints it: to hundredths of a second.

    >>> rounded(2.4643), rounded(2.465)
    (Decimal('2.46'), Decimal('2.47'))
    """
    return Decimal(repr(seconds)).quantize(Decimal("0.01"), ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class Way:
    """A path: a rate on the wire, a round trip without queueing, and the largest IP packet."""

    rate_bps: int = RATE_BPS
    rtt_ms: float = 180.0
    mtu_bytes: int = 1500

    @property
    def framing(self) -> Framing:
        """How segments are wrapped on it."""
        return Framing(self.mtu_bytes)

    @property
    def payload_bps(self) -> int:
        """Its rate, counted in payload of full segments."""
        return self.bps(Layer.PAYLOAD)

    @property
    def bdp_bytes(self) -> int:
        """Rate x round trip, in Ethernet frames; of 20 ms at least: so much a port has."""
        return round(self.bps(Layer.FRAME) / 8 * max(self.rtt_ms, 20) / 1000)

    def bps(self, layer: Layer) -> int:
        """Return its rate as another layer counts it."""
        return converted_bps(self.rate_bps, Layer.WIRE, layer, self.framing)

    def limit_s(self, size_bytes: int) -> float:
        """Return the least time until the last byte is confirmed: bytes on the wire / rate, and one round trip.

        >>> round(Way().limit_s(IMAGE_SLICE_BYTES), 4)
        2.4643
        """
        whole, rest = divmod(size_bytes, self.framing.mss_bytes)
        headers_bytes = self.mtu_bytes - self.framing.mss_bytes + ETHERNET_HEADER_BYTES + ETHERNET_REST_BYTES
        wire_bytes = whole * self.framing.segment_bytes(Layer.WIRE) + (rest + headers_bytes if rest else 0)
        return wire_bytes * 8 / self.rate_bps + self.rtt_ms / 1000

    @property
    def unscaled_wait_s(self) -> float:
        """How long a sender that connects pauses: a SYN-ACK's window is not scaled (RFC 7323 section 2.2).

        Its first segments are on the wire for a part of that round trip.

        >>> round(Way().unscaled_wait_s, 4), Way(rtt_ms=0).unscaled_wait_s
        (0.1794, 0.0)
        """
        first_segments = UNSCALED_WINDOW_BYTES // self.framing.mss_bytes
        first_s = first_segments * self.framing.segment_bytes(Layer.WIRE) * 8 / self.rate_bps
        return max(0.0, self.rtt_ms / 1000 - first_s)


def way_of(cell: dict[str, Any]) -> Way:
    """Return the path of a cell."""
    return Way(cell["rate_bps"], cell["rtt_ms"], cell.get("mtu_bytes", 1500))


def ideal_s(way: Way, size_bytes: int, loss: float, share: float) -> float:
    """Return by when a share of transfers is confirmed if the sender is perfect, and each segment may be lost.

    It knows of each loss a round trip after it sent, sends that again at once, never anything else twice, and never
    pauses before all is sent. A segment that it sends for the first time at ``t`` can be sent ``a = (end - t) / RTT``
    times, rounded down, and is missing with the chance ``loss ** a``.

    Args:
        way: with a round trip that is not 0.
        size_bytes: of a transfer.
        loss: the chance of a segment, each time that it is sent, from 0 to less than 1.
        share: from 0 to 1: 0.5 for the median.

    >>> round(ideal_s(Way(), IMAGE_SLICE_BYTES, 0.0, 0.5), 4), round(ideal_s(Way(), IMAGE_SLICE_BYTES, 0.01, 0.5), 3)
    (2.4643, 2.763)
    """
    rtt_s, segments = way.rtt_ms / 1000, -(-size_bytes // way.framing.mss_bytes)
    sending_s = (way.limit_s(size_bytes) - rtt_s) / (1 - loss)

    def confirmed(end_s: float) -> float:
        chance = 0.0  # its logarithm
        for times in range(1, math.floor(end_s / rtt_s) + 1):
            first_s, last_s = (min(max(end_s - n * rtt_s, 0.0), sending_s) for n in (times + 1, times))
            chance += segments * (last_s - first_s) / sending_s * math.log1p(-(loss**times))
        return math.exp(chance)

    low_s = sending_s + rtt_s
    high_s = low_s
    while confirmed(high_s) < share:
        low_s, high_s = high_s, high_s + rtt_s
    while high_s - low_s > RESOLUTION_S:
        middle_s = (low_s + high_s) / 2
        low_s, high_s = (low_s, middle_s) if confirmed(middle_s) >= share else (middle_s, high_s)
    return high_s
