"""An OSCARS 1.2 to test against: real HTTP on this machine, a clock that is set by hand, faults on demand.

``with running(FakeOscars(clock)) as url``.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from controller.providers.tests.oscars_json import connection, l2vpn, of_l2vpn
from controller.providers.tests.oscars_network import DEVICES, fitting, paths
from controller.providers.tests.oscars_rules import (
    Bare500,
    CircuitRequest,
    NotThere,
    Oscars,
    OscarsCircuit,
    Rules,
    Waiting,
)

_WAITS = 599  # inside the stand-in: nobody is there any more when the answer comes
TOKEN = "a-token-of-nobody"  # noqa: S105 - it opens nothing


@dataclass
class Faults:
    """What goes wrong with requests whose "METHOD /path" begins with ``only``, ``times`` times (None: until changed).

    Attributes:
        status: answered instead, without acting; 500 is OSCARS' own, others come without a word.
        drop: "before" acting or "after" it the connection breaks without an answer.
        slow_s: the answer is that late, after acting.
        answer: the body that is sent instead of the true one, after acting.
        fail_deployment: nothing can be built.
        fail_commit: ``new`` and ``replace`` break down half way, with what they hold in place.
        lie: what changes something answers as if it had, and has not.
        refresh: the topology is being read anew: acted upon, and then a 500 without a body.
    """

    only: str = ""
    times: int | None = None
    status: int = 0
    drop: str = ""
    slow_s: float = 0
    answer: str | None = None
    fail_deployment: bool = False
    fail_commit: bool = False
    lie: bool = False
    refresh: bool = False


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
        return _Wire(self, _routes(self))

    def fault_of(self, request: str) -> Faults:
        """What goes wrong with one request; counts it."""
        faults = self.faults
        if not request.startswith(faults.only) or faults.times == 0:
            return Faults()
        if faults.times is not None:
            faults.times -= 1
        return faults


class _Wire:
    """Everything that happens to a request before anybody looks at what it asks for."""

    def __init__(self, fake: FakeOscars, routes: FastAPI):
        self._fake = fake
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or do not."""
        if scope["type"] != "http":
            return await self._routes(scope, receive, send)
        request = f"{scope['method']} {scope['path']}"
        self._fake.requests.append(request)
        fault = self._fake.fault_of(request)
        if fault.drop == "before":
            return await _drop(receive)
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        early = self._turned_away(scope, fault)
        await (early or self._routes)(scope, receive, hold)
        if fault.drop == "after" or any(message.get("status") == _WAITS for message in held):
            return await _drop(receive)
        if fault.refresh:
            return await Response(status_code=500)(scope, receive, send)
        await asyncio.sleep(fault.slow_s)
        if fault.answer is not None:
            return await Response(fault.answer, media_type="application/json")(scope, receive, send)
        for message in held:
            await send(message)
        return None

    def _turned_away(self, scope: Scope, fault: Faults) -> Response | None:
        """The answer to who may not come in, or not now."""
        path, given = scope["path"], dict(scope["headers"]).get(b"authorization", b"").decode()
        if path.startswith("/protected/") and given == f"Bearer {self._fake.stranger}":
            return Response(status_code=403)
        if path.startswith("/protected/") and given == f"Bearer {self._fake.groupless}":
            return _bare_500(path)
        if path.startswith("/protected/") and given != f"Bearer {self._fake.token}":
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        if self._fake.oscars.now_s() < self._fake.oscars.starting_until_s:
            return Response(status_code=503)
        if fault.status == 500:
            return _bare_500(path)
        return Response(status_code=fault.status) if fault.status else None


async def _drop(receive: Receive) -> None:
    """Break the connection; uvicorn hands it to nobody, but this is its method."""
    receive.__self__.transport.abort()  # type: ignore[attr-defined]
    await receive()


def _bare_500(path: str) -> JSONResponse:
    """Spring's default error page, without the message."""
    page = {"timestamp": 1_767_225_600_000, "status": 500, "error": "Internal Server Error", "path": path}
    return JSONResponse(page, 500)


def _routes(fake: FakeOscars) -> FastAPI:
    """All that is answered."""
    app = FastAPI(openapi_url=None)
    app.add_exception_handler(Bare500, lambda request, _: _bare_500(request.url.path))
    app.add_exception_handler(NotThere, lambda *_: Response(status_code=404))
    app.add_exception_handler(Waiting, lambda *_: Response(status_code=_WAITS))
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
        ways = paths(*ends, frozenset(body["exclude"]))
        fits = fitting(ways, body["azBw"], lambda urn: fake.oscars.available_mbps(urn, *span, ""))
        shown = {"evaluated": len(ways)}
        for kind, way in (("shortest", ways[0] if ways else None), ("fits", fits)):
            shown[kind] = way and {"azEro": [{"urn": urn} for urn in way], "zaEro": [{"urn": urn} for urn in way[::-1]]}
        return shown

    @app.get("/protected/held/clear/{name}")
    async def clear(name: str) -> Any:
        fake.oscars.held.pop(name, None)
        return Response()


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


def _server(fake: FakeOscars) -> uvicorn.Server:
    """The HTTP server, quiet."""
    return uvicorn.Server(uvicorn.Config(fake.app(), log_level="critical", lifespan="off", timeout_graceful_shutdown=0))


@contextmanager
def running(fake: FakeOscars) -> Iterator[str]:
    """Serve from a thread, and give the URL; connections wait in the socket until it is ready."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = _server(fake)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="oscars")
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
