"""A calendar for each direction of a circuit: what is reserved, stacked to the line's rate, and what is free. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta, tzinfo
from itertools import pairwise
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from controller.announced import Known, state_at
from controller.northbound.page.words import utc
from controller.plan.announcement_states import AnnouncementState
from controller.plan.announcements import Announcement
from controller.plan.ended import EndedAnnouncement
from controller.plan.lifecycle import ENDED, ReservationState
from controller.plan.reservations import Reservation
from topology.network import Hop, Network, hops
from topology.units import shown_rate, shown_time

DAY_US = 86_400_000_000
BEFORE_US, AFTER_US = DAY_US, 7 * DAY_US  # what is drawn, from the day's beginning on
FAR_US = 180 * DAY_US  # a moment further from now is not told from another year's without its year
WIDTH, LEFT, HEIGHT, TOP, LINE = 1200, 8, 40, 31, 15  # as wide as a screen: its text is no larger than other text
HATCH = 5  # how far its lines are apart
MOST_DRAWN = 300  # reservations in one row; the rest is counted
MARKS = {AnnouncementState.ARRIVED: "●", AnnouncementState.LATE: "!", AnnouncementState.LAPSED: "!"}


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is drawn, Unix time: from the beginning of yesterday to the end of the seventh day from now."""

    start_us: int
    end_us: int

    def x(self, at_us: int) -> float:
        """Return where a moment is."""
        inside = min(max(at_us, self.start_us), self.end_us)
        return LEFT + (WIDTH - 2 * LEFT) * (inside - self.start_us) / (self.end_us - self.start_us)


def span(now_us: int) -> Span:
    """Return what is drawn at a moment."""
    today_us = now_us // DAY_US * DAY_US
    return Span(today_us - BEFORE_US, today_us + AFTER_US)


@dataclass(frozen=True, slots=True)
class Now:
    """The moment, Unix time, and the site's time zone; None for this machine's, which is at its site."""

    us: int
    local: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class LesserTime:
    """A time in which a circuit carries less than its rate, and why."""

    circuit: str
    start_us: int
    end_us: int
    rate_bps: int
    words: str


@dataclass(frozen=True, slots=True)
class Promised:
    """What is promised on one direction of a circuit in the time that is drawn, and when that carries less."""

    reservations: list[Reservation] = field(default_factory=list)
    announcements: list[Known] = field(default_factory=list)
    lesser: list[LesserTime] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CalendarRow:
    """One direction of a circuit: its picture."""

    circuit: str
    link: Hop
    title: str
    svg: str


def calendar_rows(
    network: Network,
    reservations: Sequence[Reservation],
    announcements: Sequence[Known],
    now: Now,
    lesser: Sequence[LesserTime] = (),
) -> Iterator[CalendarRow]:
    """Yield a row for each direction of a circuit that something is promised on, at least one of each circuit.

    Args:
        network: where.
        reservations: those in the time that is drawn.
        announcements: likewise.
        now: the moment.
        lesser: when circuits carry less.
    """
    promised: defaultdict[Hop, Promised] = defaultdict(Promised)
    for known in filter(None, map(_as_it_was, reservations)):
        for hop in (h for path in known.paths for h in _circuit_hops(network, path)):
            promised[hop].reservations.append(known)
    for one in announcements:
        for hop in dict.fromkeys(h for flow in _made(one).flows for h in _circuit_hops(network, flow.path)):
            promised[hop].announcements.append(one)
    drawn = set[str]()
    for tail, head, link in network.circuit_links:
        hop, name = Hop(tail, head), link.circuit or ""
        if hop in promised or (name not in drawn and network.is_ours(tail)):
            drawn.add(name)
            promised[hop].lesser.extend(one for one in lesser if one.circuit == name)
            title = f"{name}, from {tail}: {shown_rate(link.rate_bps)}; days of UTC"
            yield CalendarRow(name, hop, title, "\n".join(_row(name, hop, link.rate_bps, promised[hop], now)))


def _made(known: Known) -> Announcement:
    return known.announcement if isinstance(known, EndedAnnouncement) else known


def _as_it_was(known: Reservation) -> Reservation | None:
    """Return a reservation for the time that it had, or has; None if it ended before it began."""
    end_us = min(known.end_us, known.changed_us) if known.state in ENDED else known.end_us
    return replace(known, end_us=end_us) if end_us > known.start_us else None


