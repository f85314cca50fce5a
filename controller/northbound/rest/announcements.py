"""``/v1/announcements``: parse, call, render."""

import uuid
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Response

from controller.checks import AnnouncementRequest
from controller.northbound.decisions import Decisions
from controller.northbound.dependencies import Dependencies
from controller.northbound.rest import render_promises
from controller.northbound.rest.answers import add, answer, once_saved, refusal
from controller.northbound.rest.bodies import AnnouncementIn
from controller.northbound.rest.shapes import AnnouncementOut
from controller.plan.admission import Refused
from controller.plan.plan import THE_REST

Name = Annotated[str, Path(alias="id", description="The announcement's name.", examples=["image"])]


class Announcements:
    """The handlers; each is told what a client sends, and answers."""

    def __init__(self, dependencies: Dependencies, decisions: Decisions) -> None:
        self._use_cases = dependencies.use_cases
        self._decisions = decisions

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(tags=["announcements"])
        many, one = "/v1/announcements", "/v1/announcements/{id}"
        promised = {201: {"model": AnnouncementOut, "description": "It is promised"}}
        there = {200: {"model": list[AnnouncementOut], "description": "All of them"}}
        gone = {200: {"model": AnnouncementOut, "description": "As it was"}}
        add(routes, f"POST {many}", self.announce, promised, 400, 404, 409, 413, 415, 422, 503)
        add(routes, f"GET {many}", self.announced, there)
        add(routes, f"DELETE {one}", self.release, gone, 404, 422, 503)
        return routes

    async def announce(self, body: AnnouncementIn) -> Response:
        """Announce bytes that are coming; the answer is a promise, or a refusal with the numbers and offers."""
        deadline_us = None if body.deadline_s is None else round(body.deadline_s * 1e6)
        name = body.id or uuid.uuid4().hex[:12]
        selector = THE_REST if body.connections is None else body.connections.value()
        asked = AnnouncementRequest(
            name, body.flow_class, body.size_bytes, body.senders, body.target, deadline_us, selector
        )
        done = self._decisions.decided("announcement", partial(self._use_cases.announce, asked))
        await once_saved(done.saved)
        if isinstance(done.value, Refused):
            return refusal(done.value)
        (obstacles,) = self._use_cases.obstacles([done.value])
        return answer(render_promises.announcement(done.value, obstacles), 201)

    async def announced(self) -> Response:
        """Return the announcements in the plan now."""
        found = self._use_cases.announcements()
        return answer(list(map(render_promises.announcement, found, self._use_cases.obstacles(found))))

    async def release(self, name: Name) -> Response:
        """Release an announcement: its bytes have arrived, its share goes back to the others."""
        done = self._use_cases.forget(name)
        await once_saved(done.saved)
        return answer(render_promises.announcement(done.value, None))
