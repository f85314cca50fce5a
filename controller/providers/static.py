"""A leased line: always there, nothing to buy; at most its owner announces when it has less to give."""

from collections.abc import Iterable
from itertools import pairwise
from random import Random

from controller.plan.purchases import Period, PurchaseState, Terms
from controller.providers.provider import CircuitStatus
from topology.units import shown_time


class StaticProvider:
    """A circuit that is ours already.

    Args:
        schedule: when it has another capacity than its own rate, 0 for maintenance.

    Raises:
        ValueError: two entries of the schedule overlap.
    """

    def __init__(self, schedule: Iterable[Period] = ()) -> None:
        self._schedule = tuple(sorted(schedule, key=lambda p: (p.start_us, p.end_us)))
        for before, after in pairwise(self._schedule):
            if after.start_us < before.end_us:
                until_us = min(before.end_us, after.end_us)
                raise ValueError(f"two capacities from {shown_time(after.start_us)} until {shown_time(until_us)}")

    @property
    def terms(self) -> Terms | None:
        """Return None: nothing is bought."""
        return None

    @property
    def schedule(self) -> tuple[Period, ...]:
        """Return when the circuit has another capacity than its own rate; sorted and disjoint."""
        return self._schedule

    def new_name(self, random: Random) -> str:
        """Return a name of eight hexadecimal digits: nobody asks for more."""
        return f"{random.getrandbits(32):08x}"

    def reserve(self, name: str, period: Period, apart: frozenset[str] = frozenset()) -> bool:  # noqa: ARG002 - the interface's
        """Return that we have it: it is ours."""
        return True

    def change(self, name: str, period: Period) -> Period:  # noqa: ARG002 - the interface's
        """Return ``period``: it is ours at any time."""
        return period

    def tend(self, name: str, period: Period) -> None:
        """Do nothing: it is built."""

    def release(self, name: str) -> bool:  # noqa: ARG002 - the interface's
        """Return that all is done that can be: it stays ours."""
        return True

    def status(self, name: str) -> CircuitStatus:  # noqa: ARG002 - the interface's
        """Return that it is up: what carries packets is seen by the switches, not here."""
        return CircuitStatus(PurchaseState.UP, None)

    def free_bps(self, start_us: int, end_us: int) -> int | None:  # noqa: ARG002 - the interface's
        """Return None: what is free of it is in the calendar."""
        return None

    def close(self) -> None:
        """Do nothing: nobody is connected to."""
