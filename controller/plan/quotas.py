"""Quotas: how much of the network one owner may have promised to it at a time. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from controller.plan.lifecycle import ENDED
from controller.plan.reservations import MAX_TIME_US, Reservation
from topology import units


@dataclass(frozen=True, slots=True)
class Quota:
    """What an owner may have; None for as much as there is.

    Attributes:
        rate_bps: of all its reservations together at any instant, on the wire.
        size_bytes: payload of all its announcements that are in the plan.
        ahead_us: how far from now its reservations end at the latest.
        entries: how many reservations and announcements, together.
    """

    rate_bps: int | None = None
    size_bytes: int | None = None
    ahead_us: int | None = None
    entries: int | None = None


UNLIMITED = Quota()


@dataclass(frozen=True, slots=True)
class Quotas:
    """By owner its quota; all others have ``default``, each for itself."""

    by_owner: Mapping[str, Quota] = field(default_factory=dict)
    default: Quota = UNLIMITED

    def of(self, owner: str) -> Quota:
        """Return the quota of an owner."""
        return self.by_owner.get(owner, self.default)


NO_QUOTAS = Quotas()


class Limit(StrEnum):
    """What a quota limits, as the API names it."""

    RATE = "rate_bps"
    BYTES = "bytes"
    AHEAD = "ahead_s"
    ENTRIES = "entries"


@dataclass(frozen=True, slots=True)
class Beyond:
    """What would be beyond a quota, in the unit of what is limited.

    Attributes:
        owner: whose quota.
        limit: what it limits.
        quota: how much.
        asked: how much more is asked.
        left: how much more there may be.
    """

    owner: str
    limit: Limit
    quota: int
    asked: int
    left: int

    def __str__(self) -> str:
        """How much of what."""
        quota, asked, left = (self._shown(value) for value in (self.quota, self.asked, max(0, self.left)))
        if self.limit is Limit.AHEAD:
            return f"{self.owner} may reserve {quota} ahead, {asked} asked"
        of_what = {Limit.RATE: " at a time", Limit.BYTES: " announced", Limit.ENTRIES: " promises"}[self.limit]
        return f"{self.owner} may have {quota}{of_what}, and {left} of it is left: {asked} asked"

    def _shown(self, value: int) -> str:
        if self.limit is Limit.RATE:
            return units.shown_rate(value)
        if self.limit is Limit.BYTES:
            return units.shown_size(value)
        return f"{value / 86_400:.6g} days" if self.limit is Limit.AHEAD else str(value)


@dataclass(frozen=True, slots=True)
class Live:
    """What an owner has.

    Attributes:
        reservations: that have not ended.
        sizes_bytes: of its announcements in the plan.
    """

    reservations: tuple[Reservation, ...]
    sizes_bytes: tuple[int, ...]

    @property
    def entries(self) -> int:
        """How many reservations and announcements."""
        return len(self.reservations) + len(self.sizes_bytes)

    @property
    def size_bytes(self) -> int:
        """What is announced."""
        return sum(self.sizes_bytes)

    def peak_bps(self, start_us: int, end_us: int = MAX_TIME_US) -> int:
        """Return the most that is reserved at any instant of a time."""
        changes: list[tuple[int, int]] = []
        for known in self.reservations:
            begin_us, over_us = max(known.start_us, start_us), min(known.end_us, end_us)
            if begin_us < over_us:
                changes += [(begin_us, known.rate_bps), (over_us, -known.rate_bps)]
        now_bps = most_bps = 0
        for _, change_bps in sorted(changes):  # at one instant what ends comes before what begins
            now_bps += change_bps
            most_bps = max(most_bps, now_bps)
        return most_bps


def live_of(owner: str, reservations: Iterable[Reservation], announced: Iterable[tuple[str, int]]) -> Live:
    """Return what an owner has.

    Args:
        owner: it.
        reservations: of anybody.
        announced: of each announcement in the plan its owner, and its bytes.
    """
    own = tuple(known for known in reservations if known.owner == owner and known.state not in ENDED)
    return Live(own, tuple(size_bytes for whose, size_bytes in announced if whose == owner))


@dataclass(frozen=True, slots=True)
class More:
    """What is asked beside what an owner has.

    Attributes:
        owner: whose it would be.
        rate_bps: of a reservation, on the wire; 0 for an announcement.
        start_us: when it begins, Unix time.
        end_us: when it ends, Unix time; by when an announcement is to arrive.
        size_bytes: of an announcement; 0 for a reservation.
    """

    owner: str
    rate_bps: int
    start_us: int
    end_us: int
    size_bytes: int = 0


def beyond(quota: Quota, live: Live, more: More, now_us: int) -> Beyond | None:
    """Return what of that which is asked would be beyond a quota, the first that is; None if nothing is."""
    ahead_s = -(-(more.end_us - now_us) // 1_000_000)
    quota_s = None if quota.ahead_us is None else quota.ahead_us // 1_000_000
    peak_bps = live.peak_bps(more.start_us, more.end_us) if quota.rate_bps is not None and more.rate_bps else 0
    for limit, most, asked, has in (
        (Limit.ENTRIES, quota.entries, 1, live.entries),
        (Limit.AHEAD, quota_s, ahead_s, 0),
        (Limit.RATE, quota.rate_bps, more.rate_bps, peak_bps),
        (Limit.BYTES, quota.size_bytes, more.size_bytes, live.size_bytes),
    ):
        if most is not None and asked and has + asked > most:
            return Beyond(more.owner, limit, most, asked, most - has)
    return None


def grows(before: Reservation, more: More) -> bool:
    """Return whether a change asks for anything that a reservation has not: less is never beyond a quota."""
    return (
        before.owner != more.owner
        or before.rate_bps < more.rate_bps
        or more.start_us < before.start_us
        or before.end_us < more.end_us
    )
