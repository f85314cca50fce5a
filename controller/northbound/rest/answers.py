"""Answers: JSON made fast, problems (RFC 9457), and how both are documented."""

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from fastapi import APIRouter, Response
from pydantic.json_schema import models_json_schema

from controller.northbound.json_bytes import json_bytes
from controller.northbound.rest import render_promises
from controller.northbound.rest.shapes import Problem, Refusal
from controller.plan.admission import Refused

JSON, PROBLEM = "application/json", "application/problem+json"
RETRY_AFTER_S = 1  # the controller brings memory and database together again at its next tick

_DESCRIBED = {
    400: "The body is not JSON",
    401: "Say who you are, by a token with the role in `needs`",
    403: "You have not the role in `needs`; or a page of another origin asks",
    404: "There is no such thing",
    405: "Not with this method; `Allow` has those there are",
    409: "Refused for want of capacity, with the numbers and the nearest offers; or not possible in its state",
    412: "It has changed since you saw it: get it again",
    413: "The body is too large",
    415: "The body is not said to be JSON",
    422: "The request makes no sense; the fields are named",
    429: "Too many at once; `Retry-After` says when to ask again",
    428: "Say what you have seen, in `If-Match`",
    500: "Our fault; the log says more",
    503: "It could not be saved; nothing is certain, so ask again. `Retry-After` says when",
}
# By these names clients that are made from the description call the operations: they stay as they are.
OPERATION_IDS = {
    "POST /v1/reservations": "hold_reservation",
    "GET /v1/reservations": "list_reservations",
    "GET /v1/reservations/{id}": "get_reservation",
    "PATCH /v1/reservations/{id}": "change_reservation",
    "DELETE /v1/reservations/{id}": "release_reservation",
    "POST /v1/reservations/{id}/commit": "commit_reservation",
    "POST /v1/reservations/{id}/renew": "renew_reservation",
    "GET /v1/availability": "get_availability",
    "GET /v1/calendar.ics": "get_calendar",
    "POST /v1/announcements": "announce",
    "GET /v1/announcements": "list_announcements",
    "GET /v1/announcements/{id}": "get_announcement",
    "DELETE /v1/announcements/{id}": "release_announcement",
    "GET /healthz": "get_health",
    "GET /v1/needs": "get_needs",
    "GET /v1/plan": "get_plan",
    "GET /v1/circuits": "list_circuits",
    "GET /v1/transitions": "list_transitions",
    "GET /v1/topology": "get_topology",
    "GET /v1/bursts": "list_bursts",
    "GET /v1/receivers": "list_receivers",
    "GET /v1/hosts": "list_hosts",
    "GET /v1/switches": "list_switches",
    "GET /v1/drift": "get_drift",
    "GET /v1/leader": "get_leader",
    "POST /v1/leader/move": "move_leader",
    "GET /v1/history": "list_history",
    "GET /v1/changes": "list_changes",
    "GET /v1/whoami": "get_whoami",
    "GET /v1/maintenance": "list_maintenance",
    "POST /v1/maintenance": "plan_maintenance",
    "DELETE /v1/maintenance/{id}": "cancel_maintenance",
    "GET /v1/scenario": "get_scenario",
    "GET /v1/what-if/{circuit}": "what_if",
    "GET /v1/events": "follow_events",
    "GET /metrics": "get_metrics",
}

_SCHEMA = "#/components/schemas/{model}"
_RETRY = {"Retry-After": {"description": "Seconds", "schema": {"type": "integer"}}}


def answer(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return JSON; ``body`` is what ``render`` makes, so nothing is checked again."""
    return Response(json_bytes(body), status, headers, JSON)


def kebab(name: str) -> str:
    """Return a class name as it stands in a problem's type.

    >>> kebab("NotKnown")
    'not-known'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def problem(
    status: int, kind: str, detail: str, fields: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    """Return an error; ``fields`` hold what the detail is made of, so that nobody parses it."""
    said = {"type": f"/problems/{kind}", "title": kind.replace("-", " "), "status": status, "detail": detail}
    return Response(json_bytes({**said, **fields, **said}, fallback=str), status, headers, PROBLEM)


def refusal_answer(value: Refused) -> Response:
    """Return the answer no."""
    return problem(409, value.reason.value, str(value), render_promises.refusal(value))


async def once_saved(saved: Future[None]) -> None:
    """Return once an answer outlives a crash. A client that hangs up meanwhile does not take the save with it.

    Raises:
        DatabaseFailed: it may not.
    """
    if not saved.done():
        loop = asyncio.get_running_loop()
        told = loop.create_future()
        saved.add_done_callback(lambda _: None if loop.is_closed() else loop.call_soon_threadsafe(_tell, told))
        await told
    saved.result()


def _tell(told: asyncio.Future[None]) -> None:
    if not told.done():  # its client may have hung up
        told.set_result(None)


Good = Mapping[int, Mapping[str, Any]]


class Routes:
    """What a part of the API answers, documented by its handlers' docstrings and by all that each may answer.

    Args:
        tag: of its operations.
    """

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._operations: list[tuple[str, Callable[..., Any], Good, tuple[int, ...]]] = []

    def add(self, operation: str, handler: Callable[..., Any], good: Good, *problems: int) -> None:
        """Add an operation.

        Args:
            operation: method and path, as in ``GET /v1/plan``.
            handler: what answers.
            good: the answers of an operation that is done, by status.
            problems: the statuses of others; 401, 403, 405 and 500 may be anybody's.
        """
        self._operations.append((operation, handler, good, problems))

    def add_to(self, router: APIRouter, *, documented: bool = False) -> None:
        """Add them to an application's router.

        Args:
            router: where to.
            documented: with all they may answer. Their shapes are compiled then, which takes longer than all else that
                an application is made of; and no answer is checked by them.
        """
        for operation, handler, good, problems in self._operations:
            method, path = operation.split(" ")
            summary, _, more = (inspect.getdoc(handler) or "").partition("\n\n")
            router.add_api_route(
                path,
                handler,
                methods=[method],
                status_code=max(status for status in good if status < 300),
                responses=_documented(good, *problems) if documented else None,
                response_model=None,
                response_class=Response,
                operation_id=OPERATION_IDS.get(operation),
                summary=summary.rstrip("."),
                description=more,
                tags=[self._tag],
            )


def _documented(good: Good, *statuses: int) -> dict[int | str, dict[str, Any]]:
    found: dict[int | str, dict[str, Any]] = {status: dict(response) for status, response in good.items()}
    for status in (*statuses, 401, 403, 405, 500):
        models = (Refusal, Problem) if status == 409 else (Problem,)
        # Named, not given as a model: FastAPI would compile one for each status of each route, at each start.
        shapes = [{"$ref": _SCHEMA.format(model=model.__name__)} for model in models]
        found[status] = {
            "description": _DESCRIBED[status],
            "headers": _RETRY if status in {429, 503} else {},
            "content": {PROBLEM: {"schema": {"anyOf": shapes} if len(shapes) > 1 else shapes[0]}},
        }
    return found


def with_problem_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI schema that has the shapes of problems too, to which its operations refer."""
    _, shapes = models_json_schema([(Problem, "serialization"), (Refusal, "serialization")], ref_template=_SCHEMA)
    components = schema.setdefault("components", {})
    components["schemas"] = dict(sorted((shapes["$defs"] | components.get("schemas", {})).items()))
    return schema
