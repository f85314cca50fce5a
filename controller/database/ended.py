"""Announcements that have ended as the database has them, and the questions about them."""

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, select

from controller.database.announcements import announcement_of, announcement_text
from controller.database.tables import ENDED_ANNOUNCEMENTS as ENDED
from controller.database.text import original, storable
from controller.plan.announcement_states import AnnouncementState, Ending
from controller.plan.ended import EndedAnnouncement, UsedKey


@dataclass(frozen=True, slots=True)
class EndedQuery:
    """Which announcements that have ended.

    Attributes:
        after: those with a higher number.
        limit: how many at most, the lowest numbers first.
        states: in one of these; empty for any.
        announcement_id: of this name, and of these the newest first; empty for any.
        owners: of one of these; empty for any.
    """

    after: int = 0
    limit: int = 1
    states: tuple[AnnouncementState, ...] = ()
    announcement_id: str = ""
    owners: tuple[str, ...] = ()


def ended_row(ended: EndedAnnouncement) -> dict[str, str | int | None]:
    """Return an announcement that has ended as its row."""
    known = ended.announcement
    body = {"announcement": json.loads(announcement_text(known)), "ending": ended.ending, "ended_us": ended.ended_us}
    return {
        "sequence": known.sequence,
        "id": storable(known.announcement_id),
        "state": ended.state.value,
        "ended_us": ended.ended_us,
        "key": storable(known.key),
        "owner": storable(known.owner),
        "body": storable(json.dumps(body)),
    }


def ended_of(row: RowMapping) -> EndedAnnouncement:
    """Return the announcement that a row keeps.

    Raises:
        ValueError, KeyError, TypeError: the row was not written by us.
    """
    tree = json.loads(original(row["body"]))
    announcement = announcement_of(json.dumps(tree["announcement"]))
    return EndedAnnouncement(announcement, Ending(tree["ending"]), tree["ended_us"])


def ended_found(connection: Connection, query: EndedQuery) -> tuple[EndedAnnouncement, ...]:
    """Return what a question asks for."""
    wanted = select(ENDED).where(ENDED.c.sequence > query.after).limit(query.limit)
    if query.states:
        wanted = wanted.where(ENDED.c.state.in_([state.value for state in query.states]))
    if query.owners:
        wanted = wanted.where(ENDED.c.owner.in_([storable(owner) for owner in query.owners]))
    if query.announcement_id:
        wanted = wanted.where(ENDED.c.id == storable(query.announcement_id)).order_by(ENDED.c.sequence.desc())
    else:
        wanted = wanted.order_by(ENDED.c.sequence)
    return tuple(ended_of(row) for row in connection.execute(wanted).mappings())


def used_keys(connection: Connection) -> tuple[UsedKey, ...]:
    """Return the idempotency keys of all that have ended."""
    columns = (ENDED.c.key, ENDED.c.sequence, ENDED.c.ended_us)
    rows: Iterable[RowMapping] = connection.execute(select(*columns).where(ENDED.c.key != "")).mappings()
    return tuple(UsedKey(original(row["key"]), row["sequence"], row["ended_us"]) for row in rows)


def lately_ended(connection: Connection, within_us: int) -> tuple[EndedAnnouncement, ...]:
    """Return those that have ended within a time before the last one; no start fails for one that cannot be read."""
    last_us = select(func.coalesce(func.max(ENDED.c.ended_us), 0)).scalar_subquery()
    found = []
    for row in connection.execute(select(ENDED).where(ENDED.c.ended_us > last_us - within_us)).mappings():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found.append(ended_of(row))
    return tuple(found)
