"""What is remembered of a save: its values, old against new, as rows of ``changes``. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any

from controller.asker import Asker
from controller.database.chain import Remembered
from controller.database.text import storable
from controller.plan.announcements import Announcement
from controller.plan.deliveries import total_bytes
from controller.plan.ended import EndedAnnouncement
from controller.plan.lifecycle import ENDED, ReservationState
from controller.plan.reservations import Reservation
from topology.protocol import FlowClass

DONE = "done"
MOST_ASKED = 4_096  # characters of what was refused
# Not the names of requests, which are their owners' secrets; nor what is said by the row itself.
_NOT_KEPT = {"reservation_id", "sequence", "changed_us", "key", "fingerprint"}
_RESERVATION = tuple(field.name for field in fields(Reservation) if field.name not in _NOT_KEPT)
_UNTOLD = {"version", "reason"}  # a reservation of which nothing else has changed was not changed by anybody
_TEXT = json.JSONEncoder(separators=(",", ":"), default=lru_cache(256)(asdict))


@dataclass(frozen=True, slots=True)
class RefusedWish:
    """What was asked for and refused.

    Attributes:
        kind: ``reservation.refused`` or ``announcement.refused``.
        id: of what it was to be, or to be changed.
        outcome: why, as the problem's type says.
        asked: a dataclass.
        unwritten: how many refusals of the same principal were not remembered before this one.
    """

    kind: str
    id: str
    outcome: str
    asked: Any
    unwritten: int = 0


@dataclass(frozen=True, slots=True)
class Noted:
    """A change of something that is no promise: a purchase, a token, the configuration.

    Attributes:
        kind: what has happened, such as ``purchase.up``.
        id: of what.
        old: what it was; None of something new.
        new: what it is, with the same names; None of something that is gone.
    """

    kind: str
    id: str
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class SaveRecord:
    """What a save changes, and by whose wish.

    Attributes:
        asker: whose.
        at_us: when it was handed over, calendar time.
        reservations: each as it was, None if there was none, and as it is.
        announcements: likewise.
        ended: announcements that have ended.
        refused: what was not done.
        noted: what has changed beside promises.
    """

    asker: Asker
    at_us: int
    reservations: tuple[tuple[Reservation | None, Reservation], ...] = ()
    announcements: tuple[tuple[Announcement | None, Announcement], ...] = ()
    ended: tuple[EndedAnnouncement, ...] = ()
    refused: tuple[RefusedWish, ...] = ()
    noted: tuple[Noted, ...] = ()


def remembered(record: SaveRecord) -> Iterator[Remembered]:
    """Yield the rows of a save; of an announcement of which only bytes were counted there is none."""
    asker = record.asker

    def row(at_us: int, kind: str, name: str, values: tuple[str | None, str], outcome: str = DONE) -> Remembered:
        who, address, request_id = storable(asker.who), storable(asker.address), storable(asker.request_id)
        return Remembered(at_us, who, address, request_id, kind, storable(name), *values, outcome)

    for before, now in record.reservations:
        values = _compared(_reservation(before), _reservation(now))
        yield row(now.changed_us, reservation_kind(before, now), now.reservation_id, values)
    for was, known in record.announcements:
        values = _compared(_announcement(was), _announcement(known))
        if was is None:
            yield row(known.announced_us, "announcement.promised", known.announcement_id, values)
        elif values[1] != "{}":
            yield row(record.at_us, "announcement.changed", known.announcement_id, values)
    for ended in record.ended:
        known = ended.announcement
        became = {"state": ended.state, "delivered_bytes": total_bytes(known.delivered)}
        values = _TEXT.encode({"state": "promised"}), _TEXT.encode(became)
        yield row(ended.ended_us, f"announcement.{ended.ending}", known.announcement_id, values)
    for one in record.noted:
        gone = None if one.old is None else _TEXT.encode(one.old)
        yield row(record.at_us, one.kind, one.id, (gone, "{}") if one.new is None else _compared(one.old, one.new))
    for wish in record.refused:
        yield row(record.at_us, wish.kind, wish.id, (None, _asked(wish)), wish.outcome)


def reservation_kind(before: Reservation | None, now: Reservation) -> str:
    """Return what has happened to a reservation, as the event of it is called."""
    return f"reservation.{_happened(before, now)}"


def _happened(before: Reservation | None, now: Reservation) -> str:
    if before is None:
        return ReservationState.HELD
    if before.state is not now.state:
        if before.state is ReservationState.HELD and now.state not in ENDED:
            return ReservationState.COMMITTED  # if it begins now, it is in the plan already
        return "lost" if before.state is ReservationState.ACTIVE and now.state not in ENDED else now.state
    differing = {name for name in _RESERVATION if getattr(before, name) != getattr(now, name)} - _UNTOLD
    if differing == {"hold_until_us"}:
        return "renewed"
    return "changed" if differing else "noted"


def before_change(known: Reservation, row: Remembered) -> Reservation | None:
    """Return a reservation with the rate, the time and the class of before a change; None if the row is of no change.

    Its path and its constraints are those that it has now.
    """
    if row.kind != "reservation.changed":
        return None
    old = json.loads(row.old or "{}")
    times_and_rate = {name: old[name] for name in ("rate_bps", "start_us", "end_us") if name in old}
    return replace(known, flow_class=FlowClass(old.get("flow_class", known.flow_class)), **times_and_rate)


def _reservation(known: Reservation | None) -> dict[str, Any] | None:
    return None if known is None else {name: getattr(known, name) for name in _RESERVATION}


def _announcement(known: Announcement | None) -> dict[str, Any] | None:
    """Return what is promised; not what was delivered of it."""
    if known is None:
        return None
    first = known.flows[0]
    return {
        "flow_class": first.flow_class,
        "size_bytes": known.size_bytes,
        "senders": [flow.host for flow in known.flows],
        "target": first.target,
        "selector": first.selector,
        "tail": first.tail,
        "rates": known.rates,
        "lanes": [{"rates": lane.rates, "bytes": lane.size_bytes} for lane in known.lanes],
        "pool": known.pool,
        "promised_us": known.promised_us,
        "owner": known.owner,
        "creator": known.creator,
    }


def _asked(wish: RefusedWish) -> str:
    """Return what was refused, with what was refused before and not written."""
    more = {"unwritten": wish.unwritten} if wish.unwritten else {}
    values = {name: value for name, value in asdict(wish.asked).items() if name not in _NOT_KEPT}
    text = _TEXT.encode(values | more)
    return text if len(text) <= MOST_ASKED else _TEXT.encode({"characters": len(text)} | more)


def _compared(before: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> tuple[str | None, str]:
    """Return old and new as JSON: what differs, or all of what is new."""
    now = now or {}
    if before is None:
        return None, _TEXT.encode(now)
    differing = [name for name, value in now.items() if before[name] != value]
    return _TEXT.encode({n: before[n] for n in differing}), _TEXT.encode({n: now[n] for n in differing})
