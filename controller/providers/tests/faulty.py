"""HTTP servers of stand-ins: on this machine, with faults on demand. ``with running(app) as url``."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import uvicorn
from fastapi.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

WAITS = 599  # inside a stand-in: nobody is there any more when the answer comes


@dataclass
class Faults:
    """What goes wrong with requests whose "METHOD /path" begins with ``only``, ``times`` times (None: until changed).

    Attributes:
        status: answered instead, without acting; 500 is OSCARS' own, others come without a word but ``answer``.
        drop: "before" acting or "after" it the connection breaks without an answer.
        slow_s: the answer is that late, after acting.
        answer: the body that is sent instead of the true one, after acting.
        fail_deployment: nothing can be built.
        fail_commit: ``new`` and ``replace`` break down half way, with what they hold in place.
        lie: what changes something answers as if it had, and has not.
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

    def of(self, request: str) -> "Faults":
        """What goes wrong with one request; counts it."""
        if not request.startswith(self.only) or self.times == 0:
            return Faults()
        if self.times is not None:
            self.times -= 1
        return self


class StandIn(Protocol):
    """What is served."""

    requests: list[str]
    faults: Faults

    def turned_away(self, scope: Scope, fault: Faults) -> Response | None:
        """The answer to who may not come in, or not now."""

    def altered(self, scope: Scope) -> Response | None:
        """The answer in place of that to what was carried out."""


class Wire:
    """Everything that happens to a request before anybody looks at what it asks for."""

    def __init__(self, fake: StandIn, routes: ASGIApp):
        self._fake = fake
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or do not."""
        if scope["type"] != "http":
            return await self._routes(scope, receive, send)
        request = f"{scope['method']} {scope['path']}"
        self._fake.requests.append(request)
        fault = self._fake.faults.of(request)
        if fault.drop == "before":
            return await _drop(receive)
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        early = self._fake.turned_away(scope, fault)
        await (early or self._routes)(scope, receive, hold)
        if fault.drop == "after" or any(message.get("status") == WAITS for message in held):
            return await _drop(receive)
        await asyncio.sleep(fault.slow_s)
        if (instead := self._fake.altered(scope)) is not None:
            return await instead(scope, receive, send)
        if fault.answer is not None:
            said = Response(fault.answer, fault.status or 200, media_type="application/json")
            return await said(scope, receive, send)
        for message in held:
            await send(message)
        return None


async def _drop(receive: Receive) -> None:
    """Break the connection; uvicorn hands it to nobody, but this is its method."""
    receive.__self__.transport.abort()  # type: ignore[attr-defined]
    await receive()


@contextmanager
def running(app: Callable[..., Any], port: int = 0) -> Iterator[str]:
    """Serve from a thread, and give the URL; connections wait in the socket until it is ready."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=0)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="stand-in")
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
