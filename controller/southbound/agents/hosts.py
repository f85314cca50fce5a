"""Host agents: one WebSocket each, allocations down, confirmations and telemetry up.

One thread serves them all: a message is made once and handed to the socket, and nobody waits for an agent that is slow.
"""

import asyncio
import contextlib
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import structlog
from websockets.frames import CloseCode

from controller.security.connections import OpenConnections, counted_as
from controller.security.listening import cannot_listen
from controller.security.rates import Rates
from controller.security.said import SaidSeldom
from controller.security.tls import Credentials, ServerTls
from controller.southbound.agents.connection import AgentConnection
from controller.southbound.agents.host_listener import HostListener
from controller.southbound.agents.listening import listening
from controller.southbound.agents.slices import in_slices
from controller.southbound.agents.stream import REACTIONS, Reaction, StreamEvent, StreamState
from topology.addresses import shown_peer
from topology.certificates import ENDING_AGAIN_S, ending_days
from topology.protocol import (
    SAID_AGAIN_S,
    SILENT_S,
    Allocations,
    Applied,
    Declined,
    Demand,
    Hello,
    Repaired,
    UpMessage,
    parsed_from_agent,
    to_bytes,
)
from topology.telemetry import Telemetry

RENEWALS_PER_LEASE = 3  # so that one lost or late renewal does not end a lease
EARLIEST_RENEWAL = 0.6  # of the time for one: agents that were told at once are not renewed at once
MAY_AGAIN_S = 0.25  # a renewal that may not be said must not wait for the next: what keeps it may last a moment
HELLO_WITHIN_S = 10.0
LOOK_S = 1.0  # how often the silent and the revoked are looked for
AT_ONCE = 8  # that are let in before others have their turn
MOST, MOST_OF_ONE = 512, 128  # that have not said hello
PER_S, BURST_US = 256, 2_000_000  # connections of an address
UNKNOWN = "not in the topology"

log = structlog.get_logger()


@dataclass(eq=False, slots=True)
class _Session:
    """An agent that has said hello: what it was told last, and when that is said again."""

    hello: Hello
    connection: AgentConnection
    epoch: int
    message: bytes
    renewal: asyncio.TimerHandle | None = None

    @property
    def host(self) -> str:
        """Which host's it is."""
        return self.hello.host


