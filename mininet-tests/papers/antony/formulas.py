"""What Antony 2003 says of a burst that meets a slower port: its equations (1) and (3), solved for what is asked. Pure.

What a port must hold, which is its eq. (3), the product computes itself: ``controller.plan.bursts.needed_bytes``.
"""

from fractions import Fraction
from math import ceil, floor, isqrt


def lost_packets(packets: int, packet_bytes: int, nic_bps: int, port_bps: int, buffer_bytes: int) -> int:
    """Return how many packets of one burst a port drops: ``N_d = N_b (f - s) / f - M / l``.

    Source: Antony 2003 eq. (1), with its N_b, l, f, s and M in this order.

    >>> lost_packets(5_000, 1_000, 900_000_000, 622_000_000, 500_000)
    1044
    """
    return max(0, floor(Fraction(packets * (nic_bps - port_bps), nic_bps) - Fraction(buffer_bytes, packet_bytes)))


def passing_packets(packet_bytes: int, nic_bps: int, port_bps: int, buffer_bytes: int) -> int:
    """Return the longest burst without a loss, packets: N_b of Antony 2003 eq. (1) for N_d = 0; needs f > s.

    >>> passing_packets(1_000, 900_000_000, 622_000_000, 500_000)
    1618
    """
    return buffer_bytes * nic_bps // (packet_bytes * (nic_bps - port_bps))


def forbidden_bps(nic_bps: int, rtt_us: int, buffer_bytes: int) -> tuple[int, int] | None:
    """Return between which port rates a window of rate x round trip at once overruns the buffer; None if at no rate.

    ``s = f / 2 (1 +- sqrt(1 - 4 M / (f R)))``: the roots of Antony 2003 eq. (3), ``M = (f - s) / f s R``. Its eq. (4)
    has the 1 inside of the fraction, and one root only.

    >>> forbidden_bps(1_000_000_000, 100_000, 500_000)
    (41742431, 958257569)
    >>> forbidden_bps(1_000_000_000, 15_999, 500_000) is None
    True
    """
    square = nic_bps**2 - 32_000_000 * buffer_bytes * nic_bps // rtt_us
    if square < 0:
        return None
    return ceil(Fraction(nic_bps - isqrt(square), 2)), (nic_bps + isqrt(square)) // 2
