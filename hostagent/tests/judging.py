"""Transfers with losses as TCP's counters show them, and the kernel part's own account of them, as a library."""

import ctypes
import math
import random
import subprocess
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hostagent.kernel.plan import Tuning

SOURCE = Path(__file__).parent / "judge.c"
BPF = Path(__file__).parent.parent / "bpf"
FOUND_RTTS = 1.25  # after so long a segment is known to be lost: RACK waits a quarter for reordering
LOOK_S = 0.01


class CountsSeen(NamedTuple):
    """A connection's counters at one acknowledgement, in segments; ``sent`` is what was sent anew."""

    at_s: float
    sent: int
    again: int
    confirmed: int
    delivered: int


@dataclass(frozen=True, slots=True)
class LossyPath:
    """What a transfer meets: its rate, its round trip, the share that is lost, and how many are lost together."""

    segments_per_s: float
    rtt_s: float
    loss: float
    together: int = 1

    @property
    def window_segments(self) -> int:
        """What is in flight at the rate."""
        return int(self.segments_per_s * self.rtt_s)

    def lost(self, segments: int, rng: random.Random) -> list[int]:
        """Return which of a transfer's segments are lost the first time."""
        lost: list[int] = []
        begins, first = self.loss / self.together, 0
        while begins:
            first += int(math.log(1 - rng.random()) / math.log(1 - begins))
            if first >= segments:
                break
            lost.extend(range(first, min(first + self.together, segments)))
            first += self.together
        return lost

    def transfer(
        self, began_s: float, segments: int, rng: random.Random, outage_s: tuple[float, float] = (0, 0)
    ) -> Iterator[CountsSeen]:
        """Yield the counters from the first acknowledgement to the last, a hundred times a second.

        Args:
            began_s: when its first segment leaves.
            segments: how many it has.
            rng: where losses come from.
            outage_s: from when to when nothing arrives; what is lost then is sent again afterwards.
        """
        cut = range(*(max(0, min(segments, int((at_s - began_s) * self.segments_per_s))) for at_s in outage_s))
        lost = sorted({*self.lost(segments, rng), *cut})
        again_s, mended_s = [], []
        for segment in lost:
            at_s = began_s + segment / self.segments_per_s
            while True:
                at_s += FOUND_RTTS * self.rtt_s
                if outage_s[0] <= at_s < outage_s[1]:
                    at_s = outage_s[1]
                again_s.append(at_s)
                if rng.random() >= self.loss:
                    break
            mended_s.append(at_s + self.rtt_s)
        again_s.sort()
        in_order_s = sorted(mended_s)
        at_s, gap = began_s + self.rtt_s, 0
        while True:
            answered = min(segments, int((at_s - self.rtt_s - began_s) * self.segments_per_s) + 1)
            while gap < len(lost) and mended_s[gap] <= at_s:
                gap += 1
            missing = bisect_left(lost, answered) - bisect_right(in_order_s, at_s)
            confirmed = min(answered, lost[gap]) if gap < len(lost) else answered
            sent = min(segments, int((at_s - began_s) * self.segments_per_s) + 1)
            if not outage_s[0] <= at_s < outage_s[1]:
                yield CountsSeen(at_s, sent, bisect_right(again_s, at_s), confirmed, answered - missing)
            if confirmed == segments:
                return
            at_s += LOOK_S


def seeded(seed: int) -> random.Random:
    """Return where losses come from."""
    return random.Random(seed)  # noqa: S311 - repeatable, guards nothing


class LossJudge:
    """The account of one allocation with one connection at a time."""

    def __init__(self, library: Path, tuning: Tuning | None = None) -> None:
        """Begin: nothing was ever sent.

        Args:
            library: from :func:`built`.
            tuning: what loss is catastrophic; None for what agents have by default.
        """
        told = tuning or Tuning()
        self._library = ctypes.CDLL(str(library))
        self._library.acknowledged.restype = ctypes.c_uint64
        self._library.begin(
            ctypes.c_uint64(told.loss_period_us * 1000),
            ctypes.c_uint64(told.loss_hold_us * 1000),
            told.loss_trip_ppm,
            told.loss_clear_ppm,
        )
        self.connect()

    def connect(self) -> None:
        """Let a new connection take the place of the one before."""
        self._library.open_connection()
        self._before = CountsSeen(0, 0, 0, 0, 0)
        self._now = self._before

    def fell_s(self, path: LossyPath, transfer: Iterator[CountsSeen]) -> float | None:
        """Have the connection's next transfer accounted; return when it fell off the plan, None if it did not."""
        self._before = self._now
        for one in transfer:
            self._now = CountsSeen(one.at_s, *(new + old for new, old in zip(one[1:], self._before[1:], strict=True)))
            if self._acknowledged(path, self._now):
                return one.at_s
        return None

    def _acknowledged(self, path: LossyPath, seen: CountsSeen) -> bool:
        counts = (seen.sent, seen.again, seen.confirmed, seen.delivered)
        at_ns = ctypes.c_uint64(int(seen.at_s * 1e9))
        return bool(self._library.acknowledged(at_ns, path.window_segments, *counts))


def built(folder: Path) -> Path:
    """Return the kernel part's account of loss as a library for this machine."""
    library = folder / "judge.so"
    options = ("-O2", "-Wall", "-Werror", "-Wno-unused-function", "-shared", "-fPIC", f"-I{BPF}")
    subprocess.run(["cc", *options, "-o", str(library), str(SOURCE)], check=True)
    return library
