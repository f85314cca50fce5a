"""When a flow is at its plan again after what has happened to it, from what has arrived of it. Pure."""

from bisect import bisect_left
from collections.abc import Sequence

AT_PLAN = 0.95  # of a flow's planned payload, over a slice: it is at its plan
SLICE_US = 50_000
DEPARTURE_BITS = 2 * 1448 * 8  # it may lack one: a slow flow has few of them in a slice
ALLOWED_MS = 100  # beside one round trip, until a flow is at its plan again

Received = Sequence[tuple[int, dict[str, int]]]  # time, and payload received so far by sender


def bps(received: Received, host: str, from_us: int, to_us: int) -> float:
    """Return what has arrived of a sender between two instants, payload, bit/s."""
    times = [at_us for at_us, _ in received]
    first, last = (min(bisect_left(times, at_us), len(times) - 1) for at_us in (from_us, to_us))
    if first == last:
        return 0.0
    moved = received[last][1][host] - received[first][1][host]
    return moved * 8_000_000 / (received[last][0] - received[first][0])


def slices(received: Received, host: str, from_us: int, to_us: int) -> list[tuple[int, float]]:
    """Return (begin, bit/s) of each slice that begins with a sample between two instants."""
    begins = [at_us for at_us, _ in received if from_us <= at_us < to_us]
    return [(at_us, bps(received, host, at_us, at_us + SLICE_US)) for at_us in begins]


def back_ms(received: Received, host: str, planned_bps: int, died_us: int, until_us: int) -> float | None:
    """Return how long after its circuit's death a flow was at its plan again, for good; None if it never was.

    That is the end of the last slice in which it was not, when it was after that for at least a quarter of a second.
    """
    found = slices(received, host, died_us, until_us - SLICE_US)
    least_bps = AT_PLAN * planned_bps - DEPARTURE_BITS * 1_000_000 / SLICE_US
    below = [at_us for at_us, got_bps in found if got_bps < least_bps]
    if not found or (below and below[-1] > found[-1][0] - 250_000):
        return None
    return (below[-1] + SLICE_US - died_us) / 1000 if below else 0.0
