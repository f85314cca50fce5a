"""An OSCARS 1.2 to test against: real HTTP on this machine, a clock that is set by hand, faults on demand.

``with running(FakeOscars(clock)) as url``.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.types import Scope

from controller.providers.tests.faulty import WAITS, Faults, Wire
from controller.providers.tests.faulty import running as serving
from controller.providers.tests.oscars_json import connection, l2vpn, of_l2vpn
from controller.providers.tests.oscars_network import DEVICES, PORTS, fitting, free_on, paths
from controller.providers.tests.oscars_rules import (
    Bare500,
    CircuitRequest,
    NotThere,
    Oscars,
    OscarsCircuit,
    Rules,
    Waiting,
)
from controller.providers.tokens import claims

TOKEN = "a-token-of-nobody"  # noqa: S105 - it opens nothing


@dataclass
class FakeOscars:
    """A server and what may be done to it."""

    clock: Callable[[], float] = time.time
    rules: Rules = field(default_factory=Rules)
    token: str = TOKEN
    stranger: str = "token-of-someone-without-group"
    groupless: str = "token-without-a-groups-claim"

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.reset()

    def reset(self) -> None:
        """Forget everything, faults too."""
        self.ahead_s = 0.0
        self.requests: list[str] = []
        self.creates: list[str] = []  # the names that came by POST
        self.oscars = Oscars(lambda: self.clock() + self.ahead_s, self.rules)
        self.faults = Faults()

    @property
    def faults(self) -> Faults:
        """What goes wrong now."""
        return self._faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._faults = faults
        self.oscars.fail_deployment, self.oscars.lie = faults.fail_deployment, faults.lie
        self.oscars.fail_commit = faults.fail_commit

    def app(self) -> Callable[..., Any]:
        """The ASGI application."""
        return Wire(self, _routes(self))

    def turned_away(self, scope: Scope, fault: Faults) -> Response | None:
        """The answer to who may not come in, or not now."""
        path, given = scope["path"], dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        if path.startswith("/protected/") and (status := self._status_for(given)):
            return _bare_500(path) if status == 500 else Response(status_code=status)
        if self.oscars.now_s() < self.oscars.starting_until_s:
            return Response(status_code=503)
        if fault.status == 500:
            return _bare_500(path)
        return Response(status_code=fault.status) if fault.status else None

    def _status_for(self, token: str) -> int:
        """The status for who comes with a token: its end, then its claim of groups, then the groups."""
        if token in {self.token, self.stranger, self.groupless}:
            return {self.token: 0, self.stranger: 403, self.groupless: 500}[token]
        said = claims(token)
        if not said or said.get("exp", 0) <= self.clock() + self.ahead_s:
            return 401
        if "groups" not in said:
            return 500
        return 0 if "svc_oscars_user" in said["groups"] else 403

    def altered(self, scope: Scope) -> Response | None:
        """A 500 without a body, while the topology is read anew: what was asked is done all the same."""
        every_s, now_s = self.rules.refresh_every_s, self.clock() + self.ahead_s
        return Response(status_code=500) if every_s and now_s % every_s < self.rules.refresh_s else None


def _bare_500(path: str) -> JSONResponse:
    """Spring's default error page, without the message."""
    page = {"timestamp": 1_767_225_600_000, "status": 500, "error": "Internal Server Error", "path": path}
    return JSONResponse(page, 500)


def _routes(fake: FakeOscars) -> FastAPI:
    """All that is answered."""
    app = FastAPI(openapi_url=None)
    app.add_exception_handler(Bare500, lambda request, _: _bare_500(request.url.path))
    app.add_exception_handler(NotThere, lambda *_: Response(status_code=404))
    app.add_exception_handler(Waiting, lambda *_: Response(status_code=WAITS))
    for add in (_l2vpn_api, _classic_api, _modify_api):
        add(app, fake)
    return app


async def _json(request: Request) -> dict[str, Any]:
    """The JSON of a request."""
    try:
        return dict(json.loads(await request.body()))
    except ValueError:
        raise Bare500 from None


