"""Who uses a controller while its database has a fault: an agent, people who look, and one who reserves."""

import contextlib
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Self

import httpx
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from topology.protocol import ATTACH_PATH, Hello, parsed_allocations, to_bytes
from topology.telemetry import Telemetry

READS = ("/healthz", "/v1/reservations", "/v1/announcements", "/v1/plan", "/v1/hosts", "/metrics")
EVERY_S = 0.2
PATIENCE_S = 30.0  # longer than the controller may make anybody wait


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody was told.

    Attributes:
        asked_s: when, ``time.monotonic``.
        took_s: how long it took.
        path: what was asked.
        status: of the answer; 0 if there was none.
        retry_after: its ``Retry-After``.
        name: of the reservation that was made.
    """

    asked_s: float
    took_s: float
    path: str
    status: int
    retry_after: str | None = None
    name: str = ""

    def covers(self, other: "Answer") -> bool:
        """Return whether another question was asked and answered while this one waited for its answer."""
        return self.asked_s < other.asked_s and other.asked_s + other.took_s < self.asked_s + self.took_s


@dataclass(slots=True)
class Users:
    """They work side by side from ``with`` on until its end.

    Attributes:
        rest: the controller's REST API.
        agents: where agents call.
        renewed_s: when the host's lease was renewed, ``time.monotonic``.
        lease_s: how long that holds.
        reads: what the one who looks was told.
        writes: what the one who reserves was told.
        failures: what nobody has foreseen.
    """

    rest: str
    agents: str
    renewed_s: list[float] = field(default_factory=list)
    lease_s: float = 0.0
    reads: list[Answer] = field(default_factory=list)
    writes: list[Answer] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _end: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Let them begin."""
        for work in (self._renew, self._look, self._reserve):
            thread = threading.Thread(target=self._noting, args=(work,), daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let them end."""
        self._end.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def longest_without_renewal_s(self, since_s: float) -> float:
        """Return the longest time between two renewals, from one moment until now."""
        times = [since_s, *(at_s for at_s in self.renewed_s if at_s > since_s), time.monotonic()]
        return max(later - earlier for earlier, later in pairwise(times))

    def _noting(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the top of a thread: the test is told
            self.failures.append(f"{type(error).__name__}: {error}")

    def _renew(self) -> None:
        """Be the agent of a host, which tells each half second what it counts."""
        with connect(f"ws://{self.agents}{ATTACH_PATH}", proxy=None, compression=None, legacy=True) as stream:
            stream.send(to_bytes(Hello("base20", "0", "6.12", 0)))
            epoch, told_s = 0, time.monotonic()
            while not self._end.is_set():
                with contextlib.suppress(TimeoutError):
                    told = parsed_allocations(stream.recv(timeout=EVERY_S, decode=False))
                    epoch, self.lease_s = told.epoch, told.lease_ms / 1000
                    self.renewed_s.append(time.monotonic())
                if time.monotonic() - told_s > 0.5:
                    stream.send(to_bytes(Telemetry(epoch, 1000)))
                    told_s = time.monotonic()
            with contextlib.suppress(WebSocketException):
                stream.close()

    def _look(self) -> None:
        with httpx.Client(base_url=self.rest, timeout=PATIENCE_S) as client:
            while not self._end.wait(EVERY_S):
                self.reads += [_asked(client, "GET", path) for path in READS]

    def _reserve(self) -> None:
        number = 0
        with httpx.Client(base_url=self.rest, timeout=PATIENCE_S) as client:
            while not self._end.wait(EVERY_S / 4):
                number += 1
                start = time.time() + 3600 + number * 100
                body = {
                    "from": "la-serena",
                    "to": "champaign",
                    "class": "urgent",
                    "rate_bps": 1_000_000,
                    "start": datetime.fromtimestamp(start, UTC).isoformat(),
                    "duration_s": 60,
                    "hold_s": 3600,
                    "description": "x" * 200,  # so that a full disk is soon noticed
                }
                key = {"Idempotency-Key": uuid.uuid4().hex}
                self.writes.append(_asked(client, "POST", "/v1/reservations", json=body, headers=key))


def _asked(client: httpx.Client, method: str, path: str, **more: object) -> Answer:
    began_s = time.monotonic()
    try:
        answer = client.request(method, path, **more)  # type: ignore[arg-type]
    except httpx.TransportError:
        return Answer(began_s, time.monotonic() - began_s, path, 0)
    name = answer.json()["id"] if answer.status_code == 201 else ""
    took_s = time.monotonic() - began_s
    return Answer(began_s, took_s, path, answer.status_code, answer.headers.get("Retry-After"), name)
