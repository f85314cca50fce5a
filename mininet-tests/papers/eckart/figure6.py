"""The algorithm of the paper's figure 6, and Headway's rule beside it, in a fluid: a sender, a buffer, a disk. Pure.

Two misprints of figure 6 are put right: what is left is ``fSize - curNet * (pktSize - hdrSize)``, and all sizes are
bits. There are no packets here, so headers are none.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from controller.plan.receivers import ReceiverBucket

TICK_S = 0.01
MBIT = 1e6
MB_BITS = 8e6
Disk = Callable[[float], float]  # from the time, s, to what it can write then, bit/s


@dataclass(frozen=True, slots=True)
class Setting:
    """One transfer; sizes in bits, times in seconds, rates in bit/s.

    Attributes:
        file_bits: f.
        memory_bits: m.
        disk: r(disk) over time.
        line_bps: the most that the sender may be set to.
        first_bps: what it is set to until the first epoch is over.
        epoch_s: how often the receiver sets the rate.
        rtt_s: until a rate that was set is the rate that arrives.
    """

    file_bits: float
    memory_bits: float
    disk: Disk
    line_bps: float = 1000 * MBIT
    first_bps: float = 500 * MBIT
    epoch_s: float = 1.0
    rtt_s: float = 0.18


@dataclass(frozen=True, slots=True)
class Epoch:
    """What the receiver has seen by the end of an epoch, bits, and seconds."""

    left_bits: float
    room_bits: float
    written_bits: float
    waited_s: float
    epoch_s: float


Rule = Callable[[Epoch, float], float]  # from an epoch and the rate before it to the next rate; the line bounds it


@dataclass(slots=True)
class Run:
    """What became of a transfer.

    Attributes:
        across_s: when all had arrived.
        kept_s: when all was on the disk.
        lost_bits: what found the buffer full, and was sent again.
        rates_bps: the rates that were set, an epoch each.
        most_bits: the most that waited at once.
    """

    across_s: float = 0.0
    kept_s: float = 0.0
    lost_bits: float = 0.0
    rates_bps: list[float] = field(default_factory=list)
    most_bits: float = 0.0

    @property
    def lasting_bps(self) -> float:
        """The rate that most epochs of its second half had, the middle one."""
        half = sorted(self.rates_bps[len(self.rates_bps) // 2 :])
        return half[len(half) // 2]


def figure6(line_bps: float) -> Rule:
    """Return the paper's rule: alpha times what was written in the epoch, whether anything had waited or not."""

    def rule(seen: Epoch, _before_bps: float) -> float:
        over_bits = seen.left_bits - seen.room_bits
        if over_bits <= 0:
            return line_bps
        return min(line_bps, seen.written_bits / seen.epoch_s * seen.left_bits / over_bits)

    return rule


def drained_while_waiting(line_bps: float) -> Rule:
    """Return Headway's rule: eq. (4), the drain being what was written for each second in which data waited.

    What was written while nothing waited says what came, not what the disk can write; so nothing follows from an epoch
    in which little waited, and a disk that stood still for one does not stop its sender.
    """
    known_bps = 0.0

    def rule(seen: Epoch, _before_bps: float) -> float:
        nonlocal known_bps
        if seen.waited_s < seen.epoch_s / 4:
            return line_bps
        now_bps = seen.written_bits / seen.waited_s
        known_bps = now_bps if not known_bps else known_bps + (now_bps - known_bps) * min(1.0, seen.epoch_s / 5)
        bucket = ReceiverBucket(int(seen.room_bits / 8), max(1, int(known_bps)))
        least_bps = bucket.rate_bps(int(seen.left_bits / 8))
        return line_bps if least_bps is None else min(line_bps, least_bps)

    return rule


def transferred(setting: Setting, rule: Rule) -> Run:
    """Return what becomes of a transfer whose rate a rule sets; what finds no room is sent again later."""
    run, arrived, waiting, now_s = Run(), 0.0, 0.0, 0.0
    rate_bps, next_s, written, waited_s = setting.first_bps, setting.epoch_s, 0.0, 0.0
    coming: list[tuple[float, float]] = []  # rates on their way: when each takes effect
    while arrived < setting.file_bits or waiting > 0:
        while coming and coming[0][0] <= now_s:
            rate_bps = coming.pop(0)[1]
        comes = min(rate_bps * TICK_S, setting.file_bits - arrived)
        writes = min(setting.disk(now_s) * TICK_S, waiting + comes)
        waited_s += TICK_S if waiting + comes > writes else 0.0
        lost = max(0.0, waiting + comes - writes - setting.memory_bits)
        arrived, waiting, written = arrived + comes - lost, waiting + comes - writes - lost, written + writes
        run.lost_bits, run.most_bits, now_s = run.lost_bits + lost, max(run.most_bits, waiting), now_s + TICK_S
        if arrived >= setting.file_bits and not run.across_s:
            run.across_s = now_s
        if now_s >= next_s - TICK_S / 2 and arrived < setting.file_bits:
            seen = Epoch(setting.file_bits - arrived, setting.memory_bits - waiting, written, waited_s, setting.epoch_s)
            run.rates_bps.append(rule(seen, rate_bps))
            coming.append((now_s + setting.rtt_s, run.rates_bps[-1]))
            next_s, written, waited_s = next_s + setting.epoch_s, 0.0, 0.0
    run.kept_s = now_s
    return run


def steady(rate_bps: float) -> Disk:
    """Return a disk that always writes as fast."""
    return lambda _at_s: rate_bps


def stalling(rate_bps: float, stands_s: float, every_s: float) -> Disk:
    """Return a disk that stands still for the first of every so many seconds, from the second time on."""
    return lambda at_s: 0.0 if at_s >= every_s and at_s % every_s < stands_s else rate_bps
