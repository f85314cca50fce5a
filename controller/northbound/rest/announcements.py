"""``/v1/announcements``: parse, call, render."""

import asyncio
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from fastapi import Path, Query, Request, Response

from controller.announced import Known, sequence_of
from controller.checks import AnnouncementRequest
from controller.errors import NotKnown
from controller.northbound.decisions import Decisions
from controller.northbound.dependencies import Dependencies
from controller.northbound.rest import render_announcements
from controller.northbound.rest.announcement_shapes import AnnouncementOut, AnnouncementPage
from controller.northbound.rest.answers import Routes, answer, once_saved, refusal_answer
from controller.northbound.rest.bodies import AnnouncementIn
from controller.northbound.rest.pages import LINKED, Key, cursor_after, linked, sequence_after
from controller.northbound.rest.queries import AnnouncementQuery
from controller.plan.admission import Refused
from controller.plan.announcement_states import Ending
from controller.plan.announcements import Announcement
from controller.plan.ended import EndedAnnouncement, UsedKey
from controller.plan.plan import THE_REST

DEALT_WITHIN_S, LOOKS_EVERY_S = 1.0, 0.005  # a promise that no host can be told of soon is answered nevertheless
Name = Annotated[str, Path(alias="id", description="The announcement's name.", examples=["image"])]


class Announcements:
    """The handlers; each is told what a client sends, and answers."""

    def __init__(self, dependencies: Dependencies, decisions: Decisions) -> None:
        self._use_cases = dependencies.use_cases
        self._announced = dependencies.announced
        self._now_us = dependencies.now_us
        self._decisions = decisions
        self._in_turn = dependencies.turns.in_turn

    def routes(self) -> Routes:
        """Return the routes."""
        routes = Routes("announcements")
        many, one = "/v1/announcements", "/v1/announcements/{id}"
        promised = {
            201: {"model": AnnouncementOut, "description": "It is promised"},
            200: {"model": AnnouncementOut, "description": "It was asked for before"},
        }
        page = {200: {"model": AnnouncementPage, "description": "A page", "headers": LINKED}}
        shown = {200: {"model": AnnouncementOut, "description": "As it is now"}}
        gone = {200: {"model": AnnouncementOut, "description": "What became of it"}}
        routes.add(f"POST {many}", self.announce, promised, 400, 404, 409, 413, 415, 422, 503)
        routes.add(f"GET {many}", self._in_turn(self.page), page, 422)
        routes.add(f"GET {one}", self.get, shown, 404, 422, 503)
        routes.add(f"DELETE {one}", self.release, gone, 404, 422, 503)
        return routes

    async def announce(self, body: AnnouncementIn, key: Key = None) -> Response:
        """Announce bytes that are coming; the answer is a promise, or a refusal with the numbers and offers.

        Asked again by the same principal with the same `id` or `Idempotency-Key` and the same body, it is the same
        announcement.
        """
        deadline_us = None if body.deadline_s is None else round(body.deadline_s * 1e6)
        asked = AnnouncementRequest(
            body.id or uuid.uuid4().hex[:12],
            body.flow_class,
            body.size_bytes,
            body.senders,
            body.target,
            deadline_us,
            THE_REST if body.connections is None else body.connections.value(),
            key or "",
            is_named=body.id is not None,
            owner=body.owner or "",
            is_stored_by=body.deadline_for == "stored",
            lanes=body.lanes,
            is_called=body.connects == "receiver",
            session_us=round(body.session_s * 1e6),
            tail=body.tail,
        )
        done = self._decisions.decided("announcement", partial(self._use_cases.announce, asked))
        await once_saved(done.saved)
        value = done.value
        if isinstance(value, Refused):
            return refusal_answer(value)
        if isinstance(value, UsedKey):
            value = await asyncio.to_thread(self._announced.repeated, value, asked.fingerprint)
        if isinstance(value, Announcement):
            await self._once_dealt(value)
        return self._shown(value, 200 if done.is_repeated else 201)

    async def _once_dealt(self, known: Announcement) -> None:
        """Return once connections are dealt to its lanes: those that are made after the answer will be."""
        for _ in range(round(DEALT_WITHIN_S / LOOKS_EVERY_S)):
            if self._use_cases.is_dealt(known):
                return
            await asyncio.sleep(LOOKS_EVERY_S)

    def page(self, request: Request, query: Annotated[AnnouncementQuery, Query()]) -> Response:
        """Return announcements in the order they were made, a page at a time; for thirty days those that have ended.

        While the database cannot be read they are those in the plan and those that have ended just now (`lacks`).
        """
        after = 0 if query.cursor is None else sequence_after(query.cursor)
        found, lacks = self._announced.page(after, query.limit + 1, query.state, query.owners)
        page, more = found[: query.limit], len(found) > query.limit
        cursor = cursor_after(sequence_of(page[-1])) if more else None
        shown = {"announcements": self._rendered(page), "next": cursor, "lacks": lacks or None}
        return answer(shown, headers=linked(request, cursor))

    def get(self, name: Name) -> Response:
        """Return an announcement: the one in the plan, or else the last of this name that has ended."""
        return self._shown(self._announced.one(name))

    async def release(self, name: Name) -> Response:
        """Release an announcement: its bytes have arrived, its share goes back. One that is released already stays so.

        What became of it is kept; the last counts of its senders come within a second.
        """
        try:
            done = self._use_cases.forget(name)
        except NotKnown:
            known = await asyncio.to_thread(self._announced.one, name)
            if isinstance(known, EndedAnnouncement) and known.ending is Ending.RELEASED:
                return self._shown(known)
            raise
        await once_saved(done.saved)
        return self._shown(done.value)

    def _shown(self, known: Known, status: int = 200) -> Response:
        (shown,) = self._rendered([known])
        return answer(shown, status)

    def _rendered(self, many: Sequence[Known]) -> list[AnnouncementOut]:
        live = [known for known in many if isinstance(known, Announcement)]
        why = dict(zip(map(sequence_of, live), self._use_cases.obstacles(live), strict=True))
        progress, now_us = self._announced.progress(live), self._now_us()
        return [
            render_announcements.announcement(known, progress, why.get(sequence_of(known)), now_us) for known in many
        ]
