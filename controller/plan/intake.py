"""What a receiver takes, learnt from what was seen of it second by second; and when that changes a plan. Pure.

While data waits for a receiver, what it drains is its rate. While nothing waits, that is only what came: no more than a
lower bound, and never taken for its rate. So a receiver that is held to a little more than it drains has always
something waiting, and when nothing waits any more it takes more than was thought, and is held no longer.

A plan that follows every noise of a disk would do more harm than the share that is idle. So nothing changes before two
sights in a row say the same, and a change soon after another must wait twice as long as that one had to. And a receiver
whose drain is noise is not let go as soon as nothing waits: it was held to less than its mean, is held to that, and let
go if nothing waits for half a minute then.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

SURPLUS = 16  # a receiver is held to its drain and a sixteenth of it: the surplus is what tells that it takes more
ALIKE = 2  # so many sights in a row must say the same before anything changes
SLOWLY = 4  # so many more, where none of them is sure
REMEMBERED = 30  # sights of which the drain is the mean: half a minute; a noisy receiver is not let go sooner
STANDS_SIGHTS = 3  # a receiver that stands still for no more than so many sights has not become slow
STANDS_SHARE = 16  # below a sixteenth of what it is held to, it stands still
NEAR = 6  # within a sixth of what it is held to, it is left there
NOISY, TELLING = 4, 4  # so many sights, further apart than a quarter of their mean, are noise around it
SUDDENLY = 2  # below half of that, or above twice, it is not waited for until the mean has followed
FIRST_WAIT_US, LONGEST_WAIT_US = 2_000_000, 64_000_000
CALM_US = 120_000_000  # without a change: the next one is not kept waiting


class Brake(StrEnum):
    """What makes a receiver slow."""

    WINDOW = "window"
    """Its senders see its window closed; nobody at its end says why."""
    READER = "reader"
    """The program that reads."""
    DISK = "disk"
    MEMORY = "memory"
    """Programs of its host wait for memory: neither another disk nor another reader would help."""


@dataclass(frozen=True, slots=True)
class IntakeSight:
    """What was seen of a receiver in about a second, or half of one if that is news.

    Attributes:
        drained_bps: what it has drained, bit/s of payload.
        is_waiting: whether something waited for it all the time.
        is_sure: whether that can be nothing else, such as the small window of a connection's first round trips.
        room_bytes: what it can take at once now; 0 if that is not known.
        brake: what makes it slow, if it is.
    """

    drained_bps: int
    is_waiting: bool
    room_bytes: int = 0
    brake: Brake = Brake.WINDOW
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Intake:
    """What is known of a receiver.

    Attributes:
        host: whose it is.
        drain_bps: what it is held to, but for the surplus, bit/s of payload; None: it is not held.
        room_bytes: what it can take at once now.
        brake: what makes it slow.
        since_us: since when it is held, or is not, elapsed time.
        changed_us: when a plan was last changed for it, elapsed time; None if never.
        wait_us: how long after that the next change must wait.
        drains_bps: the latest sights in which something waited, oldest first.
        waiting: how many sights in a row something waited; below 0 until that can be believed.
        quiet: how many sights in a row nothing did.
        standing: how many sights in a row it stood still.
        is_raised: it is noisy, and held to more since nothing waited for it.
        is_fixed: what it drains is what its operator says: nothing needs to be tried.
    """

    host: str = ""
    drain_bps: int | None = None
    room_bytes: int = 0
    brake: Brake = Brake.WINDOW
    since_us: int = 0
    changed_us: int | None = None
    wait_us: int = FIRST_WAIT_US
    drains_bps: tuple[int, ...] = ()
    waiting: int = 0
    quiet: int = 0
    standing: int = 0
    is_raised: bool = False
    is_fixed: bool = False

    @property
    def ceiling_bps(self) -> int | None:
        """Return what is worth sending it for ever, bit/s of payload; None: all that it is sent."""
        if self.drain_bps is None or self.is_fixed:
            return self.drain_bps
        return self.drain_bps + self.drain_bps // SURPLUS

    def seen(self, sight: IntakeSight, planned_bps: int, now_us: int) -> "Intake":
        """Return it after another sight.

        Args:
            sight: what was seen.
            planned_bps: what the plan lets it be sent, bit/s of payload: to hold it to no less frees nothing.
            now_us: elapsed time.
        """
        known = replace(self._counted(sight), room_bytes=sight.room_bytes)
        may_change = known.changed_us is None or now_us >= known.changed_us + known.wait_us
        if known.drain_bps is None:
            mean_bps = _mean(known.drains_bps)
            is_slow = known.waiting >= ALIKE and known.drains_bps and mean_bps + mean_bps // SURPLUS < planned_bps
            return known._changed(max(1, mean_bps), sight.brake, now_us) if is_slow and may_change else known
        if not may_change:
            return known
        if known.quiet >= ALIKE:
            return known._emptied(known.drain_bps, sight.brake, now_us)
        other_bps = known._other_bps(known.drain_bps)
        return known if other_bps is None else known._changed(other_bps, sight.brake, now_us)

    def _counted(self, sight: IntakeSight) -> "Intake":
        """Return it with a sight among those that are remembered."""
        if not sight.is_waiting:
            return replace(self, quiet=self.quiet + 1, waiting=0, standing=0)
        usual_bps = self.drain_bps or _mean(self.drains_bps)
        stands = sight.drained_bps * STANDS_SHARE < max(1, usual_bps)  # with nothing known: it drains nothing at all
        if stands and self.standing < STANDS_SIGHTS:
            return replace(self, quiet=0, standing=self.standing + 1)
        begins = self.drain_bps is None and (self.waiting == 0 or (self.waiting < 0 and sight.is_sure))
        if begins:  # in the first sight that it waits in, it has not waited all the time: what came before came freely
            return replace(self, quiet=0, waiting=1 if sight.is_sure else 1 - SLOWLY, drains_bps=())
        drains_bps = (*self.drains_bps, sight.drained_bps)[-REMEMBERED:]
        return replace(self, quiet=0, standing=0, waiting=self.waiting + 1 or 1, drains_bps=drains_bps)

    def _emptied(self, held_bps: int, brake: Brake, now_us: int) -> "Intake":
        """Return it when nothing waits any more: held no longer, or to its mean if it is noisy, or a little more."""
        if self._is_noisy(held_bps):
            more_bps = max(_mean(self.drains_bps), held_bps + held_bps // SURPLUS)
            return replace(self._changed(more_bps, brake, now_us), quiet=0, is_raised=True)
        if self.is_raised and self.quiet < REMEMBERED:
            return self
        return self._changed(None, brake, now_us)

    def _is_noisy(self, held_bps: int) -> bool:
        """Return whether what it has drained goes up and down, and nothing of that was far above what it is held to."""
        if len(self.drains_bps) < TELLING or max(self.drains_bps) >= held_bps * SUDDENLY:
            return False
        return (max(self.drains_bps) - min(self.drains_bps)) * NOISY > _mean(self.drains_bps)

    def _other_bps(self, held_bps: int) -> int | None:
        """Return what it is to be held to instead, None if that is near enough: much else at once, little in time."""
        lately = self.drains_bps[-ALIKE:]
        is_less = all(bps * SUDDENLY < held_bps for bps in lately)
        if len(lately) == ALIKE and (is_less or all(bps > held_bps * SUDDENLY for bps in lately)):
            return max(1, _mean(lately))
        mean_bps = _mean(self.drains_bps)
        is_near = abs(mean_bps - held_bps) * NEAR <= held_bps
        return None if is_near or len(self.drains_bps) < REMEMBERED else max(1, mean_bps)

    def _changed(self, drain_bps: int | None, brake: Brake, now_us: int) -> "Intake":
        was_calm = self.changed_us is None or now_us >= self.changed_us + self.wait_us + CALM_US
        return replace(
            self,
            drain_bps=drain_bps,
            brake=brake,
            since_us=now_us if drain_bps is None or self.drain_bps is None else self.since_us,
            changed_us=now_us,
            wait_us=FIRST_WAIT_US if was_calm else min(LONGEST_WAIT_US, 2 * self.wait_us),
            drains_bps=() if drain_bps is None else self.drains_bps[-ALIKE:],
            waiting=0 if drain_bps is None else self.waiting,
            is_raised=False,
        )


def _mean(rates_bps: Sequence[int]) -> int:
    return sum(rates_bps) // len(rates_bps) if rates_bps else 0
