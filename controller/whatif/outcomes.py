"""What came of it: each transfer, each reservation, and how much each circuit carried. Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TransferOutcome:
    """What became of one transfer, or of one reservation.

    Attributes:
        item: the workload's item.
        number: which time of that.
        begun_us: when it was asked for, Unix time.
        promised_us: by when it was to be done; None if it was refused.
        done_us: when the last byte was confirmed, or the reservation was over; None if it was not by the end.
        sent_bytes: the payload that has left, what is counted as lost included.
        lost_bytes: what of that was on a circuit as it died, and had to be sent again.
        why: why it was refused, or is late; empty for neither.
        is_refused: whether it was not promised.
        lacked_us: of a reservation, for how long less was sent than was reserved.
        called: its name where it is one of its own, made before the scenario began; empty for one of the workload.
    """

    item: str
    number: int
    begun_us: int
    promised_us: int | None
    done_us: int | None
    sent_bytes: int
    lost_bytes: int
    why: str = ""
    is_refused: bool = False
    lacked_us: int = 0
    called: str = ""

    @property
    def took_us(self) -> int | None:
        """From when it was asked for until it was done."""
        return None if self.done_us is None else self.done_us - self.begun_us

    def is_late(self, until_us: int) -> bool:
        """Return whether its promise is broken, as of the end of the scenario."""
        if self.promised_us is None or self.lacked_us > 0:
            return self.lacked_us > 0
        return self.promised_us < until_us if self.done_us is None else self.done_us > self.promised_us


@dataclass
class CircuitUse:
    """What each direction of each circuit carried over time, in slices of equal length.

    Attributes:
        from_us: when the first slice begins.
        slice_us: how long each is.
        bit_us: by direction, the sum of wire bits x 1,000,000 in each slice.
    """

    from_us: int
    slice_us: int
    bit_us: dict[str, list[int]] = field(default_factory=dict)

    def add(self, rates_bps: dict[str, int], start_us: int, end_us: int) -> None:
        """Add rates on the wire over an interval."""
        at_us = start_us
        while at_us < end_us:
            number = (at_us - self.from_us) // self.slice_us
            until_us = min(end_us, self.from_us + (number + 1) * self.slice_us)
            for name, rate_bps in rates_bps.items():
                if rate_bps:
                    self.bit_us[name][number] += rate_bps * (until_us - at_us)
            at_us = until_us

    def add_sums(self, bit_us: Mapping[str, int], start_us: int, end_us: int) -> bool:
        """Add what an interval came to, and say so; not if it is of more than one slice."""
        number = (start_us - self.from_us) // self.slice_us
        if end_us > self.from_us + (number + 1) * self.slice_us:
            return False
        for name, sum_bit_us in bit_us.items():
            self.bit_us[name][number] += sum_bit_us
        return True


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What one run has shown.

    Attributes:
        seed: of what is drawn.
        until_us: when it ended.
        transfers: in the order in which they were asked for.
        use: of the circuits.
        deaths: by circuit, how often it died, and for how long in all, microseconds.
        standing_bytes: by standing flow, the payload that it sent.
        events: how many were worked off; what is done again counts as it did the first time, so nearly the same.
    """

    seed: int
    until_us: int
    transfers: tuple[TransferOutcome, ...]
    use: CircuitUse
    deaths: dict[str, tuple[int, int]]
    standing_bytes: dict[str, int]
    events: int = field(compare=False)
