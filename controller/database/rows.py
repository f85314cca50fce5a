"""Values as rows and back, and many changes as one. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache

from sqlalchemy import RowMapping

from controller.database.changed import SaveRecord
from controller.database.clock import SavedTime
from controller.database.text import original, storable
from controller.plan.delays import MeasuredDelay
from controller.plan.ended import EndedAnnouncement, UsedKey
from controller.plan.lifecycle import ReservationState
from controller.plan.maintenance import Maintenance
from controller.plan.plan import Selector
from controller.plan.reservations import Constraints, Reservation
from controller.plan.sold_by import SoldBy
from topology.protocol import FlowClass

Row = dict[str, str | int | None]
ALIKE = 256  # texts that are kept: many reservations have the same path, and ask for nothing of it


@dataclass(frozen=True, slots=True)
class PurchaseRow:
    """What was bought of a circuit's provider under ``name``, as it is kept.

    Attributes:
        circuit: the circuit it carries.
        name: what the provider knows it by.
        start_us: Unix time, microseconds.
        end_us: Unix time, microseconds; not in it any more.
        rate_bps: wire rate.
        state: where it stands.
        reason: why it is there, when that was not our wish.
    """

    circuit: str
    name: str
    start_us: int
    end_us: int
    rate_bps: int
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be written, all of it or nothing.

    Attributes:
        reservations: new ones, and new versions of known ones.
        announcements: by id, the JSON text of each; None for one that is gone.
        purchases: new ones, and new versions of known ones.
        purchases_gone: the names of those to forget, after the former.
        sold_by: by circuit, of whom something is bought.
        time: the calendar's, for the next controller.
        ended: announcements that have ended, or whose last counts have come since.
        record: what is to be remembered of it, written in the same transaction; None for nothing.
        maintenance: all that is planned now; None if that has not changed.
        delays: all that were measured; None if that has not changed.
    """

    reservations: tuple[Reservation, ...] = ()
    announcements: tuple[tuple[str, str | None], ...] = ()
    purchases: tuple[PurchaseRow, ...] = ()
    purchases_gone: tuple[str, ...] = ()
    sold_by: Mapping[str, SoldBy] = field(default_factory=dict)
    time: SavedTime | None = None
    ended: tuple[EndedAnnouncement, ...] = ()
    record: SaveRecord | None = None
    maintenance: tuple[Maintenance, ...] | None = None
    delays: tuple[MeasuredDelay, ...] | None = None


@dataclass(frozen=True, slots=True)
class SavedPoint:
    """Up to where all is read that leaders of a pair have written.

    Attributes:
        saves: the number of their last transaction; 0 before the first.
        session: the session that has written it; empty if that is not known.
    """

    saves: int = 0
    session: str = ""


@dataclass(frozen=True, slots=True)
class SavedRows:
    """What is kept of that which has not ended.

    Attributes:
        reservations: in the order of their sequence.
        announcements: the JSON text of each, by id.
        purchases: in the order of their names.
        used_keys: the idempotency keys of announcements that have ended.
        last_ended: the highest sequence of anything that has ended; 0 if nothing has.
        maintenance: what is planned.
        delays: what was measured of circuits.
        until: up to where this is.
        lately: announcements that have ended lately, of which disks may have something to write yet.
        sold_by: by circuit, of whom something was bought last; nothing of what an older Headway has bought.
    """

    reservations: tuple[Reservation, ...]
    announcements: dict[str, str]
    purchases: tuple[PurchaseRow, ...]
    used_keys: tuple[UsedKey, ...] = ()
    last_ended: int = 0
    maintenance: tuple[Maintenance, ...] = ()
    delays: tuple[MeasuredDelay, ...] = ()
    until: SavedPoint = SavedPoint()
    lately: tuple[EndedAnnouncement, ...] = ()
    sold_by: Mapping[str, SoldBy] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SavedSince:
    """What is kept of all that has changed since some point.

    Attributes:
        reservations: in the order of their sequence, also those that have ended.
        announcements: the JSON text of each, by id; None for one that is not in the plan any more.
        ended: announcements that have ended, or whose last counts have come.
        purchases: all of them, changed or not.
        delays: likewise.
        until: up to where this is.
    """

    reservations: tuple[Reservation, ...]
    announcements: dict[str, str | None]
    ended: tuple[EndedAnnouncement, ...]
    purchases: tuple[PurchaseRow, ...]
    delays: tuple[MeasuredDelay, ...]
    until: SavedPoint