def _circuit_hops(network: Network, path: tuple[str, ...]) -> list[Hop]:
    """Return the hops into circuits; none of a path that is not in the network any more."""
    try:
        return [hop for hop in hops(path) if network.link(*hop).circuit]
    except KeyError:
        return []


def _row(circuit: str, hop: Hop, rate_bps: int, promised: Promised, now: Now) -> Iterator[str]:
    drawn = span(now.us)
    height = TOP + HEIGHT + LINE
    about = f"Calendar of {circuit} from {hop.tail}"
    ends = f'data-start="{drawn.start_us}" data-end="{drawn.end_us}" data-circuit={quoteattr(circuit)}'
    yield (
        f'<svg class="calendar" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="group"'
        f" aria-label={quoteattr(about)} data-from={quoteattr(hop.tail)} {ends}>"
    )
    yield f'<rect class="free" x="{LEFT}" y="{TOP}" width="{WIDTH - 2 * LEFT}" height="{HEIGHT}"/>'
    yield from _days(drawn, now.local)
    lesser = [one for one in promised.lesser if one.end_us > drawn.start_us and one.start_us < drawn.end_us]
    for one in lesser:
        yield from _lesser(drawn, rate_bps, one, now)
    # What has ended makes room for what has not.
    first = sorted(promised.reservations, key=lambda r: (r.state in ENDED, r.start_us, r.sequence))[:MOST_DRAWN]
    shown = sorted(first, key=lambda r: (r.start_us, r.sequence))
    yield from _stacked(drawn, rate_bps, shown, now)
    for one in lesser:
        yield _hatched(drawn, rate_bps, one)
    if len(shown) < len(promised.reservations):
        more = f"and {len(promised.reservations) - len(shown)} reservations more"
        yield f'<text x="{WIDTH - LEFT}" y="{TOP + HEIGHT + 13}" text-anchor="end">{more}</text>'
    for known in promised.announcements[-MOST_DRAWN:]:
        yield from _tick(drawn, known, now)
    x = drawn.x(now.us)
    yield f'<path class="now" d="M{x:.1f} {TOP - 4}V{TOP + HEIGHT + 4}"/>'
    yield f'<text class="nowtext" x="{x + 3:.1f}" y="{TOP + HEIGHT + 13}">now</text>'
    yield "</svg>"


def _days(drawn: Span, local: tzinfo | None) -> Iterator[str]:
    """Yield a line for each midnight of UTC, with the site's time below it if that is another."""
    for at_us in range(drawn.start_us, drawn.end_us, DAY_US):
        at = utc(at_us)
        x = drawn.x(at_us)
        yield f'<path class="day" d="M{x:.1f} {TOP}v{HEIGHT}"/>'
        yield f'<text x="{x + 3:.1f}" y="12">{at:%a %d %b}</text>'
        here = at.astimezone(local)
        if here.utcoffset():
            yield f'<text class="local" x="{x + 3:.1f}" y="27">{here:%a %H:%M} here</text>'


def _lost(drawn: Span, rate_bps: int, one: LesserTime) -> tuple[float, float, float]:
    """Return where what a circuit carries less is drawn, from the top: left, width and height."""
    left, right = drawn.x(one.start_us), drawn.x(one.end_us)
    return left, max(2.0, right - left), HEIGHT * (1 - min(one.rate_bps, rate_bps) / rate_bps)


def _lesser(drawn: Span, rate_bps: int, one: LesserTime, now: Now) -> Iterator[str]:
    """Yield a time in which a circuit carries less, behind what is promised."""
    carried = f"only {shown_rate(one.rate_bps)} goes by" if one.rate_bps else "nothing goes by"
    about = f"{one.words}: {carried}, {_both(one.start_us, now)} to {_both(one.end_us, now)}"
    x, wide, high = _lost(drawn, rate_bps, one)
    yield f'<a href="/circuits/{quote(one.circuit)}" aria-label={quoteattr(about)}><title>{escape(about)}</title>'
    yield f'<rect class="lesser" x="{x:.1f}" y="{TOP}" width="{wide:.1f}" height="{high:.1f}"/>'
    yield f'<text class="mark" x="{x + wide / 2:.1f}" y="{TOP - 1}" text-anchor="middle">✕</text></a>'


