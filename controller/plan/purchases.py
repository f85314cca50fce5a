"""What must be bought from a provider so that the reservations on one circuit can be carried.

Many short reservations live inside one long purchase: providers sell no less than some minutes, want to be asked ahead
of time, and take a while to build what they sold. ``periods`` says what is wanted, ``actions`` how to get there from
what is bought already. All times are integer Unix microseconds, UTC; every interval is half-open.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from controller.plan.steps import Steps


@dataclass(frozen=True, slots=True)
class Terms:
    """What a provider asks of those who buy from it.

    Attributes:
        lead_us: a purchase begins this long before its first use: the notice below, and the time of building it.
        tail_us: it ends this long after its last use.
        min_duration_us: nothing shorter is sold.
        gap_us: purchases closer to each other than this are refused, so they become one.
        granularity_bps: rates are whole multiples of this.
        tick_us: times are whole multiples of this; what is bought is that much longer rather than too short.
        begin_notice_us: nothing begins sooner than this after it is asked for; part of ``lead_us``.
        end_notice_us: what has begun ends no sooner than this after that is asked for.
        settle_us: a request without an answer may still be carried out for so long.
        fixed_rate: what is sold keeps its rate: what is more than is wanted stays, and what is less can grow no more.
        ends_itself: what is sold ends with its period; if not, it is there until it is given back.

    Raises:
        ValueError: a duration is negative, or a granularity not positive.
    """

    lead_us: int
    tail_us: int
    min_duration_us: int
    gap_us: int
    granularity_bps: int = 10**6
    tick_us: int = 1
    begin_notice_us: int = 0
    end_notice_us: int = 0
    settle_us: int = 0
    fixed_rate: bool = False
    ends_itself: bool = True

    def __post_init__(self) -> None:
        """Refuse terms that nobody can mean."""
        durations = (self.lead_us, self.tail_us, self.min_duration_us, self.gap_us)
        if min(*durations, self.begin_notice_us, self.end_notice_us, self.settle_us) < 0:
            raise ValueError(f"no duration of a provider's terms is negative, got {self}")
        if min(self.granularity_bps, self.tick_us) < 1:
            raise ValueError(f"need positive granularities of rate and time, got {self}")


@dataclass(frozen=True, slots=True)
class Period:
    """``rate_bps`` from ``start_us`` until ``end_us``, which is not in it any more.

    Raises:
        ValueError: it has no length, or a negative rate.
    """

    start_us: int
    end_us: int
    rate_bps: int

    def __post_init__(self) -> None:
        """Refuse what is no period."""
        if self.end_us <= self.start_us or self.rate_bps < 0:
            raise ValueError(f"need an end after the start and a rate, got {self}")

    def overlap_us(self, other: "Period") -> int:
        """Return for how long both last; negative if they are apart, by how much."""
        return min(self.end_us, other.end_us) - max(self.start_us, other.start_us)


class PurchaseState(StrEnum):
    """Where a purchase stands."""

    ASKED = "asked"  # written down before the provider was called: it may or may not know of it
    RESERVED = "reserved"  # sold, and not begun to be built
    DEPLOYING = "deploying"  # being built, rebuilt or taken down: carries nothing that one could count on
    UP = "up"
    FAILED = "failed"  # refused, or could not be built
    DROPPED = "dropped"  # to be given back, or given up: given back until it is gone, and again should it turn up
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Purchase:
    """What was bought.

    Attributes:
        name: which.
        period: what.
        state: where it stands.
        reason: why it is where it is, when that was not our wish.
        lacks: what of its rate the provider does not guarantee, in words; empty if nothing, or not looked at yet.
        route: what it crosses at the provider; empty if not known.
    """

    name: str
    period: Period
    state: PurchaseState
    reason: str = ""
    lacks: str = ""
    route: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Buy:
    """Buy ``period`` under a name not used before."""

    name: str
    period: Period


@dataclass(frozen=True, slots=True)
class PurchaseChange:
    """Make of the purchase ``name`` what ``period`` says; one that has begun keeps its start."""

    name: str
    period: Period


@dataclass(frozen=True, slots=True)
class Release:
    """Give the purchase ``name`` back."""

    name: str


Action = Buy | PurchaseChange | Release
_OVER = frozenset({PurchaseState.DROPPED, PurchaseState.ENDED})


def peak_bps(uses: Iterable[Period]) -> int:
    """Return the largest total rate of ``uses`` at any instant, bit/s; half-open, so what only touches does not add.

    >>> peak_bps([Period(0, 10, 4), Period(0, 10, 4), Period(10, 20, 7)])
    8
    """
    # A list, not a set: two equal uses that begin together are two.
    steps = [step for use in uses for step in ((use.start_us, use.rate_bps), (use.end_us, -use.rate_bps))]
    total = peak = 0
    for _, step_bps in sorted(steps):  # at one instant what ends (negative) sorts first
        total += step_bps
        peak = max(peak, total)
    return peak


def are_covered(uses: Iterable[Period], bought: Iterable[Period]) -> bool:
    """Return whether at each instant of each use what is bought carries them all.

    >>> are_covered([Period(0, 10, 4), Period(5, 20, 3)], [Period(0, 10, 7), Period(10, 20, 3)])
    True
    >>> are_covered([Period(0, 10, 4)], [Period(0, 9, 4)])
    False
    """
    balance = Steps()
    for period in bought:
        balance.add(period.start_us, period.end_us, period.rate_bps)
    held = tuple(uses)
    for use in held:
        balance.add(use.start_us, use.end_us, -use.rate_bps)
    return all(balance.least(use.start_us, use.end_us) >= 0 for use in held)


def sure_of(period: Period, target: Period) -> Period:
    """Return what is sure of a purchase while it is changed to ``target``: no more than both rates.

    Its times stay: what is over by them is not watched any more.

    >>> sure_of(Period(0, 20, 5), Period(0, 10, 3))
    Period(start_us=0, end_us=20, rate_bps=3)
    """
    return Period(period.start_us, period.end_us, min(period.rate_bps, target.rate_bps))


def periods(uses: Iterable[Period], terms: Terms) -> tuple[Period, ...]:
    """Return what must be bought for ``uses``: the fewest periods that cover each of them with its guard times.

    Each period begins ``lead_us`` before its first use and ends ``tail_us`` after its last, lasts ``min_duration_us``
    at least, and is ``gap_us`` at least from the next; its rate is the peak of the uses inside, on the provider's
    granularity. Guard times need no rate of their own: a circuit that is up carries what it carries.

    Args:
        uses: the reservations on the circuit, each with its wire rate; a rate of 0 needs no circuit.
        terms: the provider's.
    """
    inside: list[list[Period]] = []
    spans: list[tuple[int, int]] = []
    for use in sorted((u for u in uses if u.rate_bps), key=lambda u: (u.start_us, u.end_us, u.rate_bps)):
        start_us = _down(use.start_us - terms.lead_us, terms.tick_us)
        end_us = _up(max(use.end_us + terms.tail_us, start_us + terms.min_duration_us), terms.tick_us)
        if spans and start_us - spans[-1][1] < terms.gap_us:
            first_us, last_us = spans[-1]
            # Not extended to the minimum once more: what it joins lasts that long already.
            spans[-1] = (first_us, max(last_us, _up(use.end_us + terms.tail_us, terms.tick_us)))
            inside[-1].append(use)
        else:
            spans.append((start_us, end_us))
            inside.append([use])
    return tuple(
        Period(start_us, end_us, _up(peak_bps(held), terms.granularity_bps))
        for (start_us, end_us), held in zip(spans, inside, strict=True)
    )


def actions(
    wanted: Iterable[Period], bought: Iterable[Purchase], terms: Terms, now_us: int, new_name: Callable[[], str]
) -> tuple[Action, ...]:
    """Return the steps from what is bought to what is wanted; none once they are done.

    What has not begun may be moved freely; what has begun, or is so near its begin that the provider would not move it
    any more, keeps its start. What nobody wants is released. A failed purchase counts as not bought, and is released
    all the same: it may hold its VLAN at the provider until its end. What is over is left alone.

    The steps stand in an order in which no two purchases come closer than ``gap_us`` on the way, for they share ports
    and VLANs: first what is given back, then what is moved, then what is new.

    Args:
        wanted: from ``periods``.
        bought: everything bought for the circuit.
        terms: the provider's.
        now_us: Unix time, microseconds.
        new_name: draws the name of a new purchase.
    """
    live = [p for p in bought if p.state not in _OVER and p.period.end_us > now_us]
    spare = sorted((p for p in live if p.state is not PurchaseState.FAILED), key=lambda p: (p.period.start_us, p.name))
    targets: list[tuple[Purchase | None, Period]] = []
    ahead = sorted((w for w in wanted if w.end_us > now_us), key=lambda w: w.start_us)
    while ahead:
        after_us = targets[-1][1].end_us + terms.gap_us if targets else None
        fitted = _fitted(ahead, spare, terms, now_us, after_us)
        if fitted is not None:
            targets.append(fitted)
            spare = [p for p in spare if p is not fitted[0]]
    kept = {match.name for match, _ in targets if match is not None}
    released = [Release(p.name) for p in live if p.name not in kept]
    moved = [(match, target) for match, target in targets if match is not None and match.period != target]
    still = [match.period for match, target in targets if match is not None and match.period == target]
    new = [Buy(new_name(), target) for match, target in targets if match is None]
    return (*released, *_in_order(moved, still, terms.gap_us), *new)


def _down(value: int, step: int) -> int:
    """Return the largest multiple of ``step`` that is not above ``value``."""
    return value // step * step


def _up(value: int, step: int) -> int:
    """Return the smallest multiple of ``step`` that is not below ``value``."""
    return -(-value // step) * step


def _fitted(
    ahead: list[Period], spare: list[Purchase], terms: Terms, now_us: int, after_us: int | None
) -> tuple[Purchase | None, Period] | None:
    """Return the purchase that the next wanted period is to live in, None for a new one, and what it must become.

    Nothing at all if it would be over before anything new could begin. Takes from ``ahead`` the next wanted period and
    those that grow together with it: what cannot begin as early, or end as soon, as wanted may come too near the next.

    Nothing lasts less than 10, all keep 3 apart, and at 4 the first of two wanted periods has no purchase yet::

        time        0    5    10   15   20
        wanted      [-----)     [--------)   0 to 6, and 12 to 21
        from now        [.........)          4 to 14, as it lasts 10: beyond where the second begins,
        bought          [----------------)   so there is one for both

    >>> terms = Terms(lead_us=0, tail_us=0, min_duration_us=10, gap_us=3, granularity_bps=1)
    >>> ahead = [Period(0, 6, 1), Period(12, 21, 2), Period(30, 40, 1)]
    >>> _fitted(ahead, [], terms, 4, None)
    (None, Period(start_us=4, end_us=21, rate_bps=2))
    >>> ahead
    [Period(start_us=30, end_us=40, rate_bps=1)]
    """
    want = ahead.pop(0)
    match = _match(want, spare, terms, now_us, after_us)
    if match is None and want.end_us <= _start_us(want, None, terms, now_us):
        return None
    target = _target(want, match, terms, now_us)
    while ahead and ahead[0].start_us - target.end_us < terms.gap_us:
        joined = ahead.pop(0)
        # No use lies in both, so the peak of the two is the larger of their peaks.
        want = Period(want.start_us, max(want.end_us, joined.end_us), max(want.rate_bps, joined.rate_bps))
        match = match or _match(want, spare, terms, now_us, after_us)
        target = _target(want, match, terms, now_us)
    return match, target


def _match(want: Period, spare: Iterable[Purchase], terms: Terms, now_us: int, after_us: int | None) -> Purchase | None:
    """Return the purchase to use for ``want``: one that has begun before others, then that with the longest overlap.

    Args:
        want: what is wanted.
        spare: purchases nobody uses yet.
        terms: the provider's.
        now_us: Unix time, microseconds.
        after_us: the earliest start that keeps its distance from the period before; None if there is none.
    """
    usable = [
        (fixed, p.period.overlap_us(want), p)
        for p in spare
        for fixed in (_fixed(p.period, terms, now_us),)
        if p.period.overlap_us(want) > 0 and not (fixed and after_us is not None and p.period.start_us < after_us)
    ]
    return max(usable, key=lambda c: (c[0], c[1], -c[2].period.start_us, c[2].name), default=(False, 0, None))[2]


def _fixed(period: Period, terms: Terms, now_us: int) -> bool:
    """Return whether the start of what is bought cannot be moved any more: it has begun, or is about to."""
    return period.start_us <= now_us or period.start_us < now_us + terms.begin_notice_us


def _target(want: Period, match: Purchase | None, terms: Terms, now_us: int) -> Period:
    """Return what the purchase for ``want`` must become, as far as that can still be had."""
    start_us = _start_us(want, match, terms, now_us)
    kept_bps = match.period.rate_bps if match is not None and terms.fixed_rate else 0
    target = Period(start_us, _end_us(want, match, start_us, terms, now_us), max(want.rate_bps, kept_bps))
    if match is None or not want.end_us <= match.period.end_us < target.end_us:
        return target
    # Moved by its provider, it is long enough for who sold it: to ask for its end would move its begin again.
    return match.period if target == replace(match.period, end_us=target.end_us) else target


def _start_us(want: Period, match: Purchase | None, terms: Terms, now_us: int) -> int:
    """Return when the purchase for ``want`` must begin, Unix microseconds; never sooner than it can.

    A start up to ``begin_notice_us`` late stays as it is: providers move a start by that much when they are asked at
    the last moment, and the lead has room for it. To ask again would move it again.
    """
    earliest_us = max(want.start_us, _up(now_us + terms.begin_notice_us, terms.tick_us))
    if match is None:
        return earliest_us
    start_us = match.period.start_us
    late_enough = want.start_us <= start_us <= earliest_us + terms.begin_notice_us
    return start_us if _fixed(match.period, terms, now_us) or late_enough else earliest_us


def _end_us(want: Period, match: Purchase | None, start_us: int, terms: Terms, now_us: int) -> int:
    """Return when the purchase for ``want`` must end, Unix microseconds; never sooner than it can.

    What has begun ends ``end_notice_us`` from now at the soonest. An end before that stays if it is not too early: to
    ask for a sooner one would only move it to the notice again, and so on until it is over. It is 20, the notice is 10,
    and it is wanted until 24::

        time      20  24    30        40
                  now want  soonest
        bought  ----------------------)     too late: it ends at 30, as soon as can be
                ---------)                  it stays: 24 cannot be had
                ----)                       too early: 30, for a new end is no sooner

    >>> terms = Terms(lead_us=0, tail_us=0, min_duration_us=0, gap_us=0, end_notice_us=10)
    >>> bought = [Purchase("b", Period(0, end_us, 1), PurchaseState.UP) for end_us in (40, 27, 22)]
    >>> [_end_us(Period(0, 24, 1), one, 0, terms, 20) for one in bought]
    [30, 27, 30]
    """
    end_us = max(want.end_us, _up(start_us + terms.min_duration_us, terms.tick_us))
    soonest_us = _up(now_us + terms.end_notice_us, terms.tick_us)
    if match is None or not _fixed(match.period, terms, now_us) or end_us >= soonest_us:
        return end_us
    return match.period.end_us if end_us <= match.period.end_us <= soonest_us else soonest_us


def _in_order(moved: list[tuple[Purchase, Period]], still: list[Period], gap_us: int) -> list[PurchaseChange]:
    """Return the changes so ordered that none comes too near to what another still holds.

    Purchases do not overtake each other, so one is always free to move.
    """
    ordered: list[PurchaseChange] = []
    waiting = list(moved)
    while waiting:
        free = next((m for m in waiting if _clear(m, waiting, still, gap_us)), waiting[0])
        waiting.remove(free)
        still = [*still, free[1]]
        ordered.append(PurchaseChange(free[0].name, free[1]))
    return ordered


def _clear(
    move: tuple[Purchase, Period], waiting: Iterable[tuple[Purchase, Period]], still: Iterable[Period], gap_us: int
) -> bool:
    """Return whether the new period of ``move`` keeps its distance from all that others hold now."""
    held = [*still, *(purchase.period for purchase, _ in waiting if purchase is not move[0])]
    return all(move[1].overlap_us(period) <= -gap_us for period in held)
