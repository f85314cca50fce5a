"""``/v1/changes``: who has changed what, when, from where."""

import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from controller.database import ChainRow, ChangeQuery
from controller.database.text import original
from controller.northbound.dependencies import Dependencies
from controller.northbound.rest.answers import Routes, answer
from controller.northbound.rest.bodies import Body, Instant
from controller.northbound.rest.pages import LINKED, cursor_after, linked, sequence_after
from controller.northbound.rest.shapes import WHOLE, Time
from topology.units import shown_time

Values = Annotated[
    dict[str, Any],
    Field(description="In base units, named as in the database.", examples=[{"rate_bps": 40_000_000_000}]),
]


class ChangesQuery(Body):
    """Which changes, and how many of them."""

    limit: int = Field(default=100, ge=1, le=1000, description="How many at most.")
    cursor: str | None = Field(
        default=None, max_length=64, description="Go on after this one.", examples=["YWZ0ZXIgMTAw"]
    )
    id: str = Field(
        default="", max_length=255, description="Of this reservation or announcement.", examples=["9f86d081884c7d65"]
    )
    who: str = Field(default="", max_length=255, description="By this principal.", examples=["token:ana"])
    since: Instant = Field(default=None, description="From the first one on that was made then or later.")


@with_config(WHOLE)
class RememberedOut(TypedDict):
    """A change of a reservation or an announcement."""

    cursor: Annotated[str, Field(description="What was changed next comes after it.")]
    number: Annotated[int, Field(description="Its place in the chain.")]
    at: Annotated[Time, Field(description="When, calendar time.")]
    who: Annotated[
        str, Field(description="The principal; `controller` if nobody has asked for it.", examples=["token:ana"])
    ]
    address: Annotated[
        str,
        Field(description="Where from; `unix` for a Unix socket, empty for the controller.", examples=["192.0.2.7"]),
    ]
    request_id: Annotated[str, Field(description="As `X-Request-Id` of the answer was; empty for the controller.")]
    kind: Annotated[
        str, Field(description="What has happened, as the event is called.", examples=["reservation.committed"])
    ]
    id: Annotated[str, Field(description="Of the reservation or announcement.", examples=["9f86d081884c7d65"])]
    old: Annotated[Values | None, Field(description="What has changed, as it was; null of something new.")]
    new: Annotated[Values, Field(description="The same as it is then; all of something new.")]
    outcome: Annotated[str, Field(description="`done`, or why it was refused.", examples=["done"])]
    hash: Annotated[str, Field(description="SHA-256 of the hash before and of all this, hexadecimal.")]


@with_config(WHOLE)
class RememberedPage(TypedDict):
    """Some changes, in the order in which they were saved."""

    changes: Annotated[list[RememberedOut], Field(description="The oldest first.")]
    next: Annotated[str | None, Field(description="The cursor of the next page; null if there is none yet.")]


class ChangesMade:
    """The handler."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._changes: Callable[[ChangeQuery], tuple[ChainRow, ...]] = dependencies.changes
        self._in_turn = dependencies.turns.in_turn

    def routes(self) -> Routes:
        """Return the route."""
        routes = Routes("history")
        page = {200: {"model": RememberedPage, "description": "A page", "headers": LINKED}}
        routes.add("GET /v1/changes", self._in_turn(self.page), page, 422, 503)
        return routes

    def page(self, request: Request, query: Annotated[ChangesQuery, Query()]) -> Response:
        """Return who has changed what, when and from where, a page at a time, in the order in which that was saved.

        Each was written in the transaction that has changed it. Nothing comes before a cursor later, unless a backup
        was restored: the numbers go on from its last one, and who has read beyond that begins anew there.
        """
        after = 0 if query.cursor is None else sequence_after(query.cursor)
        found = self._changes(ChangeQuery(after, query.limit + 1, query.id, query.who, query.since))
        page, more = found[: query.limit], len(found) > query.limit
        cursor = cursor_after(page[-1].number) if more else None
        return answer({"changes": [rendered(row) for row in page], "next": cursor}, headers=linked(request, cursor))


def rendered(row: ChainRow) -> RememberedOut:
    """Return a change as the API shows it."""
    change = row.change
    return {
        "cursor": cursor_after(row.number),
        "number": row.number,
        "at": shown_time(change.at_us),
        "who": original(change.who),
        "address": original(change.address),
        "request_id": original(change.request_id),
        "kind": change.kind,
        "id": original(change.id),
        "old": None if change.old is None else json.loads(change.old),
        "new": json.loads(change.new),
        "outcome": change.outcome,
        "hash": row.hash,
    }
