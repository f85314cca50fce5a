"""A controller that speaks the agents' protocol to one agent and keeps what it hears."""

import contextlib
import queue
import ssl
import threading
import time
from pathlib import Path
from typing import Any, TypeVar

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve, unix_serve

from topology.protocol import Allocations, Applied, Demand, UpMessage, parsed_from_agent, to_bytes
from topology.telemetry import EntryTelemetry, Telemetry

T = TypeVar("T")
REPEAT_S = 0.3


class PatientConnection(ServerConnection):
    """A connection that hears what came together with a goodbye.

    (The package answers a goodbye before it passes on what came with it, and passes on nothing if the other end is
    gone by then, as an agent is that has said what it declines.)
    """

    def send_data(self) -> None:
        """Send what there is; that nobody is there any more is noticed by who reads."""
        with contextlib.suppress(OSError):
            super().send_data()


class FakeController:
    """A WebSocket server at a path, plain; or at a port of 127.0.0.1, with TLS if there is a context for it."""

    def __init__(self, where: Path | int, context: ssl.SSLContext | None = None) -> None:
        self.address = f"127.0.0.1:{where}" if isinstance(where, int) else f"unix:{where}"
        self.heard: list[UpMessage] = []
        self.applied_at_s: dict[int, float] = {}
        self.sent_at_s: dict[int, float] = {}
        self.demand_at_s: dict[Demand, float] = {}  # when each was heard first
        self._where = where
        self._context = context
        self._outbox: queue.SimpleQueue[Allocations | None] = queue.SimpleQueue()
        self._repeated: Allocations | None = None
        self._server: Server | None = None
        self.start()

    def start(self) -> None:
        how: dict[str, Any] = {"compression": None, "close_timeout": 1, "create_connection": PatientConnection}
        if isinstance(self._where, int):
            self._server = serve(self._attach, "127.0.0.1", self._where, ssl=self._context, **how)
        else:
            self._where.unlink(missing_ok=True)
            self._server = unix_serve(self._attach, str(self._where), **how)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def send(self, message: Allocations) -> None:
        self._outbox.put(message)

    def stop(self) -> None:
        self._outbox.put(None)
        if self._server is not None:
            self._server.shutdown()
        self._outbox = queue.SimpleQueue()

    def all_of(self, kind: type[T]) -> list[T]:
        return [message for message in self.heard if isinstance(message, kind)]

    def applied(self, epoch: int) -> bool:
        return Applied(epoch) in self.heard

    def demand(self, name: str) -> Demand | None:
        """What was said of an entry last."""
        told = [demand for demand in self.all_of(Demand) if demand.name == name]
        return told[-1] if told else None

    def entry(self, name: str) -> EntryTelemetry | None:
        """The newest counters of one allocation."""
        told = self.all_of(Telemetry)
        return next((e for e in told[-1].entries if e.name == name), None) if told else None

    def ended(self, name: str) -> EntryTelemetry | None:
        """The last counts of one allocation that is over; they are told for a few seconds."""
        told = [one for message in self.all_of(Telemetry) for one in message.ended if one.name == name]
        return told[-1] if told else None

    def _attach(self, connection: ServerConnection) -> None:
        outbox = self._outbox
        ended = threading.Event()
        threading.Thread(target=self._read, args=(connection, ended), daemon=True).start()
        with contextlib.suppress(ConnectionClosed):
            while not ended.is_set():
                try:
                    following = outbox.get(timeout=REPEAT_S)
                except queue.Empty:
                    following = self._repeated
                    if following is None:
                        continue
                if following is None:
                    return
                self._repeated = following
                self.sent_at_s.setdefault(following.epoch, time.monotonic())
                connection.send(to_bytes(following), text=True)

    def _read(self, connection: ServerConnection, ended: threading.Event) -> None:
        try:
            for data in connection:
                message = parsed_from_agent(data if isinstance(data, bytes) else data.encode())
                self.heard.append(message)
                if isinstance(message, Demand):
                    self.demand_at_s.setdefault(message, time.monotonic())
                if isinstance(message, Applied):
                    self.applied_at_s.setdefault(message.epoch, time.monotonic())
        except ConnectionClosed:
            pass
        finally:
            ended.set()
