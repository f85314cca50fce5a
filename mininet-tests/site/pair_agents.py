"""Hosts' agents as a pair of controllers hears them: a stream to each, the highest epoch is obeyed, leases run out."""

import asyncio
import contextlib
import random
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from hostagent.agent.staying import backoff_s
from topology.protocol import (
    ATTACH_PATH,
    Allocation,
    Allocations,
    Applied,
    Declined,
    Demand,
    Hello,
    parsed_allocations,
    to_bytes,
)
from topology.telemetry import Telemetry

TELLS_EVERY_S = 1.0
LOOKS_EVERY_S = 0.05


@dataclass(slots=True)
class PairAgent:
    """One host's. It keeps to the rules of the real one, and has no kernel. All of them are one thread's.

    Attributes:
        host: whose.
        addresses: where the controllers listen for agents.
        tls: what it shows and whom it believes; None for a port without TLS.
        epoch: what it obeys.
        renewed_s: when that was said last, of ``time.monotonic``.
        obeyed_s: by epoch, when it was obeyed first.
        by: which controller said it.
        fallbacks: how often a lease has run out.
        went_back: epochs that were obeyed after a higher one; there must be none.
        wants: whether it has at once to send what waits for demand.
        waited_s: by allocation that has waited for demand, from when it was said until the plan's rate was there.
    """

    host: str
    addresses: tuple[str, ...]
    tls: ssl.SSLContext | None = None
    epoch: int = 0
    renewed_s: float = 0.0
    obeyed_s: dict[int, float] = field(default_factory=dict)
    by: int = -1
    fallbacks: int = 0
    went_back: int = 0
    wants: bool = False
    waited_s: dict[str, float] = field(default_factory=dict)
    _said_s: dict[str, float] = field(default_factory=dict)
    _lease_s: float = 0.0
    _entries: tuple[Allocation, ...] = ()
    _streams: dict[int, ClientConnection] = field(default_factory=dict)

    def obeyed_after(self, epoch: int) -> float | None:
        """Return when an epoch above this one was obeyed first, of ``time.monotonic``; None if none was."""
        return min((at_s for known, at_s in tuple(self.obeyed_s.items()) if known > epoch), default=None)

    def calls_all(self) -> bool:
        """Return whether it has a stream to each controller."""
        return len(self._streams) == len(self.addresses)

    async def stay(self, number: int) -> None:
        """Call a controller, again and again as the real one does, and tell it each second what is obeyed."""
        failures, address = 0, f"ws{'s' if self.tls else ''}://{self.addresses[number]}{ATTACH_PATH}"
        while True:
            failures += 1
            with contextlib.suppress(OSError, WebSocketException, EOFError, TimeoutError):
                async with connect(
                    address,
                    ssl=self.tls,
                    proxy=None,
                    compression=None,
                    open_timeout=2,
                    close_timeout=0.1,
                    ping_interval=None,
                ) as stream:
                    failures = 0
                    await self._serve(number, stream)
            self._streams.pop(number, None)
            await asyncio.sleep(backoff_s(failures, random.random()))

    async def _serve(self, number: int, stream: ClientConnection) -> None:
        self._streams[number] = stream
        await stream.send(to_bytes(self._hello()), text=True)
        telling = asyncio.create_task(self._tell(stream))
        try:
            while True:
                told = parsed_allocations(await stream.recv(decode=False))
                answer = await self._heard(number, told)
                if answer is not None:
                    await stream.send(to_bytes(answer), text=True)
                for demand in self._demands(told) if self.wants else ():
                    await stream.send(to_bytes(demand), text=True)
        finally:
            telling.cancel()

    async def _tell(self, stream: ClientConnection) -> None:
        with contextlib.suppress(OSError, WebSocketException):
            while True:
                await stream.send(to_bytes(Telemetry(self.epoch, self.left_ms)), text=True)
                await asyncio.sleep(TELLS_EVERY_S)

    @property
    def left_ms(self) -> int:
        """How long its lease holds, ms."""
        return max(0, round((self.renewed_s + self._lease_s - time.monotonic()) * 1000))

    def _hello(self) -> Hello:
        left_ms = self.left_ms
        held = self._entries if left_ms else ()
        return Hello(self.host, "0", "6.12", self.epoch if held else 0, left_ms, held)

    def _demands(self, told: Allocations) -> Iterator[Demand]:
        """Yield that it wants what waits for demand, once; note when it has that."""
        for entry in told.entries:
            said_s = self._said_s.get(entry.name)
            if entry.standby_bps == entry.rate_bps and said_s is None:
                self._said_s[entry.name] = time.monotonic()
                yield Demand(told.epoch, entry.name, wants=True, standing_by=False)
            elif said_s is not None and entry.standby_bps != entry.rate_bps:
                self.waited_s.setdefault(entry.name, time.monotonic() - said_s)

    async def _heard(self, number: int, told: Allocations) -> Applied | Declined | None:
        """Obey a message, or not."""
        now_s, left_ms = time.monotonic(), self.left_ms
        if self._entries and not left_ms:
            self.fallbacks += 1
            self._entries = ()
        if not told.epoch:
            return None
        if told.epoch < self.epoch:
            return Declined(told.epoch, self.epoch, "older")
        is_news = told.epoch != self.epoch
        self.went_back += bool(self.obeyed_s) and told.epoch < max(self.obeyed_s)
        self.epoch, self.renewed_s, self._lease_s = told.epoch, now_s, told.lease_ms / 1000
        self._entries, self.by = told.entries, number
        self.obeyed_s.setdefault(told.epoch, now_s)
        if is_news:
            for other, stream in tuple(self._streams.items()):
                if other != number:
                    with contextlib.suppress(OSError, WebSocketException):
                        await stream.send(to_bytes(self._hello()), text=True)
        return Applied(told.epoch)


@dataclass(slots=True)
class Lateness:
    """How late the agents' thread was at most: what it hears by then is as late, whoever said it in time."""

    worst_s: float = 0.0

    async def watch(self) -> None:
        """Look again and again."""
        while True:
            due_s = time.monotonic() + LOOKS_EVERY_S
            await asyncio.sleep(LOOKS_EVERY_S)
            self.worst_s = max(self.worst_s, time.monotonic() - due_s)

    def taken(self) -> float:
        """Return how late it was since this was asked last, s."""
        found, self.worst_s = self.worst_s, 0.0
        return found


@contextlib.contextmanager
def calling(agents: Sequence[PairAgent]) -> Iterator[Lateness]:
    """Let agents call all controllers, in a thread, until the end."""
    loop, late = asyncio.new_event_loop(), Lateness()

    async def stay() -> None:
        calls = (agent.stay(number) for agent in agents for number in range(len(agent.addresses)))
        await asyncio.gather(late.watch(), *calls)

    calls = loop.create_task(stay())

    def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(calls)

    thread = threading.Thread(target=run, name="agents", daemon=True)
    thread.start()
    try:
        yield late
    finally:
        loop.call_soon_threadsafe(calls.cancel)
        thread.join(10)
        if not thread.is_alive():
            loop.close()
