"""A receiver is a bucket: it takes so many bytes at once, and drains at a rate for good. Pure.

What a receiver can take bounds what is worth sending it, whatever the network could carry: bytes that have arrived by
``t`` are at most ``m + d t``, its room and what it has drained meanwhile (network calculus: sigma and rho). The rates
below are the lowest and the highest that keep to that.

Source: Eckart, He, Wu, Xie, "A Dynamic Performance-Based Flow Control Method for High-Speed Data Transfer" (PA-UDP),
section 5.1; m is ``room_bytes``, r(disk) = d is ``drain_bps``, r(recv) a rate, f a size. Rates here are payload.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.plan.shares import max_min
from topology.wire import PPM

BYTE_US = 8_000_000  # bits x microseconds: what a byte takes at one bit/s


@dataclass(frozen=True, slots=True)
class ReceiverBucket:
    """What a receiver takes.

    Attributes:
        room_bytes: at once.
        drain_bps: for good, bit/s of payload; above 0.
    """

    room_bytes: int
    drain_bps: int

    def holds_until_us(self, rate_bps: int) -> int | None:
        """Return how long it takes a rate before it is full, microseconds; None for ever. Source: eq. (2).

        >>> ReceiverBucket(50_000_000, 100_000_000).holds_until_us(369_000_000)
        1486988
        """
        surplus_bps = rate_bps - self.drain_bps
        return self.room_bytes * BYTE_US // surplus_bps if surplus_bps > 0 else None

    def largest_bytes(self, rate_bps: int) -> int | None:
        """Return the largest file that it takes at a rate throughout; None for any. Source: eq. (3).

        >>> ReceiverBucket(750_000_000, 275_400_000).largest_bytes(958_600_000) // 10**6
        1052
        """
        surplus_bps = rate_bps - self.drain_bps
        return self.room_bytes * rate_bps // surplus_bps if surplus_bps > 0 else None

    def rate_bps(self, size_bytes: int) -> int | None:
        """Return the lowest constant rate that has it full when the last byte arrives; None: any. Source: eq. (4).

        >>> ReceiverBucket(750_000_000, 275_370_000).rate_bps(1_000_000_000)
        1101480000
        """
        over_bytes = size_bytes - self.room_bytes
        return self.drain_bps * size_bytes // over_bytes if over_bytes > 0 else None

    def gain_ppm(self, size_bytes: int) -> int | None:
        """Return alpha, what that rate is of its drain, parts per million; None without a bound. Source: eqs. (5-7)."""
        over_bytes = size_bytes - self.room_bytes
        return PPM * size_bytes // over_bytes if over_bytes > 0 else None

    def takes_bytes(self, after_us: int) -> int:
        """Return the most that can have arrived after a time, if it was empty before."""
        return self.room_bytes + self.drain_bps * after_us // BYTE_US

    def across_us(self, size_bytes: int, line_bps: int) -> int:
        """Return how long a file takes to arrive at the soonest: by the line, or by what it does not hold at once."""
        drained_us = -(-max(0, size_bytes - self.room_bytes) * BYTE_US // self.drain_bps)
        return max(-(-size_bytes * BYTE_US // line_bps), drained_us)

    def stored_us(self, size_bytes: int, line_bps: int) -> int:
        """Return how long a file takes until all of it is drained, on the disk, at the soonest."""
        return max(-(-size_bytes * BYTE_US // line_bps), -(-size_bytes * BYTE_US // self.drain_bps))


def room_needed_bytes(rate_bps: int, size_bytes: int, drain_bps: int) -> int:
    """Return the room with which a file arrives at a rate throughout. Source: eq. (12), which is (4) turned round.

    >>> room_needed_bytes(10**10, 10**10, 10**9)
    9000000000
    """
    return -(-size_bytes * max(0, rate_bps - drain_bps) // rate_bps)


@dataclass(frozen=True, slots=True)
class Incoming:
    """One sender of several to a receiver.

    Attributes:
        most_bps: what it could use, bit/s of payload.
        left_bytes: what it has yet to send; None if nobody knows.
    """

    most_bps: int
    left_bytes: int | None = None


def ceilings_bps(bucket: ReceiverBucket, senders: Sequence[Incoming]) -> list[int]:
    """Return the highest rate of each sender for which the receiver has room, bit/s of payload.

    All together have eq. (4)'s rate of what they have left and of the room there is now; or the drain alone, if one of
    them has no end. That is divided max-min fairly, so nothing of it is left while somebody could use more. Kept to
    from now on, and asked again whenever a sender comes, ends or changes, they never overrun the receiver.

    >>> ceilings_bps(ReceiverBucket(0, 300), [Incoming(1_000), Incoming(50), Incoming(1_000)])
    [125, 50, 125]
    >>> ceilings_bps(ReceiverBucket(50, 100), [Incoming(1_000, 150), Incoming(1_000, 50)])
    [67, 66]
    """
    left_bytes = [one.left_bytes for one in senders]
    total_bytes = None if None in left_bytes else sum(left or 0 for left in left_bytes)
    together_bps = bucket.drain_bps if total_bytes is None else bucket.rate_bps(total_bytes)
    most_bps = [one.most_bps for one in senders]
    if together_bps is None:
        return most_bps
    return max_min(together_bps, [0] * len(most_bps), most_bps)


@dataclass(frozen=True, slots=True)
class Turn:
    """The senders of one class to a receiver, whose turn is after that of the classes before it.

    Attributes:
        senders: they.
        kept_bps: what is kept for them of the drain, whatever the classes before could use; all together the drain.
    """

    senders: Sequence[Incoming]
    kept_bps: int


def ceilings_in_turn_bps(bucket: ReceiverBucket, turns: Sequence[Turn]) -> list[list[int]]:
    """Return the highest rate of each sender, by class: each class has what those before it leave of the receiver.

    What fits into the room at once takes of the room alone. What does not is to have it full when it ends, so until
    then there is none for others, and of the drain only what it does not use.

    >>> urgent, background = [Incoming(1_000, 150)], [Incoming(1_000)]
    >>> ceilings_in_turn_bps(ReceiverBucket(50, 100), [Turn(urgent, 0), Turn(background, 1)])
    [[148], [1]]
    >>> ceilings_in_turn_bps(ReceiverBucket(150, 100), [Turn(urgent, 0), Turn(background, 1)])
    [[1000], [100]]
    """
    kept_bps = [turn.kept_bps for turn in turns]
    room_bytes, drain_bps = bucket.room_bytes, bucket.drain_bps
    found = []
    for number, turn in enumerate(turns):
        own_bps = max(1, kept_bps[number], drain_bps - sum(kept_bps[number + 1 :]))
        rates_bps = ceilings_bps(ReceiverBucket(room_bytes, own_bps), turn.senders)
        found.append(rates_bps)
        left_bytes = [one.left_bytes for one in turn.senders]
        total_bytes = None if None in left_bytes else sum(left or 0 for left in left_bytes)
        if total_bytes is not None and total_bytes <= room_bytes:
            room_bytes -= total_bytes
        else:
            room_bytes = room_bytes if total_bytes is None else 0
            drain_bps = max(0, drain_bps - sum(rates_bps))
    return found
