"""``/v1/reservations`` and ``/v1/availability``: parse, call, render."""

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Path, Query, Request, Response

from controller.asker import present_asker
from controller.errors import NotKnown, Outdated, Unconditional
from controller.northbound.decisions import Decisions
from controller.northbound.dependencies import Dependencies
from controller.northbound.rest import render_promises
from controller.northbound.rest.answers import Routes, answer, once_saved, refusal_answer
from controller.northbound.rest.bodies import (
    AvailabilityQuery,
    RenewalIn,
    ReservationChange,
    ReservationIn,
)
from controller.northbound.rest.conditional import IfNoneMatch, etag, highest_version, strong_tags
from controller.northbound.rest.pages import LINKED, Key, cursor_after, linked, sequence_after
from controller.northbound.rest.queries import ReservationQuery
from controller.northbound.rest.shapes import AvailabilityOut, ReservationOut, ReservationPage
from controller.plan.admission import Refused
from controller.plan.ledger import Created
from controller.plan.lifecycle import ENDED, LifecycleEvent, ReservationState
from controller.plan.reservations import Reservation
from controller.saves import Saved

Name = Annotated[str, Path(alias="id", description="The reservation's id.", examples=["9f86d081884c7d65"])]
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="The entity tag of what you have seen; `*` for any.", examples=['"3"']),
]

_TAGGED = {"ETag": {"description": "The version, for If-Match", "schema": {"type": "string"}}}
_LOCATED = {**_TAGGED, "Location": {"description": "Where it is", "schema": {"type": "string"}}}


def _one(description: str, headers: dict[str, Any]) -> dict[str, Any]:
    return {"model": ReservationOut, "description": description, "headers": headers}


