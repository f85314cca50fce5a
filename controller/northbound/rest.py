"""REST under ``/v1``: parse, call the service, render. Errors are ``application/problem+json`` (RFC 9457)."""

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from controller.errors import HeadwayError, NotAllowed, NotKnown
from controller.northbound import render
from controller.plan.announcements import Announcement, Refused
from controller.service import Asked, Service
from topology import __version__
from topology.network import Network
from topology.protocol import FlowClass

# The one table of statuses: what went wrong -> what the client is told.
STATUS: dict[type[HeadwayError], int] = {NotKnown: 404, NotAllowed: 422}


class AnnouncementIn(BaseModel):
    """Bytes that are coming."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"bytes": 2688024580, "from": ["base20", "base21"], "to": "arch", "deadline_s": 30}]
        },
    )

    id: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")] | None = Field(
        default=None, description="A name for it; made up if absent."
    )
    flow_class: FlowClass = Field(default=FlowClass.URGENT, alias="class")
    size_bytes: int = Field(alias="bytes", gt=0, le=2**63 - 1, description="Payload, all senders together.")
    senders: tuple[str, ...] = Field(alias="from", min_length=1, description="Sending hosts; each sends an equal part.")
    target: str = Field(alias="to", description="Receiving host.")
    deadline_s: float | None = Field(default=None, gt=0, le=10**9, description="By when, seconds from now.")


class Problem(BaseModel):
    """An error as RFC 9457 shapes it; further members carry the numbers."""

    model_config = ConfigDict(extra="allow")
    type: str
    title: str
    status: int
    detail: str


def api(service: Service, network: Network) -> FastAPI:
    """Return the API over a service."""
    app = FastAPI(title="Headway", version=__version__, summary="One bandwidth plan for circuit, switches and hosts")
    app.include_router(_routes(service, network))

    @app.exception_handler(HeadwayError)
    def _headway_error(_: Request, error: HeadwayError) -> Response:
        status = next((s for kind, s in STATUS.items() if isinstance(error, kind)), 500)
        fields = vars(error)
        return _problem(status, render.kebab(type(error).__name__), str(error), fields)

    @app.exception_handler(RequestValidationError)
    def _invalid(_: Request, error: RequestValidationError) -> Response:
        errors = [{"field": ".".join(map(str, e["loc"][1:])), "detail": e["msg"]} for e in error.errors()]
        text = "; ".join(f"{e['field'] or 'body'}: {e['detail']}" for e in errors)
        return _problem(422, "not-valid", text, {"errors": errors})

    return app


def _problem(status: int, kind: str, detail: str, fields: dict[str, Any]) -> Response:
    """Return an error; ``fields`` hold what the detail is made of, so that nobody parses it."""
    title = kind.replace("-", " ")
    body = {"type": f"/problems/{kind}", "title": title, "status": status, "detail": detail, **fields}
    return JSONResponse(body, status, media_type="application/problem+json")


def _routes(service: Service, network: Network) -> APIRouter:
    """Return the routes; a plain function a route, since that is how FastAPI documents them."""
    routes = APIRouter()
    problems: dict[int | str, dict[str, Any]] = {422: {"model": Problem, "description": "The request makes no sense"}}

    @routes.get("/healthz", summary="Whether the plan is in force", responses={503: {"description": "It is not"}})
    def healthz(response: Response) -> dict[str, Any]:
        health = render.health(service.view())
        response.status_code = 200 if health["ok"] else 503
        return health

    @routes.get("/v1/plan", summary="The plan: desired, installed, and what each layer lets through now")
    def plan() -> dict[str, Any]:
        return render.view(service.view())

    @routes.get("/v1/transitions", summary="The latest steps from plan to plan, oldest first")
    def transitions() -> list[dict[str, Any]]:
        return [render.step(s) for s in service.steps()]

    @routes.get("/v1/topology", summary="The network")
    def topology() -> dict[str, Any]:
        return render.topology(network)

    @routes.get("/v1/hosts", summary="Every host's agent and its counters")
    def hosts() -> list[dict[str, Any]]:
        return [render.host(name, state) for name, state in service.view().hosts.items()]

    @routes.get("/v1/announcements", summary="Announcements in the plan")
    def announcements() -> list[dict[str, Any]]:
        return [render.announcement(a) for a in service.announcements()]

    @routes.post(
        "/v1/announcements",
        status_code=201,
        summary="Announce bytes that are coming; the answer is a promise",
        responses={**problems, 404: {"model": Problem}, 409: {"model": Problem, "description": "It cannot be met"}},
        response_model=None,
    )
    def announce(body: AnnouncementIn) -> dict[str, Any] | Response:
        deadline_us = None if body.deadline_s is None else round(body.deadline_s * 1e6)
        name = body.id or uuid.uuid4().hex[:12]
        answer = service.announce(Asked(name, body.flow_class, body.size_bytes, body.senders, body.target, deadline_us))
        if isinstance(answer, Refused):
            return _problem(409, answer.reason.value, str(answer), render.refusal(answer))
        return render.announcement(answer)

    @routes.delete("/v1/announcements/{name}", summary="Release an announcement", responses={404: {"model": Problem}})
    def release(name: str) -> dict[str, Any]:
        released: Announcement = service.release(name)
        return render.announcement(released)

    return routes
