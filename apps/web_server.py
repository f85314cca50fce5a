"""Before REST's port: uvicorn's server, which is given connections that are counted and whose handshake is done.

uvicorn takes in all that wait at once, while nobody else has a turn; it cannot bound a handshake's time, counts a
connection after it only, and keeps the certificate that it began with. So connections are accepted here, a few at a
time and so many a second of an address, and each is given to asyncio with the files as they are at that moment.
"""

import asyncio
import socket
import ssl
from functools import partial
from typing import Any, cast

import structlog
import uvicorn

from apps.web_local import LocalServer
from controller.northbound.proxies import Proxies, is_named
from controller.security.connections import Guest, Limits, OpenConnections, counted_as
from controller.security.rates import Rates
from controller.security.said import SaidSeldom
from controller.security.tls import Credentials
from topology.protocol import SAID_AGAIN_S

LOOK_S = 1.0  # how often it is looked whether a file has changed
AT_ONCE = 8  # connections accepted before others have their turn
BURST_US = 500_000  # of which an address may connect at once
PAUSE_S = 0.1  # after one that could not be accepted, such as for want of file descriptors

log = structlog.get_logger()


class Handshake:
    """A connection whose handshake is under way; it counts as one, and gives way like one that asks for nothing."""

    gives_way = True

    def __init__(self, connected: socket.socket) -> None:
        self.connected = connected
        self.task: asyncio.Task[None] | None = None
        self.has_begun = False

    def end(self) -> None:
        """End the connection at once."""
        if self.task is not None:
            self.task.cancel()


class BoundedServer(LocalServer):
    """uvicorn's server, in plain text or behind TLS."""

    def __init__(
        self,
        config: uvicorn.Config,
        connections: OpenConnections[Guest],
        limits: Limits,
        proxies: Proxies = (),
        credentials: Credentials | None = None,
    ) -> None:
        """Take what uvicorn takes.

        Args:
            config: uvicorn's.
            connections: those that are open.
            limits: how often an address may connect, and how long a handshake may take.
            proxies: those that are named, whose connections are somebody else's.
            credentials: the files of TLS, of this server's thread alone from now on; None for plain text.
        """
        super().__init__(config)
        self._credentials = credentials
        self._open = connections
        self._proxies = proxies
        self._handshake_s = limits.handshake_s if credentials else None
        per_s = limits.handshakes_per_s if credentials else limits.connections_per_s
        self._rates = Rates.monotonic(per_s, BURST_US)
        self._handshakes: set[asyncio.Task[None]] = set()
        self._said = SaidSeldom(SAID_AGAIN_S)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        await super().startup([])
        loop = asyncio.get_running_loop()
        for bound in sockets or ():
            bound.setblocking(False)
            loop.add_reader(bound, self._accept, bound)
        self._look()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and end all."""
        for bound in sockets or ():
            asyncio.get_running_loop().remove_reader(bound)
        for task in self._handshakes:
            task.cancel()
        await super().shutdown(sockets)

    def _accept(self, bound: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(AT_ONCE):
            try:
                connected, peer = bound.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("rest.accept_failed", error=error.strerror)  # noqa: TRY400
                loop.remove_reader(bound)
                loop.call_later(PAUSE_S, loop.add_reader, bound, self._accept, bound)
                return
            host = str(peer[0])
            is_proxy = is_named(host, self._proxies)
            if not is_proxy and self._rates.wait_us(counted_as(host)):
                connected.close()
                self._say(host, "connects too often")
                continue
            connected.setblocking(False)
            one = Handshake(connected)
            one.task = loop.create_task(self._shake(one, host))
            one.task.add_done_callback(partial(self._shaken, one))
            self._handshakes.add(one.task)
            leaves = self._open.came(one, f"{host}:{peer[1]}" if is_proxy else counted_as(host))
            if leaves is not None:
                leaves.end()

    def _shaken(self, one: Handshake, task: asyncio.Task[None]) -> None:
        self._handshakes.discard(task)
        self._open.went(one)
        if not one.has_begun:  # ended before asyncio has heard of it
            one.connected.close()

    async def _shake(self, one: Handshake, peer: str) -> None:
        """Shake hands, and hand the connection to uvicorn's protocol."""
        one.has_begun = True
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                partial(self._protocol, one),
                one.connected,
                ssl=self._credentials.context if self._credentials else None,
                ssl_handshake_timeout=self._handshake_s,
            )
        except ssl.SSLCertVerificationError as error:
            self._say(peer, error.verify_message)
        except OSError:
            return  # it hung up, took too long, or does not speak TLS: as strangers do

    def _protocol(self, one: Handshake) -> asyncio.Protocol:
        make = cast("Any", self.config.http_protocol_class)
        made = make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        made.instead_of = one
        return cast("asyncio.Protocol", made)

    def _say(self, peer: str, why: str) -> None:
        """Log who was turned away; the same of the same address once a minute."""
        if self._said.is_first(counted_as(peer), why, asyncio.get_running_loop().time()):
            log.warning("rest.untrusted", peer=peer, why=why)

    def _look(self) -> None:
        """Take files that have changed into use, and end the connections of certificates revoked meanwhile."""
        loop = asyncio.get_running_loop()
        loop.call_later(LOOK_S, self._look)
        for again in self._said.over(loop.time()):
            log.warning("rest.untrusted", peer=again.network, why=again.why, again=again.times)
        try:
            if self._credentials is None or not self._credentials.refreshed():
                return
        except OSError as error:
            log.error("tls.unusable", port="rest", error=str(error))  # noqa: TRY400
            return
        log.info("tls.read", port="rest")
        connections: list[Any] = list(self.server_state.connections)
        for each in connections:
            if each.serial in self._credentials.revoked:
                log.warning("rest.revoked", serial=f"{each.serial:x}")
                each.end()
