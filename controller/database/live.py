"""What has not ended, as it is kept: all of it, or what of it has changed since some point."""

import json
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Column, Connection, RowMapping, Table, select

from controller.database.ended import ended_of, lately_ended, used_keys
from controller.database.history import highest
from controller.database.leader_row import SAVES
from controller.database.rows import PurchaseRow, Row, SavedPoint, SavedRows, SavedSince, purchase_of, reservation_of
from controller.database.tables import (
    ANNOUNCEMENTS,
    ENDED_ANNOUNCEMENTS,
    ENDED_RESERVATIONS,
    META,
    PURCHASES,
    RESERVATIONS,
)
from controller.database.text import original, storable
from controller.database.written import names_since, point
from controller.plan.delays import MeasuredDelay
from controller.plan.ended import EndedAnnouncement
from controller.plan.maintenance import Maintenance
from controller.plan.reservations import Reservation
from controller.plan.sold_by import SoldBy
from controller.plan.unwritten import LONGEST_US

MAINTENANCE, DELAYS = "maintenance", "delays"
_SOLD_BY = "sold by "  # and the circuit's name
_MAINTENANCE_TEXT = TypeAdapter(tuple[Maintenance, ...])
DELAYS_TEXT = TypeAdapter(tuple[MeasuredDelay, ...])
_BESIDE = select(META.c.key, META.c.value).where(META.c.key.in_([MAINTENANCE, DELAYS, SAVES]))


@dataclass(frozen=True, slots=True)
class _Beside:
    """What is kept beside the promises."""

    maintenance: tuple[Maintenance, ...]
    delays: tuple[MeasuredDelay, ...]
    saves: int


def all_rows(connection: Connection) -> SavedRows:
    """Return all that has not ended, as it is within a transaction."""
    reservations = select(RESERVATIONS).order_by(RESERVATIONS.c.sequence, RESERVATIONS.c.reservation_id)
    announcements = select(ANNOUNCEMENTS).order_by(ANNOUNCEMENTS.c.id)
    beside = _beside(connection)
    return SavedRows(
        tuple(reservation_of(row) for row in connection.execute(reservations).mappings()),
        {original(row.id): original(row.body) for row in connection.execute(announcements)},
        _purchases(connection),
        used_keys(connection),
        highest(connection).sequence,
        beside.maintenance,
        beside.delays,
        point(connection, beside.saves),
        lately_ended(connection, LONGEST_US),
        sold_by(connection),
    )


def changed_since(connection: Connection, since: SavedPoint) -> SavedSince | None:
    """Return what has changed since a point, as it is within a transaction; None if all is to be read."""
    beside = _beside(connection)
    names = names_since(connection, since, beside.saves)
    if names is None:
        return None
    live = tuple(
        map(reservation_of, _named(connection, RESERVATIONS, RESERVATIONS.c.reservation_id, names.reservations))
    )
    past = past_named(connection, names.reservations - {known.reservation_id for known in live})
    kept = _named(connection, ANNOUNCEMENTS, ANNOUNCEMENTS.c.id, names.announcements)
    return SavedSince(
        tuple(sorted((*live, *past), key=lambda known: known.sequence)),
        {**dict.fromkeys(names.announcements), **{original(row["id"]): original(row["body"]) for row in kept}},
        ended_numbered(connection, names.ended),
        _purchases(connection),
        beside.delays,
        SavedPoint(beside.saves, since.session),
    )


def prepare_changes(connection: Connection) -> None:
    """Ask each question of :func:`changed_since` once; made anew, they take longer than being answered."""
    changed_since(connection, SavedPoint())
    names_since(connection, SavedPoint(session="-"), 0)
    past_named(connection, {""})
    ended_numbered(connection, {0})
    for table, key in ((RESERVATIONS, RESERVATIONS.c.reservation_id), (ANNOUNCEMENTS, ANNOUNCEMENTS.c.id)):
        _named(connection, table, key, ("",))
    _purchases(connection)


def past_named(connection: Connection, names: AbstractSet[str]) -> tuple[Reservation, ...]:
    """Return reservations that have ended, by name; those that have not, or are forgotten, are left out."""
    rows = _named(connection, ENDED_RESERVATIONS, ENDED_RESERVATIONS.c.reservation_id, names)
    return tuple(map(reservation_of, rows))


def ended_numbered(connection: Connection, numbers: AbstractSet[int]) -> tuple[EndedAnnouncement, ...]:
    """Return announcements that have ended, by their sequence; those that have not, or are forgotten, are left out."""
    rows = _named(connection, ENDED_ANNOUNCEMENTS, ENDED_ANNOUNCEMENTS.c.sequence, numbers)
    return tuple(map(ended_of, rows))


def maintenance_text(planned: tuple[Maintenance, ...]) -> str:
    """Return all that is planned, as it is kept."""
    return storable(_MAINTENANCE_TEXT.dump_json(planned).decode())


def bought(connection: Connection) -> tuple[tuple[PurchaseRow, ...], dict[str, SoldBy]]:
    """Return what is bought; and by circuit, of whom something was bought last."""
    return _purchases(connection), sold_by(connection)


def sold_by(connection: Connection) -> dict[str, SoldBy]:
    """Return, by circuit, of whom something was bought last; nothing of what an older Headway has bought."""
    rows = connection.execute(select(META.c.key, META.c.value).where(META.c.key.startswith(_SOLD_BY)))
    return {original(row.key.removeprefix(_SOLD_BY)): SoldBy(**json.loads(original(row.value))) for row in rows}


def sold_by_row(circuit: str, seller: SoldBy) -> Row:
    """Return, as a row of ``meta``, of whom something is bought."""
    said = {"kind": seller.kind, "server": seller.server}
    return {"key": storable(f"{_SOLD_BY}{circuit}"), "value": storable(json.dumps(said))}


def _beside(connection: Connection) -> _Beside:
    said = {row.key: row.value for row in connection.execute(_BESIDE)}
    planned, measured = said.get(MAINTENANCE), said.get(DELAYS)
    return _Beside(
        _MAINTENANCE_TEXT.validate_json(original(planned)) if planned else (),
        DELAYS_TEXT.validate_json(measured) if measured else (),
        int(said.get(SAVES) or 0),
    )


def _purchases(connection: Connection) -> tuple[PurchaseRow, ...]:
    rows = connection.execute(select(PURCHASES).order_by(PURCHASES.c.name)).mappings()
    return tuple(purchase_of(row) for row in rows)


def _named(
    connection: Connection, table: Table, key: Column[Any], values: Iterable[str] | Iterable[int]
) -> Sequence[RowMapping]:
    wanted = [storable(value) if isinstance(value, str) else value for value in values]
    return connection.execute(select(table).where(key.in_(wanted))).mappings().all() if wanted else ()
