"""``/v1/events``: what happens, as server-sent events (HTML standard, section 9.2)."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import Header, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from controller.events import Events, Happened, Heard
from controller.northbound.dependencies import Dependencies
from controller.northbound.json_bytes import json_bytes
from controller.northbound.rest.answers import Routes, problem
from controller.security.connections import Places, counted_as
from topology.units import shown_time

STREAM = "text/event-stream"
RETRY_MS = 1_000  # after which a browser comes back
MOST_LISTENERS, MOST_OF_ONE = 256, 32  # in all, and of one address; each keeps a connection and wakes at each event
FULL_RETRY_S = 30

LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        max_length=64,
        description="The id of the event seen last; without it only what happens from now on is told.",
        examples=["1795298400000000"],
    ),
]


class EventStream:
    """The handler, and who listens."""

    def __init__(self, dependencies: Dependencies, places: Places | None = None) -> None:
        self._events = dependencies.events
        self._places = Places(MOST_LISTENERS, MOST_OF_ONE) if places is None else places

    def routes(self) -> Routes:
        """Return the route."""
        routes = Routes("events")
        stream = {
            "schema": {"type": "string"},
            "example": "id: 1795298400000000\nevent: reservation.held\ndata: {}\n\n",
        }
        told = {200: {"description": "Events, as they happen", "content": {STREAM: stream}}}
        routes.add("GET /v1/events", self.listen, told, 422, 429)
        return routes

    async def listen(self, request: Request, last_event_id: LastEventId = None) -> Response:
        """Tell what happens, as it happens. An event `lost` says that some between are not remembered any more.

        Many may listen at once, but not any number, and fewer of one address (429).
        """
        network = counted_as(request.client.host if request.client else "")
        if not self._places.take(network):
            why = "as many listen to events as may, in all or from your address; end one, or ask again later"
            return problem(429, "too-many", why, {}, {"Retry-After": str(FULL_RETRY_S)})
        number = self._events.last if last_event_id is None else _number(last_event_id)
        return Stream(lambda: self._places.leave(network), written(self._events, number))


class Stream(StreamingResponse):
    """A stream of events, at whose end something is done, though it may not even have begun."""

    def __init__(self, ended: Callable[[], None], content: AsyncIterator[bytes]) -> None:
        super().__init__(content, headers={"Cache-Control": "no-store"}, media_type=STREAM)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def _number(event_id: str) -> int:
    """Return the number of an event; of what is no id one that is not remembered, so that it is said to be lost."""
    return int(event_id) if event_id.isdecimal() else -1


async def written(events: Events, number: int) -> AsyncIterator[bytes]:
    """Yield what has happened after an event, and what happens, as it goes over the line.

    The first lines carry the id to come back with, for one whose connection breaks before its first event.
    """
    yield f"retry: {RETRY_MS}\nid: {max(0, number)}\n\n".encode()
    async for heard in events.listen(number):
        yield b": still here\n\n" if heard is None else b"".join(_lines(heard))


def _lines(heard: Heard) -> list[bytes]:
    lost = [b"event: lost\ndata: {}\n\n"] if heard.lost else []
    return lost + [_event(one) for one in heard.events]


def _event(one: Happened) -> bytes:
    data = json_bytes({"at": shown_time(one.at_us), **one.fields}, fallback=str)  # JSON has no bare newlines
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (one.number, one.name.encode(), data)
