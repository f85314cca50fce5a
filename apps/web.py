"""REST's port: uvicorn in a thread, with the limits that it does not have itself (decision 24)."""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from apps.joined import Joined
from apps.web_server import BoundedServer
from controller.northbound.access import LOCAL
from controller.northbound.proxies import Proxied, Proxies, is_named
from controller.security.connections import Guest, Limits, OpenConnections, counted_as
from controller.security.listening import cannot_listen, listening_at
from controller.security.tls import Credentials, ServerTls, shown_client, shown_serial
from controller.settings.listen import ListenAddress
from topology.addresses import unmapped

MOST_LIMITS = Limits()
STRANGERS = logging.getLogger("uvicorn.error.strangers")  # uvicorn has a line for each request that is none
BACKLOG = 1024  # connections that wait to be accepted


@contextlib.contextmanager
def web(
    app: ASGIApp,
    address: ListenAddress,
    limits: Limits = MOST_LIMITS,
    *,
    tls: ServerTls | None = None,
    proxies: Proxies = (),
    local: socket.socket | None = None,
) -> Iterator[int]:
    """Serve the API in a thread; the port is bound before this yields it.

    Raises:
        OSError: the address is taken or not ours, or a file of ``tls`` is wrong.
    """
    STRANGERS.setLevel(logging.ERROR)
    credentials = Credentials(tls, ssl.TLSVersion.TLSv1_2) if tls else None
    try:
        bound = listening_at(address.bare_host, address.port, BACKLOG)
    except OSError as error:
        raise cannot_listen("REST, listen.rest,", address, error) from error
    open_ones = OpenConnections[Guest](limits.connections, limits.of_one_address)
    served = partial(BoundedProtocol, limits, open_ones, proxies)
    config = uvicorn.Config(
        Proxied(app, proxies),
        http=cast("type[asyncio.Protocol]", served),  # whatever makes one will do
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # Proxied believes those that are named; uvicorn would all of this machine
        timeout_keep_alive=limits.idle_s,
    )
    server = BoundedServer(config, open_ones, limits, proxies, credentials)
    server.local = local
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="web", daemon=True)
    thread.start()
    try:
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(timeout=5)
        bound.close()


class TooManyFields(Exception):
    """A head with more fields than a request may have."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which counts bytes and seconds of what comes. HTTP is read by its parser alone."""

    def __init__(
        self, limits: Limits, connections: OpenConnections[Guest], proxies: Proxies, *args: Any, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.logger = STRANGERS
        self._limits = limits
        self._all = connections
        self._proxies = proxies
        self._client_name: str | None = None
        self.is_local = False  # it has come by the socket of this machine
        self.serial = 0  # of the certificate that was shown
        self.instead_of: Guest | None = None  # the handshake that counted until now
        self._reading: Literal["head", "body", ""] = "head"
        self._read_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None

    @property
    def gives_way(self) -> bool:
        """Whether no whole request is here that waits for its answer."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first, whatever its declaration says
        return cycle is None or cycle.response_complete or cycle.more_body

    def end(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        """Take a connection in; another one may have to give way to it, or it itself."""
        super().connection_made(cast("asyncio.Transport", Joined(transport, self.loop)))
        if self.client is not None:
            self.client = (unmapped(self.client[0]), self.client[1])
        self._wait("head", self._limits.head_s)
        shown = transport.get_extra_info("peercert")
        self.serial, self._client_name = shown_serial(shown), shown_client(shown)
        if self.instead_of is not None:
            self._all.went(self.instead_of)
        leaves = self._all.came(self, self._network())
        if leaves is not None:
            leaves.end()

    def _network(self) -> str:
        """Return whose connections count together with this one; of a proxy each is somebody else's."""
        host, port = self.client or ("", 0)
        return f"{host}:{port}" if is_named(host, self._proxies) else counted_as(host)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._all.went(self)
        self._wait("", None)
        self._watch_unsent(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Give the parser what has come, unless it is more than a request may have."""
        was_reading, self._read_bytes = self._reading, self._read_bytes + len(data)
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._all.heard(self)
        if self._reading == "" and self.gives_way:  # empty lines between requests, for which no head has begun
            self._wait("head", self._limits.head_s)
        if self._reading == was_reading:
            most_bytes = self._limits.head_bytes if was_reading == "head" else self._limits.message_bytes
            if self._read_bytes > most_bytes:
                self._turn_away("The request is too large.")

    def on_message_begin(self) -> None:
        """Note that a head begins."""
        super().on_message_begin()
        if self._client_name is not None:
            self.scope["extensions"] = {"tls": {"client_cert_name": self._client_name}}
        if self.is_local:
            self.scope["extensions"] = {LOCAL: {}}
        self._read_bytes = 0
        self._wait("head", self._limits.head_s)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a field of the head.

        Raises:
            TooManyFields: the parser stops there, and uvicorn answers 400.
        """
        if len(self.headers) > self._limits.fields:
            raise TooManyFields
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Note that a body begins, if the head is not too large as it is."""
        fields = self.headers
        if len(fields) > self._limits.fields or len(self.url) + _size_bytes(fields) > self._limits.head_bytes:
            self._turn_away("The head of the request is too large.")
            return
        self._wait("body", self._limits.body_s)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the request is here, whole."""
        self._wait("", None)
        if self.cycle is not None:
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        """Pass a piece of a body on, unless the request was turned away."""
        if not self.transport.is_closing():
            super().on_body(body)

    def pause_writing(self) -> None:
        """Look whether what is sent is taken, now that much of it waits."""
        super().pause_writing()
        self._watch_unsent(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop looking: it was taken."""
        super().resume_writing()
        self._watch_unsent(None)

    def _watch_unsent(self, unsent_bytes: int | None) -> None:
        """End the connection if in a while still as much of an answer waits; None for no watch."""
        if self._stuck is not None:
            self._stuck.cancel()
        self._stuck = None
        if unsent_bytes is not None:
            self._stuck = self.loop.call_later(self._limits.stuck_s, self._look_again, unsent_bytes)

    def _look_again(self, unsent_bytes: int) -> None:
        now_bytes = self.transport.get_write_buffer_size()
        if now_bytes >= unsent_bytes:
            self.transport.abort()
        else:
            self._watch_unsent(now_bytes)

    def _wait(self, part: Literal["head", "body", ""], most_s: float | None) -> None:
        """Give the other end so many seconds for a part of a request; None for as long as it likes."""
        self._reading = part
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if most_s is None else self.loop.call_later(most_s, self._too_slow)

    def _too_slow(self) -> None:
        self.transport.abort()

    def _turn_away(self, why: str) -> None:
        if not self.transport.is_closing():
            self.send_400_response(why)


def _size_bytes(fields: list[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) + 4 for name, value in fields)  # a colon, a space, CR and LF
