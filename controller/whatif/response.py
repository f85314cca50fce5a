"""How fast transfers are that nobody holds: response functions of congestion controls, as ranges. Pure.

They say what a control reaches in the long run at a chance of loss. What was measured (docs/results) is up to 1.6 times
as fast or as slow, so a range is what is said. A file whose streams have equal parts is done with the slowest of them:
where each loses a segment or two, chance makes one slower than any mean.

There is none of Scalable TCP and H-TCP. Scalable's window would be 0.08 / p (Kelly 2003), but after a loss it returns
so slowly to it that an image at 180 ms is sent by the window of the one before: 4.9 s were measured, not 42. H-TCP's
goes by the time between losses, and has no response function in p alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

OFF = 1.6  # by which factor a prediction may be off, either way
NORMAL_FROM = 500  # losses in the mean from which Poisson's are as good as normal; from 745 exp(-mean) is 0
FIRST_SEGMENTS = 10  # RFC 6928
US = 1_000_000


@dataclass(frozen=True, slots=True)
class Unheld:
    """What connections that nobody holds go by.

    Attributes:
        rtt_us: the round trip.
        mss_bytes: payload of a segment.
        loss: the chance of a segment.
        streams: how many connections there are.
    """

    rtt_us: int
    mss_bytes: int
    loss: float
    streams: int = 1

    @property
    def segment_bps(self) -> float:
        """What a window of one segment carries, bit/s."""
        return self.mss_bytes * 8 * US / self.rtt_us


def reno_bps(way: Unheld) -> float:
    """Return ``MSS / RTT sqrt(3 / 2p)`` for each, bit/s. Source: Mathis 1997; Hacker 2002 adds up over streams."""
    return way.streams * way.segment_bps * math.sqrt(1.5 / way.loss)


def cubic_bps(way: Unheld) -> float:
    """Return ``MSS / RTT (0.4 x 3.7 / (4 x 0.3))^(1/4) (RTT / p)^(3/4)`` for each, bit/s, or Reno's if that is more.

    Source: RFC 9438 section 5.1, equation 6, with C = 0.4 and beta = 0.7.
    """
    segments: float = (0.4 * (3 + 0.7) / (4 * (1 - 0.7))) ** 0.25 * (way.rtt_us / US / way.loss) ** 0.75
    return max(reno_bps(way), way.streams * segments * way.segment_bps)


def highspeed_bps(way: Unheld) -> float:
    """Return ``MSS / RTT x 0.12 / p^0.835`` for each, bit/s. Source: RFC 3649 section 5."""
    segments: float = 0.12 / way.loss**0.835
    return way.streams * way.segment_bps * segments


def unbound_bps(_: Unheld) -> float:
    """Return no bound: bbr does not answer to single losses below some percent; what is free bounds it."""
    return math.inf


ALGORITHMS: dict[str, Callable[[Unheld], float]] = {
    "reno": reno_bps,
    "cubic": cubic_bps,
    "highspeed": highspeed_bps,
    "bbr": unbound_bps,
}


def takes_us(algorithm: str, size_bytes: int, way: Unheld, most_bps: int) -> tuple[int, int]:
    """Return how long a transfer takes, microseconds, as a range: the least and the most.

    The most: slow start from ten segments, then the least that the response function may mean for all streams, or that
    it means at the losses of the unluckiest. The least: a connection that has sent before keeps its window, and starts
    at the rate at once.

    Args:
        algorithm: one of ``ALGORITHMS``.
        size_bytes: payload.
        way: what its connections go by.
        most_bps: what is free for it, payload.
    """
    of_loss_bps = ALGORITHMS[algorithm]
    mean_bps = of_loss_bps(way)
    unlucky_bps = of_loss_bps(replace(way, loss=unluckiest_loss(size_bytes, way)))
    slow_bps, fast_bps = min(min(most_bps, mean_bps) / OFF, unlucky_bps), min(float(most_bps), mean_bps * OFF)
    least_us = math.ceil(size_bytes * 8 * US / fast_bps) + way.rtt_us
    return least_us, _from_slow_start_us(size_bytes, max(1.0, slow_bps), way)


def unluckiest_loss(size_bytes: int, way: Unheld) -> float:
    """Return which part of its segments the unluckiest stream loses, where each sends an equal part of the bytes.

    How many a stream loses is Poisson's, as each segment is lost by itself: one of all streams in the mean has more
    than the ``1 - 1 / n`` quantile. A single stream has what all have.

    >>> [round(unluckiest_loss(268_802_458, Unheld(180_000, 1448, 1e-4, n)) * 1e4, 2) for n in (1, 8, 27, 64)]
    [1.0, 1.72, 2.91, 6.9]
    """
    if way.streams == 1:
        return way.loss
    segments = max(1.0, size_bytes / way.mss_bytes / way.streams)
    mean, least = way.loss * segments, 1 - 1 / way.streams
    if mean > NORMAL_FROM:
        return min(1.0, max(way.loss, NormalDist(mean, math.sqrt(mean)).inv_cdf(least) / segments))
    losses, chance, up_to = 0, math.exp(-mean), math.exp(-mean)
    while up_to < least:
        losses += 1
        chance *= mean / losses
        up_to += chance
    return min(1.0, max(way.loss, losses / segments))


def _from_slow_start_us(size_bytes: int, rate_bps: float, way: Unheld) -> int:
    """Return how long bytes take whose window doubles each round trip until it carries the rate."""
    window_bytes, sent_bytes, passed_us = FIRST_SEGMENTS * way.mss_bytes * way.streams, 0, 0
    while window_bytes * 8 * US < rate_bps * way.rtt_us and sent_bytes + window_bytes < size_bytes:
        sent_bytes, window_bytes, passed_us = sent_bytes + window_bytes, window_bytes * 2, passed_us + way.rtt_us
    return passed_us + math.ceil((size_bytes - sent_bytes) * 8 * US / rate_bps) + way.rtt_us