def _hatched(drawn: Span, rate_bps: int, one: LesserTime) -> str:
    """Return lines over what is promised for a time in which there is no room for it."""
    x, wide, high = _lost(drawn, rate_bps, one)
    lines = "".join(f"M{x + HATCH * k:.1f} {TOP}v{high:.1f}" for k in range(1, int(wide / HATCH) + 1))
    return f'<path class="hatch" d="M{x:.1f} {TOP}v{high:.1f}{lines}"/>'


def _stacked(drawn: Span, rate_bps: int, reservations: list[Reservation], now: Now) -> Iterator[str]:
    """Yield each reservation as the steps that it takes in the stack of all that are at the same time."""
    inside = [r for r in reservations if r.end_us > drawn.start_us and r.start_us < drawn.end_us]
    edges = sorted({max(r.start_us, drawn.start_us) for r in inside} | {min(r.end_us, drawn.end_us) for r in inside})
    pieces: dict[str, list[str]] = {r.reservation_id: [] for r in inside}
    for start_us, end_us in pairwise(edges):
        below_bps = 0
        for known in inside:
            if known.start_us <= start_us and known.end_us >= end_us:
                pieces[known.reservation_id].append(
                    _piece(drawn, start_us, end_us, below_bps, known.rate_bps, rate_bps)
                )
                below_bps += known.rate_bps
    for known in inside:
        about = _about(known, now)
        kind = "ended" if known.state in ENDED else "held" if known.state is ReservationState.HELD else "kept"
        name = known.reservation_id
        yield (
            f'<a href="/reservations/{quote(name)}" id={quoteattr("cal-" + name)} aria-label={quoteattr(about)}>'
            f'<title>{escape(about)}</title><path class="{kind} {known.flow_class}" d="{"".join(pieces[name])}"/></a>'
        )


def _piece(drawn: Span, start_us: int, end_us: int, below_bps: int, own_bps: int, rate_bps: int) -> str:
    x, wide = drawn.x(start_us), max(1.0, drawn.x(end_us) - drawn.x(start_us))
    high = max(1.0, HEIGHT * min(own_bps, rate_bps) / rate_bps)
    y = max(TOP, TOP + HEIGHT * (1 - below_bps / rate_bps) - high)
    return f"M{x:.1f} {y:.1f}h{wide:.1f}v{high:.1f}h{-wide:.1f}z"


def _about(known: Reservation, now: Now) -> str:
    """Return a reservation in words: for who points at it, or has it read to him."""
    until = f"{_both(known.start_us, now)} to {_both(known.end_us, now)}"
    words = f", {known.description}" if known.description else ""
    rate = shown_rate(known.rate_bps)
    ends = f"{known.a_end} to {known.z_end}"
    whose = f", of {known.owner}" if known.owner else ""
    return f"{known.reservation_id}, {known.state}: {rate} {known.flow_class}, {ends}, {until}{whose}{words}"


def _both(at_us: int, now: Now) -> str:
    """Return a moment in UTC, and in the site's time if that is another; of one that is far from now, the date."""
    at = utc(at_us)
    if abs(at_us - now.us) > FAR_US:
        return f"{at:%d %b} {at.year:04d}"  # a clock of the site may not go as far
    here = at.astimezone(now.local)
    return f"{at:%d %b %H:%M} UTC" + (f" ({here:%H:%M} here)" if here.utcoffset() != timedelta() else "")


def _tick(drawn: Span, known: Known, now: Now) -> Iterator[str]:
    made = _made(known)
    if not drawn.start_us <= made.promised_us < drawn.end_us:
        return
    state = state_at(known, now.us)
    whose = f", of {made.owner}" if made.owner else ""
    about = f"announcement {made.announcement_id}{whose}, {state}: promised for {_both(made.promised_us, now)}"
    if made.finished_us is not None:
        about += f", arrived {shown_time(made.finished_us)}"
    x = drawn.x(made.promised_us)
    yield (
        f'<a href="/announcements/{quote(made.announcement_id, safe="")}" aria-label={quoteattr(about)}>'
        f'<title>{escape(about)}</title><path class="tick {state}" d="M{x:.1f} {TOP}v{HEIGHT}"/>'
        f'<text class="mark" x="{x:.1f}" y="{TOP - 1}" text-anchor="middle">{MARKS.get(state, "○")}</text></a>'
    )