def _l2vpn_api(app: FastAPI, fake: FakeOscars) -> None:
    """L2VPN API v2."""

    @app.get("/api/l2vpn/get/{name}")
    async def get(name: str) -> Any:
        return l2vpn(fake.oscars.find(name))

    @app.post("/api/l2vpn/validate")
    async def validate_new(request: Request) -> Any:
        return _validity(fake.oscars, of_l2vpn(await _json(request)), modify=False)

    @app.put("/api/l2vpn/validate")
    async def validate_replacement(request: Request) -> Any:
        return _validity(fake.oscars, of_l2vpn(await _json(request)), modify=True)

    @app.post("/protected/l2vpn/new")
    @app.put("/protected/l2vpn/replace")
    async def create(request: Request) -> Any:
        asked = of_l2vpn(await _json(request))
        fake.creates += [asked.name] if request.method == "POST" else []
        asked.name, asked.username = asked.name or fake.oscars.new_name(), "headway"
        return l2vpn(fake.oscars.create_or_replace(asked))

    @app.delete("/protected/l2vpn/release/{name}")
    async def release(name: str) -> Any:
        fake.oscars.release(name)
        return Response()


def _classic_api(app: FastAPI, fake: FakeOscars) -> None:
    """What the L2VPN API has not: paths, holds, and whether a token is good."""

    @app.get("/protected/ping")
    async def ping() -> Any:
        return Response("pong")

    @app.post("/api/pce/paths")
    async def found(request: Request) -> Any:
        body = await _json(request)
        include, ends = body["include"], (body["a"], body["z"])
        if len(include) < 2 or (include[0], include[-1]) != ends or not set(ends) <= set(DEVICES) or ends[0] == ends[1]:
            return Response(status_code=400)
        span = body["interval"]["beginning"], body["interval"]["ending"]
        fake.oscars.now_s()
        return _ways(ends, body, lambda urn: fake.oscars.available_mbps(urn, *span, ""))

    @app.get("/api/topo/baseline")
    async def baseline() -> Any:
        return {urn: _rates(fake.oscars.baseline_mbps(urn)) for urn in PORTS}

    @app.post("/api/topo/available")
    async def available(request: Request) -> Any:
        body = await _json(request)
        span = body["beginning"], body["ending"]
        fake.oscars.now_s()
        return {urn: _rates(fake.oscars.available_mbps(urn, *span, "")) for urn in PORTS}

    @app.get("/protected/held/clear/{name}")
    async def clear(name: str) -> Any:
        fake.oscars.held.pop(name, None)
        return Response()


def _rates(mbps: int) -> dict[str, Any]:
    """What a port has, or has free."""
    vlans = {"vlanRanges": [{"floor": 2, "ceiling": 4094}], "vlanExpression": "2:4094"}
    return {**vlans, "ingressBandwidth": mbps, "egressBandwidth": mbps}


def _ways(ends: tuple[str, str], body: dict[str, Any], free: Callable[[str], int]) -> dict[str, Any]:
    """Ways between two devices, by what they are good for; null where there is none."""
    ways = paths(*ends, tuple(body["include"]), frozenset(body["exclude"]))
    chosen = {
        "shortest": ways[0] if ways else None,
        "fits": fitting(ways, body["azBw"], free),
        "widestSum": max(ways, key=lambda way: free_on(way, free), default=None),
    }
    shown: dict[str, Any] = {"evaluated": len(ways)}
    for kind, way in chosen.items():
        hops = [{"urn": urn} for urn in way or ()]
        rates = {"azAvailable": free_on(way, free), "zaAvailable": free_on(way, free)} if way else {}
        shown[kind] = {"azEro": hops, "zaEro": hops[::-1], **rates} if way else None
    return shown


def _validity(oscars: Oscars, asked: CircuitRequest, *, modify: bool) -> dict[str, Any]:
    """The only place where a reason is given."""
    problems = oscars.problems(asked, modify=modify)
    return {"valid": not problems, "message": "".join(f"{problem}\n" for problem in problems)}


def _modify_api(app: FastAPI, fake: FakeOscars) -> None:
    """Changes of what is reserved."""

    @app.post("/protected/modify/schedule")
    async def schedule(request: Request) -> Any:
        body = await _json(request)
        if body["type"] != "END":
            why = "modifying start time is not allowed at this point"
            return {"success": False, "explanation": why, "connection": None}
        return modified(*fake.oscars.modify_schedule(body["connectionId"], body["timestamp"]))

    @app.post("/protected/modify/bandwidth")
    async def bandwidth(request: Request) -> Any:
        body = await _json(request)
        return modified(*fake.oscars.modify_bandwidth(body["connectionId"], body["bandwidth"]))

    def modified(circuit: OscarsCircuit, why: str) -> dict[str, Any]:
        shown = connection(circuit)
        return {"success": not why, "explanation": why or "Modification successful", "connection": shown}


@contextmanager
def running(fake: FakeOscars) -> Iterator[str]:
    """Serve one, and give the URL."""
    with serving(fake.app()) as url:
        yield url
