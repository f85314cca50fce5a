"""Reservations as a calendar that people subscribe to (iCalendar, RFC 5545)."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from heapq import nsmallest
from typing import TYPE_CHECKING, Annotated

from fastapi import Query, Request, Response

from controller.northbound.dependencies import Dependencies
from controller.northbound.rest.answers import Routes
from controller.northbound.rest.conditional import IfNoneMatch, strong_tags
from controller.northbound.rest.queries import CalendarQuery
from controller.plan.lifecycle import ReservationState
from controller.plan.reservations import Reservation
from topology import __version__
from topology.printable import whole
from topology.units import shown_rate

if TYPE_CHECKING:
    from icalendar import Event

MEDIA = "text/calendar"
MOST = 1000
REFRESH = timedelta(minutes=5)  # how often a program should ask again (RFC 7986)
STATUS = {ReservationState.HELD: "TENTATIVE"}  # all others are promises
_DESCRIBED = {"description": "A calendar", "content": {MEDIA: {"schema": {"type": "string"}}}}
_SAME = {"description": "It is as you have it"}


class CalendarFeed:
    """The handler."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._use_cases = dependencies.use_cases
        self._network = dependencies.network
        self._in_turn = dependencies.turns.in_turn

    def routes(self) -> Routes:
        """Return the route."""
        routes = Routes("reservations")
        routes.add("GET /v1/calendar.ics", self._in_turn(self.calendar), {200: _DESCRIBED, 304: _SAME}, 422)
        return routes

    def calendar(
        self,
        request: Request,
        query: Annotated[CalendarQuery, Query()],
        if_none_match: IfNoneMatch = None,
    ) -> Response:
        """Return reservations as iCalendar (RFC 5545), for a calendar program to subscribe to.

        At most 1,000 that have not ended, those that begin first. One that is held and not committed is tentative. A
        program that cannot send a bearer token gives it as the password of HTTP's basic authentication.
        """
        wanted = query.value()
        live = filter(wanted.matches, self._use_cases.reservations())
        first = nsmallest(MOST, live, key=lambda r: r.start_us)  # to sort all would be one long turn of the interpreter
        text = calendar_of(first, self._network.name, str(request.base_url))
        tag = f'"{hashlib.sha256(text).hexdigest()[:32]}"'
        headers = {"ETag": tag, "Cache-Control": "private, max-age=60"}
        if if_none_match is not None and _has(if_none_match, tag):
            return Response(status_code=304, headers=headers)
        return Response(text, media_type=MEDIA, headers=headers)


def _has(if_none_match: str, tag: str) -> bool:
    tags = strong_tags(if_none_match.replace("W/", ""), "If-None-Match")
    return tags is None or tag.strip('"') in tags


def calendar_of(reservations: Iterable[Reservation], network: str, base_url: str) -> bytes:
    """Return a calendar. Pure: the same reservations are the same bytes.

    Args:
        reservations: what is in it.
        network: the network's name, which is the calendar's.
        base_url: where the controller's pages are, with a slash at its end.
    """
    from icalendar import Calendar  # few ask for a calendar, and it takes longer to load than to make one

    made = Calendar()
    made.add("prodid", f"-//Headway//{__version__}//EN")
    made.add("version", "2.0")
    made.add("x-wr-calname", f"{network}: bandwidth")
    made.add("refresh-interval", REFRESH, parameters={"VALUE": "DURATION"})
    for one in reservations:
        made.add_component(_event(one, base_url))
    text: bytes = made.to_ical()
    return text


def _event(known: Reservation, base_url: str) -> "Event":
    """Return a reservation as an event; its sequence grows with each version, as RFC 5545 section 3.8.7.4 wants it."""
    from icalendar import Event

    event = Event()
    event.add("uid", f"{known.reservation_id}@headway")
    event.add("sequence", known.version)
    event.add("dtstamp", _moment(known.changed_us))
    event.add("dtstart", _moment(known.start_us))
    event.add("dtend", _moment(known.end_us))
    whose = f", of {known.owner}" if known.owner else ""
    words = f" ({known.description})" if known.description else ""
    event.add("summary", whole(f"{shown_rate(known.rate_bps)} {known.a_end} to {known.z_end}{words}"))
    about = f"{known.flow_class.value}, {known.state.value}, by {' - '.join(known.path)}{whose}"
    event.add("description", whole(about))
    event.add("status", STATUS.get(known.state, "CONFIRMED"))
    event.add("transp", "TRANSPARENT")  # nobody is busy because a circuit is
    event.add("url", f"{base_url}reservations/{known.reservation_id}")
    return event


def _moment(unix_us: int) -> datetime:
    return datetime.fromtimestamp(unix_us // 1_000_000, UTC)
