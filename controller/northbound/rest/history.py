"""``/v1/history``: all that has ended, to be taken elsewhere before it is forgotten."""

from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.database import HistoryItem
from controller.northbound.dependencies import Dependencies
from controller.northbound.rest import render_announcements, render_promises
from controller.northbound.rest.announcement_shapes import AnnouncementOut
from controller.northbound.rest.answers import Routes, answer
from controller.northbound.rest.pages import LINKED, cursor_after, linked, sequence_after
from controller.northbound.rest.queries import HistoryQuery
from controller.northbound.rest.shapes import WHOLE, ReservationOut
from controller.plan.reservations import Reservation


@with_config(WHOLE)
class EndedOut(TypedDict):
    """A reservation or an announcement that has ended; the other is null."""

    cursor: Annotated[str, Field(description="What ended next comes after it.")]
    reservation: Annotated[ReservationOut | None, Field(description="What has ended, if it is one.")]
    announcement: Annotated[AnnouncementOut | None, Field(description="What has ended, if it is one.")]


@with_config(WHOLE)
class HistoryPage(TypedDict):
    """Some of what has ended, in the order in which that was saved."""

    ended: Annotated[list[EndedOut], Field(description="In the order in which its end was saved.")]
    next: Annotated[str | None, Field(description="The cursor of the next page; null if nothing more has ended yet.")]


class History:
    """The handler."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._reserved = dependencies.reserved
        self._network = dependencies.network
        self._now_us = dependencies.now_us
        self._in_turn = dependencies.turns.in_turn

    def routes(self) -> Routes:
        """Return the route."""
        routes = Routes("history")
        page = {200: {"model": HistoryPage, "description": "A page", "headers": LINKED}}
        routes.add("GET /v1/history", self._in_turn(self.page), page, 422, 503)
        return routes

    def page(self, request: Request, query: Annotated[HistoryQuery, Query()]) -> Response:
        """Return what has ended, a page at a time, in the order in which that was saved.

        Nothing comes before a cursor later: who goes on from the last one has all, once. Only an announcement whose
        last bytes were counted after its end comes once more.
        """
        after = 0 if query.cursor is None else sequence_after(query.cursor)
        found = self._reserved.history(after, query.limit + 1)
        page, more = found[: query.limit], len(found) > query.limit
        cursor = cursor_after(page[-1].number) if more else None
        ended = [self._rendered(item) for item in page]
        return answer({"ended": ended, "next": cursor}, headers=linked(request, cursor))

    def _rendered(self, item: HistoryItem) -> EndedOut:
        cursor = cursor_after(item.number)
        if isinstance(item.ended, Reservation):
            known = render_promises.reservation(item.ended, self._network, None)
            return {"cursor": cursor, "reservation": known, "announcement": None}
        announced = render_announcements.announcement(item.ended, {}, None, self._now_us())
        return {"cursor": cursor, "reservation": None, "announcement": announced}
