"""The REST API under ``/v1``: its parts put together, and what goes wrong as problems (RFC 9457)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException as RoutingError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.absent import FOR_OLD_MODELS, absent
from controller.database import DatabaseFailed
from controller.database.text import without_paths
from controller.errors import NotAllowed, NotKnown, NotYours, Outdated, Taken, Unconditional
from controller.northbound.access import Access, AccessRules
from controller.northbound.decisions import Decisions
from controller.northbound.dependencies import Dependencies
from controller.northbound.events import EventStream
from controller.northbound.gate import Gate
from controller.northbound.manual import Manual
from controller.northbound.metrics import Metrics, SiteCollector
from controller.northbound.page.needs_view import NeedsView
from controller.northbound.page.pages import Pages
from controller.northbound.quick import Quick
from controller.northbound.rest.announcements import Announcements
from controller.northbound.rest.answers import RETRY_AFTER_S, Routes, kebab, problem, with_problem_types
from controller.northbound.rest.calendar_feed import CalendarFeed
from controller.northbound.rest.changes import ChangesMade
from controller.northbound.rest.drift import Drift
from controller.northbound.rest.history import History
from controller.northbound.rest.leader import LeaderRoutes
from controller.northbound.rest.maintenance import MaintenanceRoutes
from controller.northbound.rest.reservations import Reservations
from controller.northbound.rest.views import Views
from controller.northbound.rest.what_if import WhatIfRoutes
from controller.northbound.rest.whoami import Whoami
from controller.northbound.standby import StandBy
from controller.plan.lifecycle import Illegal
from topology import __version__

MOST_BODY_BYTES = 256 * 1024  # a thousand senders with the longest names

# The one table of statuses: what went wrong -> what the client is told.
STATUS: dict[type[Exception], int] = {
    NotYours: 403,
    NotKnown: 404,
    Illegal: 409,
    Taken: 409,
    Outdated: 412,
    NotAllowed: 422,
    Unconditional: 428,
    DatabaseFailed: 503,
}
# What no handler was found for, or whose body could not be read: its status -> the kind of problem.
NOT_ROUTED = {400: "malformed", 404: "not-known", 405: "method-not-allowed", 413: "too-large"}
# What a number must be, by pydantic's name for its not being so.
BOUNDS = {
    "greater_than": "more than",
    "greater_than_equal": "at least",
    "less_than": "less than",
    "less_than_equal": "at most",
}


def api(dependencies: Dependencies, rules: AccessRules, pages: Pages | None = None) -> FastAPI:
    """Return the API.

    Args:
        dependencies: what is behind it.
        rules: who may do what.
        pages: what people look at; None for pages that look at the site when somebody asks, and not every second.
    """
    registry = CollectorRegistry()
    decisions = Decisions(registry)
    registry.register(SiteCollector(dependencies))
    shown = pages or Pages(dependencies, rules)
    reservations = Reservations(dependencies, decisions)
    parts = (
        reservations.routes(),
        CalendarFeed(dependencies).routes(),
        Announcements(dependencies, decisions).routes(),
        History(dependencies).routes(),
        ChangesMade(dependencies).routes(),
        Views(dependencies).routes(),
        Drift(dependencies).routes(),
        Whoami(dependencies).routes(),
        MaintenanceRoutes(dependencies).routes(),
        WhatIfRoutes(dependencies).routes(),
        LeaderRoutes(dependencies).routes(),
        NeedsView(shown.watch).routes(),
        EventStream(dependencies).routes(),
        Metrics(registry).routes(),
    )
    app = _empty()
    with absent(FOR_OLD_MODELS):
        for part in (*parts, Manual(), shown):
            part.add_to(app.router)  # itself: at each request FastAPI would look through one that is included twice
    app.add_middleware(SmallBodies)
    known = _known(decisions)
    app.add_middleware(Quick, hold=reservations.hold, commit=reservations.commit, errors=STATUS, problem_of=known)
    if dependencies.leader().standing is not None:
        app.add_middleware(StandBy, leader=dependencies.leader, under_way=dependencies.under_way)
    app.add_middleware(Access, rules=rules)
    app.add_middleware(Gate, names=dependencies.names)
    _handle_errors(app, known)
    app.openapi = _described(parts)  # type: ignore[method-assign]  # FastAPI's own way to extend it
    return app


def _empty() -> FastAPI:
    """Return an application that answers nothing yet."""
    return FastAPI(
        title="Headway",
        version=__version__,
        summary="One bandwidth plan for circuit, switches and hosts",
        docs_url=None,
        redoc_url=None,
    )


def _described(parts: Sequence[Routes]) -> Callable[[], dict[str, Any]]:
    """Return what makes the OpenAPI schema; it is made once, by another application than the one that answers."""
    made: dict[str, Any] = {}

    def described() -> dict[str, Any]:
        if not made:
            app = _empty()
            for part in parts:
                part.add_to(app.router, documented=True)
            made.update(with_problem_types(app.openapi()))
        return made

    return described


def problem_type(error: type[Exception]) -> str:
    """Return what stands in a problem's type: its class's name; for the database, as it was called before."""
    return "store-failed" if error is DatabaseFailed else kebab(error.__name__)


Problems = Callable[[Request, Exception], Awaitable[Response]]


def _known(decisions: Decisions) -> Problems:
    """Return what makes problems of what handlers raise, by :data:`STATUS`."""

    async def known(_: Request, error: Exception) -> Response:
        status = next(s for kind, s in STATUS.items() if isinstance(error, kind))
        if isinstance(error, DatabaseFailed):
            decisions.not_saved()
            text = f"the database: {without_paths(error.why)}; the controller's log says more"
            return problem(status, problem_type(DatabaseFailed), text, {}, {"Retry-After": str(RETRY_AFTER_S)})
        return problem(status, problem_type(type(error)), str(error), vars(error), {})

    return known


def _handle_errors(app: FastAPI, known: Problems) -> None:
    """Make problems of what handlers, routing and validation raise."""

    async def fault(_: Request, error: Exception) -> Response:
        return problem(500, "fault", f"our fault: {type(error).__name__}; the log says more", {})

    handlers: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
        **dict.fromkeys(STATUS, known),
        RequestValidationError: _invalid,
        RoutingError: _not_routed,
        Exception: fault,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


async def _not_routed(request: Request, error: RoutingError) -> Response:
    """Answer what no handler was found for, or whose body could not be read."""
    headers = dict(error.headers or {})
    if error.status_code == 405:  # Starlette names the methods of the first route with this path only
        headers["Allow"] = ", ".join(_methods(request.app, request.url.path))
    kind = NOT_ROUTED.get(error.status_code, "not-possible")
    return problem(error.status_code, kind, str(error.detail), {}, headers)


def _methods(app: FastAPI, path: str) -> list[str]:
    """Return the methods that a path takes."""
    routes = (route for route in app.routes if isinstance(route, APIRoute) and route.path_regex.fullmatch(path))
    return sorted({method for route in routes for method in route.methods or ()})


async def _invalid(_: Request, error: RequestValidationError) -> Response:
    """Answer what makes no sense: every field, and what is wrong with it."""
    found = error.errors()
    if any(e["type"] == "json_invalid" for e in found):
        return problem(400, "malformed", f"the body is not JSON: {found[0]['ctx']['error']}", {})
    errors = [{"field": ".".join(map(str, e["loc"][1:])), "detail": _wrong(e)} for e in found]
    text = "; ".join(f"{one['field'] or e['loc'][0]}: {one['detail']}" for one, e in zip(errors, found, strict=True))
    return problem(422, "not-valid", text, {"errors": errors})


def _wrong(error: dict[str, Any]) -> str:
    """Return what is wrong with a field, of what pydantic says."""
    if error["type"] not in BOUNDS:
        return str(error["msg"]).removeprefix("Value error, ")
    (bound,) = error["ctx"].values()
    return f"must be {BOUNDS[error['type']]} {str(bound).removesuffix('.0')}"


class SmallBodies:
    """Refuses a body that is larger than any of ours, before it fills the memory."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, counting what it brings."""
        if scope["type"] != "http" or scope["method"] == "GET":
            await self._app(scope, receive, send)
            return
        got_bytes = 0

        async def counting() -> Message:
            nonlocal got_bytes
            message = await receive()
            got_bytes += len(message.get("body", b""))
            if got_bytes > MOST_BODY_BYTES:
                raise HTTPException(413, f"a body has at most {MOST_BODY_BYTES:,} bytes")
            return message

        await self._app(scope, counting, send)
