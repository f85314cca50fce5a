"""One transfer over time, as it arrives: Freemon's figure 3. What is made of the looks at it is pure."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from mininet_tests.probes.series import at

LOOK_S = 0.002
STILL_SHARE = 0.1  # of the line's rate: a bin with less is part of a pause


@dataclass(frozen=True, slots=True)
class SoFar:
    """What has come to the receiver so far.

    Attributes:
        at_us: since the first write.
        segments: those that were let through, what was sent again included.
        lost: segments that were lost on their way there.
        readable_bytes: in order, so that a program could read them.
    """

    at_us: int
    segments: int
    lost: int
    readable_bytes: int


@contextmanager
def looking(look: Callable[[], tuple[int, int, int]]) -> Iterator[list[SoFar]]:
    """Look again and again, in a thread; yield what is seen, which is whole when this ends.

    Args:
        look: returns segments, lost and readable bytes; what it returns first is counted from.
    """
    seen: list[SoFar] = []
    stop = threading.Event()
    began_s, first = time.monotonic(), look()

    def run() -> None:
        while True:
            now = (value - before for value, before in zip(look(), first, strict=True))
            seen.append(SoFar(round((time.monotonic() - began_s) * 1e6), *now))
            if stop.wait(LOOK_S):
                return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def binned(seen: Sequence[SoFar], ended_s: float, bin_ms: int, size_bytes: int) -> dict[str, Any]:
    """Return a transfer in bins, when each loss was seen, and when the receiver had all.

    Args:
        seen: looks until after the end.
        ended_s: of the transfer, since its first write.
        bin_ms: of each bin.
        size_bytes: of the transfer.

    >>> looks = [SoFar(0, 0, 0, 0), SoFar(10_000, 6, 0, 6), SoFar(20_000, 10, 2, 8), SoFar(30_000, 12, 2, 12)]
    >>> binned(looks, 0.025, 10, 12)
    {'segments': [6, 4, 2], 'readable_bytes': [6, 8, 12], 'losses_s': [0.02, 0.02], 'received_s': 0.03}
    """
    times_us, bin_us = [look.at_us for look in seen], bin_ms * 1000
    edges_us = range(0, round(ended_s * 1e6) + bin_us, bin_us)
    arrived = [at(times_us, [look.segments for look in seen], edge_us) for edge_us in edges_us]
    readable = [look.readable_bytes for look in seen]
    losses = [after.at_us / 1e6 for before, after in pairwise(seen) for _ in range(after.lost - before.lost)]
    return {
        "segments": [round(after) - round(before) for before, after in pairwise(arrived)],
        "readable_bytes": [round(at(times_us, readable, edge_us)) for edge_us in edges_us[1:]],
        "losses_s": losses,
        "received_s": next(look.at_us for look in seen if look.readable_bytes >= size_bytes) / 1e6,
    }


def pauses_s(segments: Sequence[int], bin_ms: int, full_segments: float) -> list[tuple[float, float]]:
    """Return when nearly nothing arrived between the first and the last segment: from and until.

    Args:
        segments: of each bin.
        bin_ms: of each bin.
        full_segments: what the line brings in a bin.

    >>> pauses_s([0, 9, 0, 1, 100, 100, 0, 3], 10, 100.0)
    [(0.02, 0.04), (0.06, 0.07)]
    """
    some = [number for number, count in enumerate(segments) if count]
    found = []
    between = range(some[0] + 1, some[-1])
    for still, numbers in groupby(between, lambda number: segments[number] < STILL_SHARE * full_segments):
        if still:
            first, *rest = numbers
            found.append((first * bin_ms / 1000, ((rest or [first])[-1] + 1) * bin_ms / 1000))
    return found