class HostSessions:
    """The port that agents dial, and what each of them is told.

    Without ``tls`` nobody is asked who he is: for the same machine, or for those who have said that they know.
    ``may_tell`` is looked at before each message to a host: while not, its lease runs out. None: it always may.
    ``greeted`` is set when all that :meth:`lead` does is done.
    """

    def __init__(
        self,
        listener: HostListener,
        lease_ms: int,
        tls: ServerTls | None = None,
        may_tell: Callable[[str], bool] | None = None,
    ) -> None:
        self._listener = listener
        self._may_tell = may_tell
        self._lease_ms = lease_ms
        self._renewal_s = lease_ms / 1000 / RENEWALS_PER_LEASE
        self._tls = tls
        self._credentials: Credentials | None = None
        self._connections: dict[AgentConnection, float] = {}  # and since when, in the loop's time
        self._sessions: dict[str, _Session] = {}
        self._by_connection: dict[AgentConnection, _Session] = {}
        self._going_down: deque[tuple[str, Allocations]] = deque()
        self._woken = False
        self._confirmed: list[tuple[str, Applied]] = []  # and not handed over yet
        self._said = SaidSeldom(SAID_AGAIN_S)
        self._rates = Rates.monotonic(PER_S, BURST_US)
        self._guests = OpenConnections[AgentConnection](MOST, MOST_OF_ONE)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agents", daemon=True)
        self._endings_s = self._loop.time() + ENDING_AGAIN_S
        self._socket: socket.socket | None = None
        self.greeted = threading.Event()

    def start(self, address: str) -> None:
        """Listen for agents at ``host:port``, or at ``unix:/path``, where TLS has no part.

        Raises:
            OSError: the port is taken, the address is not ours, or a file of ``tls`` is wrong.
        """
        try:
            self._socket = listening(address)
        except OSError as error:
            raise cannot_listen("agents", address, error) from error
        if self._tls is not None and self._socket.family != socket.AF_UNIX:
            self._credentials = Credentials(self._tls)
        self._socket.setblocking(False)
        self._loop.set_exception_handler(_failed)
        self._loop.add_reader(self._socket, self._accept, self._socket)
        self._loop.call_later(LOOK_S, self._look)
        self._thread.start()

    def stop(self) -> None:
        """End every stream; the agents' leases run out by themselves."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._ended(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        if not self._loop.is_closed():
            self._loop.close()
        if self._socket is not None:
            self._socket.close()

    def send(self, host: str, allocations: Allocations) -> None:
        """Send a host what it may do from now on; nothing if it is not connected. Returns at once."""
        self._going_down.append((host, allocations))
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: we end
                self._loop.call_soon_threadsafe(self._deliver)

    def lead(self) -> None:
        """Greet all agents anew, soon: they have said to one that stood by what they act on, and it leads now.

        Whoever led before may have renewed that until just now.
        """
        in_slices(self._loop, self._sessions.values, self._greet_anew, self.greeted.set)

    def _greet_anew(self, session: _Session) -> None:
        is_here = session is self._sessions.get(session.host)  # it may have gone, or called again
        first = self._listener.host_up(replace(session.hello, lease_left_ms=self._lease_ms)) if is_here else None
        if first is not None:
            session.epoch, session.message = first.epoch, to_bytes(first)
            self._tell(session)

    def _deliver(self) -> None:
        """Send what waits."""
        self._woken = False
        while self._going_down:
            host, allocations = self._going_down.popleft()
            session = self._sessions.get(host)
            # What was on its way while the agent called again is older than what it was told then.
            if session is not None and allocations.epoch >= session.epoch:
                session.epoch, session.message = allocations.epoch, to_bytes(allocations)
                self._tell(session)

    def _tell(self, session: _Session) -> None:
        """Send an agent the current message, and again in time to renew the lease; as soon as may be, if it may not."""
        if session.renewal is not None:
            session.renewal.cancel()
        wait_s = self._renewal_s * random.uniform(EARLIEST_RENEWAL, 1)  # noqa: S311 (spreads load, guards nothing)
        if self._may_tell is None or self._may_tell(session.host):
            session.connection.send(session.message)
        else:
            wait_s = min(wait_s, MAY_AGAIN_S)
        if session.connection in self._by_connection:  # telling it may have ended it
            session.renewal = self._loop.call_later(wait_s, self._tell, session)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, address = listener.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue  # it is gone already
            except OSError as error:  # out of descriptors, as a rule; who waits is taken when there are some again
                log.error("host.lost", why=f"nobody can be let in: {error.strerror}")  # noqa: TRY400
                self._loop.remove_reader(listener)
                self._loop.call_later(LOOK_S, self._loop.add_reader, listener, self._accept, listener)
                return
            if isinstance(address, tuple) and self._rates.wait_us(counted_as(address[0])):
                accepted.close()
                self._say("host.untrusted", shown_peer(address), "connects too often")
                continue
            connection = AgentConnection(self._loop, accepted, shown_peer(address), self)
            self._connections[connection] = self._loop.time()
            connection.start(self._credentials.context if self._credentials else None)
            self._count(connection, address)

    def _count(self, connection: AgentConnection, address: Any) -> None:
        """Count a connection until it has said hello; of one address, or in all, another may have to leave for it."""
        if connection not in self._connections or not isinstance(address, tuple):
            return  # it is gone already, or of this machine
        leaves = self._guests.came(connection, counted_as(address[0]))
        if leaves is not None:
            leaves.end()

    def _reaction(self, connection: AgentConnection, event: StreamEvent) -> Reaction:
        """Return what is done about what happens on a connection."""
        return REACTIONS[StreamState.SESSION if connection in self._by_connection else StreamState.NEW][event]

    def heard(self, connection: AgentConnection, message: bytes) -> None:
        """Take in a message; the first must be the agent's hello."""
        try:
            said = parsed_from_agent(message)
        except ValueError as error:
            self._nonsense(connection, " ".join(str(error).split()))
            return
        event = StreamEvent.HELLO if isinstance(said, Hello) else StreamEvent.REPORT
        match self._reaction(connection, event), said:
            case Reaction.GREET, Hello():
                self._greet(connection, said)
            case Reaction.KEEP, Hello() if said.host == self._by_connection[connection].host:
                self._by_connection[connection].hello = said
                self._listener.host_again(said)
            case Reaction.TAKE, _:
                self._report(self._by_connection[connection].host, said)
            case Reaction.CLOSE, _:
                connection.close(CloseCode.PROTOCOL_ERROR, f"expected hello, got {said.kind}")

    def _nonsense(self, connection: AgentConnection, why: str) -> None:
        """End a connection that says what is not understood."""
        session = self._by_connection.get(connection)
        log.warning("host.nonsense", host=session.host if session else "", peer=connection.peer, error=why)
        if self._reaction(connection, StreamEvent.NONSENSE) is Reaction.CLOSE:
            connection.close(CloseCode.PROTOCOL_ERROR, f"not understood: {why}")

    def _report(self, host: str, said: UpMessage) -> None:
        """Hand a message to who hears of agents; confirmations when all that has come has been read."""
        if isinstance(said, Applied):
            if not self._confirmed:
                self._loop.call_soon(self._hand_over)
            self._confirmed.append((host, said))
            return
        self._hand_over()  # what was said before
        match said:
            case Telemetry():
                self._listener.host_telemetry(host, said)
            case Declined():
                self._listener.host_declined(host, said)
            case Demand():
                self._listener.host_demand(host, said)
            case Repaired():
                self._listener.host_repaired(host, said)

    def _hand_over(self) -> None:
        """Hand the confirmations to who hears of agents."""
        if self._confirmed:
            said, self._confirmed = self._confirmed, []
            self._listener.hosts_applied(said)

    def _greet(self, connection: AgentConnection, hello: Hello) -> None:
        """Let an agent in, if it is the one that its certificate is for, and of a host of ours."""
        if self._credentials is not None and hello.host not in connection.names:
            named = ", ".join(connection.names)
            self._say(
                "host.untrusted",
                connection.peer,
                f"its certificate is for {named or 'nobody'}, not for {hello.host}",
                host=hello.host,
            )
            connection.close(CloseCode.POLICY_VIOLATION, f"your certificate is for {named}, not {hello.host}")
            return
        if self._credentials is not None and connection.serial in self._credentials.revoked:  # since its handshake
            self._turn_out(connection, hello.host)
            return
        first = self._listener.host_up(hello)
        if first is None:
            addresses = " ".join(str(address) for one in hello.interfaces for address in one.addresses)
            self._say("host.refused", connection.peer, UNKNOWN, host=hello.host, addresses=addresses)
            connection.close(CloseCode.POLICY_VIOLATION, f'"{hello.host}" is not a host of this network')
            return
        self._guests.went(connection)
        older = self._sessions.get(hello.host)
        session = _Session(hello, connection, first.epoch, to_bytes(first))
        self._sessions[hello.host] = self._by_connection[connection] = session
        if older is not None:
            log.warning("host.replaced", host=hello.host, peer=connection.peer, before=older.connection.peer)
            older.connection.close(CloseCode.NORMAL_CLOSURE, f"{hello.host} has called again, from {connection.peer}")
        log.info("host.up", host=hello.host, peer=connection.peer, kernel=hello.kernel, version=hello.version)
        _note_ending(session)
        self._tell(session)

    def certificates(self) -> dict[str, float]:
        """Return, by connected host, when its agent's certificate ends, Unix time; any thread may ask."""
        return {host: one.connection.ends_s for host, one in tuple(self._sessions.items()) if one.connection.ends_s}

    def untrusted(self, connection: AgentConnection, why: str) -> None:
        """Say who was turned away before he could say a word."""
        self._say("host.untrusted", connection.peer, why)

    def ended(self, connection: AgentConnection, why: str) -> None:
        """Forget a connection."""
        self._connections.pop(connection, None)
        self._guests.went(connection)
        session = self._by_connection.pop(connection, None)
        if session is None:
            return
        if session.renewal is not None:
            session.renewal.cancel()
        if self._sessions.get(session.host) is session:
            del self._sessions[session.host]
            log.info("host.down", host=session.host, peer=connection.peer, why=why)
            self._listener.host_down(session.host)

    def _look(self) -> None:
        """Look for who is silent, for who is revoked, and once a day for certificates that end soon."""
        self._loop.call_later(LOOK_S, self._look)
        now_s = self._loop.time()
        for connection, since_s in tuple(self._connections.items()):
            if now_s - connection.heard_s > SILENT_S and self._ends_at_once(connection, StreamEvent.SILENT):
                connection.abort(f"silent for {SILENT_S:g} s")
            elif now_s - since_s > HELLO_WITHIN_S and self._ends_at_once(connection, StreamEvent.LATE):
                connection.abort("has not said hello")
        for again in self._said.over(now_s):
            event = "host.refused" if again.why == UNKNOWN else "host.untrusted"
            log.warning(event, peer=again.network, why=again.why, again=again.times)
        if now_s >= self._endings_s:
            self._endings_s = now_s + ENDING_AGAIN_S
            for session in self._sessions.values():
                _note_ending(session)
        if self._credentials is not None:
            self._reread(self._credentials)

    def _ends_at_once(self, connection: AgentConnection, event: StreamEvent) -> bool:
        return self._reaction(connection, event) is Reaction.ABORT

    def _reread(self, credentials: Credentials) -> None:
        """Take files that have changed into use, and end the streams of those that are revoked."""
        try:
            changed = credentials.refreshed()
        except OSError as error:
            log.error("tls.unusable", why=str(error), todo="what was there before is still in use")  # noqa: TRY400
            return
        if not changed:
            return
        log.info("tls.read", revoked=len(credentials.revoked))
        for connection, session in tuple(self._by_connection.items()):
            is_closed = self._reaction(connection, StreamEvent.REVOKED) is Reaction.CLOSE
            if connection.serial in credentials.revoked and is_closed:
                self._turn_out(connection, session.host)

    def _turn_out(self, connection: AgentConnection, host: str) -> None:
        self._say("host.untrusted", connection.peer, "its certificate is revoked", host=host)
        connection.close(CloseCode.POLICY_VIOLATION, "your certificate is revoked")

    def _say(self, event: str, peer: str, why: str, **more: str) -> None:
        """Log a refusal; the same one of the same address once a minute."""
        if self._said.is_first(counted_as(peer.rpartition(":")[0].strip("[]")), why, self._loop.time()):
            log.warning(event, peer=peer, why=why, **more)

    async def _ended(self) -> None:
        """Say goodbye to everybody, and give them a second to answer."""
        assert self._socket is not None  # noqa: S101 (for mypy)
        self._loop.remove_reader(self._socket)
        for connection in tuple(self._connections):
            connection.close(CloseCode.GOING_AWAY, "the controller ends")
        until_s = self._loop.time() + 1
        while self._connections and self._loop.time() < until_s:
            await asyncio.sleep(0.01)
        for connection in tuple(self._connections):
            connection.abort("the controller ends")


def _failed(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say that a callback has failed; the stream it was for ends by its silence."""
    log.error("host.failed", message=context.get("message"), exc_info=context.get("exception"))


def _note_ending(session: _Session) -> None:
    """Say that the certificate that an agent has shown ends soon, if it does."""
    if (days_left := ending_days(session.connection.ends_s, time.time())) is not None:
        log.warning("host.certificate_ending", host=session.host, days_left=days_left)