@dataclass(frozen=True, slots=True)
class RowBatch:
    """The last word about each thing that changes; None for what is gone. And every word about what is remembered.

    ``times``, ``maintenance`` and ``delays`` have one, or none.
    """

    reservations: dict[str, Reservation] = field(default_factory=dict)
    announcements: dict[str, str | None] = field(default_factory=dict)
    purchases: dict[str, PurchaseRow | None] = field(default_factory=dict)
    sold_by: dict[str, SoldBy] = field(default_factory=dict)
    times: list[SavedTime] = field(default_factory=list)
    ended: dict[int, EndedAnnouncement] = field(default_factory=dict)
    records: list[SaveRecord] = field(default_factory=list)
    maintenance: list[tuple[Maintenance, ...]] = field(default_factory=list)
    delays: list[tuple[MeasuredDelay, ...]] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Return whether there is anything to write."""
        promises = self.reservations or self.announcements or self.ended
        return bool(promises or self.purchases or self.times or self.records or self.maintenance or self.delays)


def merged(many: Iterable[Changes]) -> RowBatch:
    """Return changes, in the order they were made, as one."""
    batch = RowBatch()
    for changes in many:
        batch.reservations.update((r.reservation_id, r) for r in changes.reservations)
        batch.announcements.update(changes.announcements)
        batch.purchases.update((p.name, p) for p in changes.purchases)
        batch.purchases.update((name, None) for name in changes.purchases_gone)
        batch.sold_by.update(changes.sold_by)
        batch.times[:] = [changes.time] if changes.time else batch.times
        batch.ended.update((one.announcement.sequence, one) for one in changes.ended)
        batch.maintenance[:] = batch.maintenance if changes.maintenance is None else [changes.maintenance]
        batch.delays[:] = batch.delays if changes.delays is None else [changes.delays]
        batch.records.extend([changes.record] if changes.record else ())
    return batch


def reservation_row(reservation: Reservation) -> Row:
    """Return a reservation as its row."""
    return {
        "reservation_id": storable(reservation.reservation_id),
        "sequence": reservation.sequence,
        "version": reservation.version,
        "state": reservation.state.value,
        "flow_class": reservation.flow_class.value,
        "a_end": storable(reservation.a_end),
        "z_end": storable(reservation.z_end),
        "rate_bps": reservation.rate_bps,
        "start_us": reservation.start_us,
        "end_us": reservation.end_us,
        "path": _path_text(reservation.path),
        "backup": _path_text(reservation.backup),
        "constraints": _constraints_text(reservation.constraints),
        "hold_until_us": reservation.hold_until_us,
        "created_us": reservation.created_us,
        "changed_us": reservation.changed_us,
        "description": storable(reservation.description),
        "reason": storable(reservation.reason),
        "key": storable(reservation.key),
        "fingerprint": storable(reservation.fingerprint),
        "dest_port": reservation.selector.dest_port,
        "local_port": reservation.selector.local_port,
        "owner": storable(reservation.owner),
        "creator": storable(reservation.creator),
    }


@lru_cache(ALIKE)
def _path_text(path: tuple[str, ...]) -> str:
    return json.dumps(path)


@lru_cache(ALIKE)
def _constraints_text(constraints: Constraints) -> str:
    return json.dumps(asdict(constraints))


def reservation_of(row: RowMapping) -> Reservation:
    """Return the reservation that a row keeps.

    Raises:
        ValueError, KeyError, TypeError: the row was not written by us.
    """
    wanted = json.loads(row["constraints"])
    return Reservation(
        reservation_id=original(row["reservation_id"]),
        sequence=row["sequence"],
        version=row["version"],
        state=ReservationState(row["state"]),
        flow_class=FlowClass(row["flow_class"]),
        a_end=original(row["a_end"]),
        z_end=original(row["z_end"]),
        rate_bps=row["rate_bps"],
        start_us=row["start_us"],
        end_us=row["end_us"],
        path=tuple(json.loads(row["path"])),
        backup=tuple(json.loads(row["backup"])),
        constraints=Constraints(
            include=tuple(wanted["include"]),
            exclude=tuple(wanted["exclude"]),
            max_rtt_us=wanted["max_rtt_us"],
            backup=wanted["backup"],
        ),
        hold_until_us=row["hold_until_us"],
        created_us=row["created_us"],
        changed_us=row["changed_us"],
        description=original(row["description"]),
        reason=original(row["reason"]),
        key=original(row["key"]),
        fingerprint=original(row["fingerprint"]),
        selector=Selector(row["dest_port"], row["local_port"]),
        owner=original(row["owner"]),
        creator=original(row["creator"]),
    )


def purchase_row(purchase: PurchaseRow) -> Row:
    """Return a purchase as its row."""
    return {name: storable(value) if isinstance(value, str) else value for name, value in asdict(purchase).items()}


def purchase_of(row: RowMapping) -> PurchaseRow:
    """Return the purchase that a row keeps."""
    return PurchaseRow(
        circuit=original(row["circuit"]),
        name=original(row["name"]),
        start_us=row["start_us"],
        end_us=row["end_us"],
        rate_bps=row["rate_bps"],
        state=original(row["state"]),
        reason=original(row["reason"]),
    )
