"""What a mover makes of the rate that it is given: blocks in lock step, files one after the other. Pure.

Source of the lock step: Wertz et al., figures 6, 7 and 11. PFTP deals blocks to its streams in turn and waits, after
each round, until all are confirmed. Blocks of equal streams end together: the round trip that is lost is common to all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

US = 1_000_000


@dataclass(frozen=True, slots=True)
class Mover:
    """How a program sends; as it stands, one file without a pause.

    Attributes:
        streams: how many connections share a file.
        block_bytes: what each stream sends at a time; 0 for no blocks.
        lock_step: whether all wait until each has confirmed its block.
        checkpoint_bytes: after so much all stop until all is confirmed; 0 for never.
        per_file_us: what each file costs, whatever its size.
        files_at_once: how many files are under way together.
    """

    streams: int = 1
    block_bytes: int = 0
    lock_step: bool = False
    checkpoint_bytes: int = 0
    per_file_us: int = 0
    files_at_once: int = 1

    @property
    def pauses(self) -> bool:
        """Whether it ever sends less than it may."""
        return bool((self.lock_step and self.block_bytes) or self.checkpoint_bytes or self.per_file_us)

    def dealt(self, sizes_bytes: Sequence[int]) -> tuple["Mover", ...]:
        """Return what it is on each of several lanes, of which each moves its part of every file.

        A connection is on one lane: the next one on that which has most to move for each of its own, and each lane has
        one at least. A checkpoint is of all lanes together.

        >>> [one.streams for one in Mover(6).dealt((200, 100))], [one.streams for one in Mover(3).dealt((1000, 1))]
        ([4, 2], [2, 1])
        """
        streams = [1 for _ in sizes_bytes]
        for _ in range(self.streams - len(streams)):
            each_moves = [Fraction(size, count) for size, count in zip(sizes_bytes, streams, strict=True)]
            streams[each_moves.index(max(each_moves))] += 1
        whole = sum(sizes_bytes)
        return tuple(
            replace(self, streams=count, checkpoint_bytes=-(-self.checkpoint_bytes * size // whole))
            for size, count in zip(sizes_bytes, streams, strict=True)
        )

    def effective_bps(self, payload_bps: int, rtt_us: int, file_bytes: int) -> int:
        """Return what it moves in the long run, bit/s, where it may send ``payload_bps``; rounded down.

        In lock step ``n B / (n B / C + RTT)``; with a checkpoint each ``K`` bytes a round trip more for each, and what
        the slowest stream is behind: a block of each at most. A file of ``F`` bytes takes what that makes of it, and
        its own cost.

        >>> [round(Mover(n, 16_000_000, True).effective_bps(990_042_044, 180_000, 0) / 990_042_044, 2) for n in (1, 4)]
        [0.42, 0.74]
        >>> Mover().effective_bps(10**9, 180_000, 10**9)
        1000000000

        Args:
            payload_bps: what it may send, all streams together.
            rtt_us: the round trip.
            file_bytes: the size of each file; 0 for one that is never over.
        """
        if payload_bps <= 0:
            return 0
        rate_bps = payload_bps
        if self.lock_step and self.block_bytes:
            rate_bps = _with_pause(self.streams * self.block_bytes, rate_bps, rtt_us)
        if self.checkpoint_bytes:
            behind_us = self.streams * self.block_bytes * 8 * US // payload_bps
            rate_bps = _with_pause(self.checkpoint_bytes, rate_bps, rtt_us + behind_us)
        if self.per_file_us and file_bytes:
            rate_bps = _with_pause(self.files_at_once * file_bytes, rate_bps, self.per_file_us)
        return rate_bps


def block_bytes(streams: int, payload_bps: int, rtt_us: int, percent: int) -> int:
    """Return the block with which streams in lock step use so much of a rate, bytes, rounded up.

    ``B >= s / (1 - s) C RTT / n``, for 95% 19 times what the round trip carries.

    >>> block_bytes(1, 990_042_044, 40_000, 95), block_bytes(4, 941_482_444, 180_000, 95)
    (94053995, 100620937)
    """
    return -(-percent * payload_bps * rtt_us // ((100 - percent) * streams * 8 * US))


def _with_pause(size_bytes: int, rate_bps: int, pause_us: int) -> int:
    """Return the rate over bytes and the pause after them."""
    bit_us = size_bytes * 8 * US
    if not rate_bps:
        return 0
    return bit_us * rate_bps // (bit_us + pause_us * rate_bps)