class Reservations:
    """The handlers; each is told what a client sends, and answers."""

    def __init__(self, dependencies: Dependencies, decisions: Decisions) -> None:
        self._use_cases = dependencies.use_cases
        self._reserved = dependencies.reserved
        self._network = dependencies.network
        self._now_us = dependencies.now_us
        self._decisions = decisions
        self._in_turn = dependencies.turns.in_turn

    def routes(self) -> Routes:
        """Return the routes."""
        routes = Routes("reservations")
        many, one = "/v1/reservations", "/v1/reservations/{id}"
        shown = {200: _one("As it is now", _TAGGED)}
        asked = {201: _one("It is held, or committed", _LOCATED), 200: _one("It was asked for before", _LOCATED)}
        page = {200: {"model": ReservationPage, "description": "A page", "headers": LINKED}}
        same = {304: {"description": "It has ended, and is as you have it", "headers": _TAGGED}}
        free = {200: {"model": AvailabilityOut, "description": "The answer along each path", "headers": LINKED}}
        writes = (400, 404, 409, 413, 415, 422, 503)
        routes.add(f"POST {many}", self.hold, asked, *writes)  # the two that must be quick are looked at first
        routes.add(f"POST {one}/commit", self.commit, shown, 404, 409, 422, 503)
        routes.add(f"POST {one}/renew", self.renew, shown, *writes)
        routes.add(f"GET {many}", self._in_turn(self.page), page, 422)
        routes.add(f"GET {one}", self.get, shown | same, 404, 422, 503)
        routes.add(f"PATCH {one}", self.change, shown, *writes, 412, 428)
        routes.add(f"DELETE {one}", self.release, shown, 404, 409, 412, 422, 503)
        routes.add("GET /v1/availability", self._in_turn(self.availability), free, 404, 422)
        return routes

    async def hold(self, body: ReservationIn, key: Key = None) -> Response:
        """Hold bandwidth, and commit it at once if asked to.

        What is held lapses at `hold_until` unless it is committed: after `hold_s`, or sooner if what it needs has to be
        bought. A refusal has the numbers and the nearest offers.
        """
        name = secrets.token_hex(8)
        created = partial(_created, name, body, key)
        hold = partial(self._decisions.decided, "reservation", partial(self._use_cases.hold, body.request, created))
        held = hold() if key is None else await asyncio.to_thread(hold)
        value, saved = held.value, held.saved
        if body.commit and isinstance(value, Reservation) and value.state is ReservationState.HELD:
            try:
                committed = self._use_cases.commit(value.reservation_id)
            except NotKnown:  # it has lapsed already
                return self._shown(await self._ended_and(value.reservation_id, LifecycleEvent.COMMIT))
            value, saved = committed.value, committed.saved  # which is saved after the hold
        await once_saved(saved)
        if isinstance(value, Refused):
            return refusal_answer(value)
        location = {"Location": f"/v1/reservations/{value.reservation_id}"}
        return self._shown(value, 201 if value.reservation_id == name else 200, location)

    async def commit(self, name: Name) -> Response:
        """Make a hold a promise. One that is a promise already stays so."""
        return await self._done(name, LifecycleEvent.COMMIT, partial(self._use_cases.commit, name))

    async def renew(self, name: Name, body: RenewalIn | None = None) -> Response:
        """Keep a hold for longer, from now; no longer than what it needs can still be bought."""
        renew = partial(self._use_cases.renew, name, (body or RenewalIn()).hold_s * 1_000_000)
        return await self._done(name, LifecycleEvent.RENEW, renew)

    async def get(self, name: Name, if_none_match: IfNoneMatch = None) -> Response:
        """Return a reservation.

        One that has not ended is sent also to who has its version: whether it is carried changes without that.
        """
        known = await self._one(name)
        if if_none_match is not None and known.state in ENDED:
            tags = strong_tags(if_none_match.replace("W/", ""), "If-None-Match")
            if tags is None or str(known.version) in tags:
                return Response(status_code=304, headers={"ETag": etag(known.version)})
        return self._shown(known)

    def page(self, request: Request, query: Annotated[ReservationQuery, Query()]) -> Response:
        """Return reservations in order of creation, a page at a time.

        A page may have fewer than `limit`, even none, though `next` says that there are more. While the database cannot
        be read they are those that have not ended (`lacks`).
        """
        after = 0 if query.cursor is None else sequence_after(query.cursor)
        found = self._reserved.page(query.value(), after, query.limit)
        page = found.page
        cursor = None if found.go_on_after is None else cursor_after(found.go_on_after)
        return answer(
            {
                "reservations": [
                    render_promises.reservation(known, self._network, obstacles, lacking)
                    for known, obstacles, lacking in zip(
                        page, self._use_cases.obstacles(page), self._use_cases.not_guaranteed(page), strict=True
                    )
                ],
                "next": cursor,
                "lacks": found.lacks or None,
            },
            headers=linked(request, cursor),
        )

    async def change(self, name: Name, body: ReservationChange, if_match: IfMatch = None) -> Response:
        """Change a reservation; its own share counts as free. Refused, nothing has changed."""
        if if_match is None:
            raise Unconditional(name)
        version = await self._version(name, if_match)
        change = partial(self._use_cases.change, name, body.changed, version)
        return await self._done(name, LifecycleEvent.CHANGE, partial(self._decisions.decided, "change", change))

    async def release(self, name: Name, if_match: IfMatch = None) -> Response:
        """Give a reservation back. One that is given back already stays so."""
        version = None if if_match is None else await self._version(name, if_match)
        return await self._done(name, LifecycleEvent.RELEASE, partial(self._use_cases.release, name, version))

    def availability(self, request: Request, query: Annotated[AvailabilityQuery, Query()]) -> Response:
        """Return what is free along each path: over time, at once, when a rate fits first, when bytes can be moved.

        What is free over time comes in pages. All else is about the time from a page's own start, so that of the first
        page is about the whole.
        """
        question = query.question(self._now_us(), self._network.framing_between([query.a_end], query.z_end))
        answers = self._use_cases.availability(question)
        said = render_promises.availability(question, query.size_bytes, answers, self._network)
        return answer(said, headers=linked(request, said["next"], "start", end=said["end"]))

    def _shown(self, value: Reservation, status: int = 200, headers: dict[str, str] | None = None) -> Response:
        headers = {"ETag": etag(value.version), **(headers or {})}
        (obstacles,) = self._use_cases.obstacles([value])
        (lacking,) = self._use_cases.not_guaranteed([value])
        return answer(render_promises.reservation(value, self._network, obstacles, lacking), status, headers)

    async def _one(self, name: str) -> Reservation:
        """Return a reservation, from memory or from the database."""
        try:
            return self._use_cases.reservation(name)
        except NotKnown:
            return await asyncio.to_thread(self._reserved.one, name)

    async def _ended_and(self, name: str, event: LifecycleEvent) -> Reservation:
        return await asyncio.to_thread(self._reserved.ended_and, name, event)

    async def _done(
        self, name: str, event: LifecycleEvent, act: Callable[[], Saved[Reservation] | Saved[Reservation | Refused]]
    ) -> Response:
        """Let something happen to a reservation, and answer when it is saved."""
        try:
            done = act()
        except NotKnown as error:
            if error.kind != "reservation":
                raise
            return self._shown(await self._ended_and(name, event))
        await once_saved(done.saved)
        return refusal_answer(done.value) if isinstance(done.value, Refused) else self._shown(done.value)

    async def _version(self, name: str, if_match: str) -> int:
        """Return the version that a client has seen, if that is the present one.

        Raises:
            Outdated: it is not.
        """
        version = (await self._one(name)).version
        tags = strong_tags(if_match, "If-Match")
        if tags is not None and str(version) not in tags:
            raise Outdated("reservation", name, highest_version(tags), version)
        return version


def _created(name: str, body: ReservationIn, key: str | None, now_us: int) -> Created:
    """Return what a new reservation is made of beside the request."""
    asked, hold_us = ("", "") if key is None else (key, body.fingerprint), body.hold_s * 1_000_000
    return Created(name, now_us, *asked, hold_us, present_asker().who)
