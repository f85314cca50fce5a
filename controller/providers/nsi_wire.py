"""What we and an NSI aggregator proxy say to each other: our values as its JSON, and its JSON as our values. Pure.

Source: the REST API of workfloworchestrator/nsi-aggregator-proxy, which speaks NSI CS v2 (OGF GFD.237) with an
aggregator and makes one state machine of its four: reservation, provision, lifecycle and data plane. Rates are Mbit/s.
It has no begin and no end: what is reserved is reserved until it is terminated.
"""

from dataclasses import dataclass
from uuid import UUID

from controller.plan.purchases import Period, PurchaseState
from controller.providers.answers import Unclear, decoded, object_of, text_of, whole_of
from controller.providers.nsi_values import MBPS, NsiSettings

_STATES = {
    "RESERVING": PurchaseState.ASKED,
    "RESERVED": PurchaseState.RESERVED,
    "ACTIVATING": PurchaseState.DEPLOYING,
    "ACTIVATED": PurchaseState.UP,
    "DEACTIVATING": PurchaseState.DEPLOYING,
    "FAILED": PurchaseState.FAILED,
    "TERMINATED": PurchaseState.ENDED,
}


@dataclass(frozen=True, slots=True)
class NsiSegment:
    """The part of a connection in one network: what it is for there, bit/s (None: not said), and its two ends."""

    network: str
    rate_bps: int | None
    stps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NsiConnection:
    """A connection at an aggregator.

    Attributes:
        connection_id: its name there, given by the aggregator.
        global_id: the name that it was asked for by.
        state: where it stands.
        reason: why, in the aggregator's words.
        rate_bps: what it is for, bit/s; None if it does not say.
        segments: its parts; none if they were not asked for.
    """

    connection_id: str
    global_id: str
    state: PurchaseState
    reason: str
    rate_bps: int | None
    segments: tuple[NsiSegment, ...]


def global_id(name: str) -> str:
    """Return the global reservation id of a purchase.

    Raises:
        ValueError: the name is no UUID.
    """
    return f"urn:uuid:{UUID(name)}"


def reserve_body(name: str, period: Period, settings: NsiSettings) -> dict[str, object]:
    """Return the request for a connection."""
    p2ps: dict[str, object] = {
        "capacity": period.rate_bps // MBPS,
        "sourceSTP": settings.source_stp,
        "destSTP": settings.dest_stp,
    }
    if settings.ero:
        p2ps["ero"] = list(settings.ero)
    return {
        "globalReservationId": global_id(name),
        "description": f"Headway {name}",
        "criteria": {"p2ps": p2ps},
        "requesterNSA": settings.requester_nsa,
        "providerNSA": settings.provider_nsa,
        **called_back(settings),
    }


def called_back(settings: NsiSettings) -> dict[str, object]:
    """Return what every request must have: where the proxy tells what became of it. We look, whatever it tells."""
    return {"callbackURL": settings.callback}


def accepted(text: str) -> str:
    """Return the connection's id in the answer to a request.

    Raises:
        Unclear: there is none.
    """
    name = text_of(decoded(text), "instance").rstrip("/").rpartition("/")[2]
    if not name:
        raise Unclear("instance names no connection")
    return name


def nsi_connections(text: str) -> tuple[NsiConnection, ...]:
    """Return all connections of an answer.

    Raises:
        Unclear: a field is missing, or is not what it should be.
    """
    found = decoded(text).get("reservations")
    if not isinstance(found, list):
        raise Unclear("no reservations")
    return tuple(_connection(object_of(one, "a reservation")) for one in found)


def nsi_connection(text: str) -> NsiConnection:
    """Return the connection of an answer.

    Raises:
        Unclear: a field is missing, or is not what it should be.
    """
    return _connection(decoded(text))


def error_reason(text: str) -> str:
    """Return the reason in an error: its detail, and what is said of each field; empty if there is none.

    >>> error_reason('{"detail": "no", "errors": [{"field": "capacity", "reason": "too much"}]}')
    'no; capacity: too much'
    """
    try:
        answer = decoded(text)
    except Unclear:
        return ""
    detail, errors = answer.get("detail"), answer.get("errors")
    fields = errors if isinstance(errors, list) else detail if isinstance(detail, list) else []
    said = [detail] if isinstance(detail, str) else []
    return "; ".join((*said, *(_field(one) for one in fields if isinstance(one, dict))))


def _field(said: dict[str, object]) -> str:
    place = said.get("field") or said.get("loc")
    where = ".".join(map(str, place)) if isinstance(place, list) else str(place)
    return f"{where}: {said.get('reason') or said.get('msg')}"


def _connection(answer: dict[str, object]) -> NsiConnection:
    status = text_of(answer, "status")
    if status not in _STATES:
        raise Unclear(f'status is "{status}"')
    name, error = answer.get("globalReservationId"), answer.get("lastError")
    rate_bps = None
    if answer.get("criteria") is not None:
        p2ps = object_of(object_of(answer["criteria"], "criteria").get("p2ps"), "p2ps")
        rate_bps = whole_of(p2ps, "capacity") * MBPS
    segments = answer.get("segments")
    return NsiConnection(
        connection_id=text_of(answer, "connectionId"),
        global_id=name if isinstance(name, str) else "",
        state=_STATES[status],
        reason=" ".join(error.split()) if isinstance(error, str) else "",
        rate_bps=rate_bps,
        segments=tuple(_segment(object_of(one, "a segment")) for one in segments) if isinstance(segments, list) else (),
    )


def _segment(answer: dict[str, object]) -> NsiSegment:
    rate_bps = None if answer.get("capacity") is None else whole_of(answer, "capacity") * MBPS
    stps = tuple(stp for key in ("sourceSTP", "destSTP") if isinstance(stp := answer.get(key), str))
    return NsiSegment(text_of(answer, "providerNSA"), rate_bps, stps)
