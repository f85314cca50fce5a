"""Reservations that have ended, and the questions about them. A question reads a bounded number of rows."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from controller.database.rows import reservation_of
from controller.database.tables import ENDED_RESERVATIONS as PAST
from controller.database.text import storable
from controller.plan.lifecycle import ReservationState
from controller.plan.reservations import Reservation, ReservationFilter

WINDOW_ROWS = 2_000  # so many rows are looked at for a page, whatever is asked; what waits to be saved waits no longer


ANY = ReservationFilter()


@dataclass(frozen=True, slots=True)
class PastQuery:
    """Which reservations that have ended.

    Attributes:
        after: those with a higher sequence.
        limit: how many at most, the lowest sequences first.
        wanted: which of them; its words are not looked for.
    """

    after: int = 0
    limit: int = 1
    wanted: ReservationFilter = ANY


@dataclass(frozen=True, slots=True)
class PastPage:
    """What a question has found.

    Attributes:
        found: in the order of their sequence.
        up_to: the sequence up to which there are no others; None if there are no more at all.
    """

    found: tuple[Reservation, ...]
    up_to: int | None


def past_page(connection: Connection, query: PastQuery) -> PastPage:
    """Return a page of what is asked for, of the next :data:`WINDOW_ROWS` (of each state) at most."""
    pages = [_page(connection, query, state) for state in query.wanted.states or (None,)]
    up_to = min((page.up_to for page in pages if page.up_to is not None), default=None)
    every = sorted((known for page in pages for known in page.found), key=lambda known: known.sequence)
    found = tuple(known for known in every if up_to is None or known.sequence <= up_to)[: query.limit]
    return PastPage(found, found[-1].sequence if len(found) == query.limit else up_to)


def _page(connection: Connection, query: PastQuery, state: ReservationState | None) -> PastPage:
    """Return the page of one state, or of any."""
    asked = query.wanted
    window = select(PAST).where(PAST.c.sequence > query.after).order_by(PAST.c.sequence)
    if state is not None:
        window = window.where(PAST.c.state == state.value)
    last = connection.execute(
        window.with_only_columns(PAST.c.sequence).limit(1).offset(WINDOW_ROWS - 1)
    ).scalar_one_or_none()
    seen = window.limit(WINDOW_ROWS).subquery()
    wanted = select(seen).order_by(seen.c.sequence).limit(query.limit)
    if asked.flow_classes:
        wanted = wanted.where(seen.c.flow_class.in_([one.value for one in asked.flow_classes]))
    if asked.a_end is not None:
        wanted = wanted.where(seen.c.a_end == storable(asked.a_end))
    if asked.z_end is not None:
        wanted = wanted.where(seen.c.z_end == storable(asked.z_end))
    if asked.owners:
        wanted = wanted.where(seen.c.owner.in_([storable(owner) for owner in asked.owners]))
    if asked.ends_after_us is not None:
        wanted = wanted.where(seen.c.end_us > asked.ends_after_us)
    if asked.starts_before_us is not None:
        wanted = wanted.where(seen.c.start_us < asked.starts_before_us)
    found = tuple(reservation_of(row) for row in connection.execute(wanted).mappings())
    return PastPage(found, found[-1].sequence if len(found) == query.limit else last)


def lately_ended(connection: Connection, since_us: int, limit: int) -> tuple[Reservation, ...]:
    """Return those that have ended since a time, Unix time: the latest so many of them, the last one first."""
    ended = select(PAST).where(PAST.c.changed_us > since_us).order_by(PAST.c.changed_us.desc()).limit(limit)
    return tuple(reservation_of(row) for row in connection.execute(ended).mappings())


def past_one(connection: Connection, reservation_id: str) -> Reservation | None:
    """Return the one of a name; None if there is none."""
    row = connection.execute(select(PAST).where(PAST.c.reservation_id == storable(reservation_id))).mappings().first()
    return None if row is None else reservation_of(row)


def past_with_key(connection: Connection, key: str) -> Reservation | None:
    """Return the last one that was made with an idempotency key; None if there is none."""
    # Not ordered by the database: PostgreSQL would go through all by their sequence, for it believes that many have it.
    named = connection.execute(select(PAST).where(PAST.c.key == storable(key), PAST.c.key != "")).mappings()
    return max((reservation_of(row) for row in named), key=lambda known: known.sequence, default=None)
