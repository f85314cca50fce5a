"""Host agents: one gRPC stream each, allocations down, confirmations and telemetry up."""

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import grpc
import structlog

from topology.protocol import (
    ATTACH_METHOD,
    Allocations,
    Applied,
    Hello,
    Telemetry,
    parsed_from_agent,
    to_bytes,
)

RENEWALS_PER_LEASE = 3  # so that one lost or late renewal does not end a lease
STREAMS_AT_ONCE = 512  # each agent's stream holds one thread

log = structlog.get_logger()


class HostListener(Protocol):
    """Who hears of agents: the service."""

    def host_up(self, hello: Hello) -> Allocations | None:
        """An agent has said hello; return what it may do now, or None if there is no such host."""

    def host_down(self, host: str) -> None:
        """The agent's stream has ended."""

    def host_applied(self, host: str, applied: Applied) -> None:
        """The agent's kernel holds an epoch."""

    def host_telemetry(self, host: str, telemetry: Telemetry) -> None:
        """The agent's counters."""


class HostSessions:
    """The gRPC server that agents dial, and the outbox of each."""

    def __init__(self, listener: HostListener, lease_ms: int) -> None:
        self._listener = listener
        self._renewal_s = lease_ms / 1000 / RENEWALS_PER_LEASE
        self._outboxes: dict[str, queue.SimpleQueue[Allocations | None]] = {}
        self._lock = threading.Lock()
        self._server: Any = None

    def start(self, address: str) -> None:
        """Listen for agents at ``host:port``.

        Raises:
            OSError: the port is taken or the address is not ours.
        """
        self._server = grpc.server(
            ThreadPoolExecutor(STREAMS_AT_ONCE, thread_name_prefix="agent"), options=[("grpc.so_reuseport", 0)]
        )
        service, method = ATTACH_METHOD.lstrip("/").split("/")
        handler = grpc.stream_stream_rpc_method_handler(self._attach)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
        try:
            self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise OSError(f"cannot listen for agents at {address}: {error}") from error
        self._server.start()

    def stop(self) -> None:
        """End every stream; the agents' leases run out by themselves."""
        with self._lock:
            for outbox in self._outboxes.values():
                outbox.put(None)
        if self._server is not None:
            self._server.stop(grace=1).wait()

    def send(self, host: str, allocations: Allocations) -> None:
        """Send a host what it may do from now on; nothing if it is not connected."""
        with self._lock:
            outbox = self._outboxes.get(host)
        if outbox is not None:
            outbox.put(allocations)

    def _attach(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Serve one agent's stream: its hello, then allocations down while a thread reads what comes up."""
        hello = _hello(requests, context)
        first = self._listener.host_up(hello)
        if first is None:
            log.warning("host.refused", host=hello.host, peer=context.peer(), why="not in the topology")
            context.abort(grpc.StatusCode.NOT_FOUND, f'"{hello.host}" is not a host of this network')
            return
        outbox = self._opened(hello.host)
        context.add_callback(lambda: outbox.put(None))
        threading.Thread(target=self._read, args=(hello.host, requests, outbox), daemon=True).start()
        log.info("host.up", host=hello.host, peer=context.peer(), kernel=hello.kernel, version=hello.version)
        try:
            yield from self._downward(outbox, first)
        finally:
            self._closed(hello.host, outbox)

    def _downward(self, outbox: "queue.SimpleQueue[Allocations | None]", current: Allocations) -> Iterator[bytes]:
        """Yield every new message at once, and the current one again in time to renew the lease."""
        yield to_bytes(current)
        while True:
            try:
                following = outbox.get(timeout=self._renewal_s)
            except queue.Empty:
                following = current
            if following is None:
                return
            current = following
            yield to_bytes(current)

    def _opened(self, host: str) -> "queue.SimpleQueue[Allocations | None]":
        """Return a new outbox for a host; an older stream of the same host is ended."""
        outbox: queue.SimpleQueue[Allocations | None] = queue.SimpleQueue()
        with self._lock:
            older = self._outboxes.get(host)
            self._outboxes[host] = outbox
        if older is not None:
            older.put(None)
        return outbox

    def _closed(self, host: str, outbox: "queue.SimpleQueue[Allocations | None]") -> None:
        with self._lock:
            current = self._outboxes.get(host) is outbox
            if current:
                del self._outboxes[host]
        if current:
            log.info("host.down", host=host)
            self._listener.host_down(host)

    def _read(self, host: str, requests: Iterator[bytes], outbox: "queue.SimpleQueue[Allocations | None]") -> None:
        try:
            for request in requests:
                message = parsed_from_agent(request)
                if isinstance(message, Applied):
                    self._listener.host_applied(host, message)
                elif isinstance(message, Telemetry):
                    self._listener.host_telemetry(host, message)
        except grpc.RpcError:
            pass  # the stream is over; the callback has told the outbox
        except ValueError as error:
            log.warning("host.nonsense", host=host, error=str(error))
        outbox.put(None)


def _hello(requests: Iterator[bytes], context: Any) -> Hello:
    """Return an agent's first message, which must be its hello; anything else ends the call here."""
    try:
        message = parsed_from_agent(next(requests))
        if isinstance(message, Hello):
            return message
        problem = f"got {message.kind}"
    except (StopIteration, ValueError) as error:
        problem = str(error)
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"expected hello: {problem}")  # raises
    raise TypeError(problem)
