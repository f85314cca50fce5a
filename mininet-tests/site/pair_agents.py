"""Hosts' agents as a pair of controllers hears them: a stream to each, the highest epoch is obeyed, leases run out.

All of them are one process of their own: who asks the controllers waits for the interpreter with none of them.
"""

import asyncio
import contextlib
import random
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

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
from topology.telemetry import EntryTelemetry, Telemetry

TELLS_EVERY_S = 1.0
LOOKS_EVERY_S = 0.05
ANSWERS_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class SeenAgent:
    """What one has done so far.

    Attributes:
        host: whose.
        by: which controller said what it obeys; -1 before one has.
        epoch: what it obeys.
        calls_all: whether it has a stream to each controller.
        left_ms: how long its lease holds.
        fallbacks: how often a lease has run out.
        obeyed_s: when a later epoch than the one asked about was obeyed first, of ``time.monotonic``; None if none was.
        waited_s: by allocation that has waited for demand, from when it was said until the plan's rate was there.
    """

    host: str
    by: int
    epoch: int
    calls_all: bool
    left_ms: int
    fallbacks: int
    obeyed_s: float | None
    waited_s: dict[str, float]


@dataclass(slots=True)
class PairAgent:
    """One host's. It keeps to the rules of the real one, and has no kernel.

    Attributes:
        host: whose.
        addresses: where the controllers listen for agents.
        tls: what it shows and whom it believes; None for a port without TLS.
        epoch: what it obeys.
        renewed_s: when that was said last, of ``time.monotonic``.
        obeyed_s: by epoch, when it was obeyed first.
        by: which controller said it.
        fallbacks: how often a lease has run out.
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
    wants: bool = False
    waited_s: dict[str, float] = field(default_factory=dict)
    _said_s: dict[str, float] = field(default_factory=dict)
    _lease_s: float = 0.0
    _entries: tuple[Allocation, ...] = ()
    _streams: dict[int, ClientConnection] = field(default_factory=dict)

    def seen(self, epoch: int) -> SeenAgent:
        """Return what it has done, and when it obeyed a later epoch than this one first."""
        obeyed_s = min((at_s for known, at_s in self.obeyed_s.items() if known > epoch), default=None)
        calls_all = len(self._streams) == len(self.addresses)
        return SeenAgent(
            self.host, self.by, self.epoch, calls_all, self.left_ms, self.fallbacks, obeyed_s, dict(self.waited_s)
        )

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
        said: Applied | Declined | None = None
        try:
            while True:
                told = parsed_allocations(await stream.recv(decode=False))
                answer = await self._heard(number, told)
                if answer is not None and answer != said:  # of a renewal the agent says nothing either
                    await stream.send(to_bytes(answer), text=True)
                    said = answer
                for demand in self._demands(told) if self.wants else ():
                    await stream.send(to_bytes(demand), text=True)
        finally:
            telling.cancel()

    async def _tell(self, stream: ClientConnection) -> None:
        with contextlib.suppress(OSError, WebSocketException):
            while True:
                entries = tuple(EntryTelemetry(held.name, 0, 0, 0, 0, 0, 0) for held in self._entries)
                await stream.send(to_bytes(Telemetry(self.epoch, self.left_ms, entries)), text=True)
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
    """How late the agents' process was at most: what it hears by then is as late, whoever said it in time."""

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


class CallingAgents:
    """Agents that call, as their process says. One thread asks."""

    def __init__(self, asks: Connection) -> None:
        """Ask over this pipe."""
        self._asks = asks

    def seen(self, since: Mapping[str, int] | None = None) -> tuple[SeenAgent, ...]:
        """Return what all have done so far.

        Args:
            since: by host, the epoch after which it is asked when one was obeyed; any, if it is not given.

        Raises:
            RuntimeError: their process does not answer, or has ended.
        """
        found: tuple[SeenAgent, ...] = self._asked(dict(since or {}))
        return found

    def late_s(self) -> float:
        """Return how late their process was at most since this was asked last, s.

        Raises:
            RuntimeError: it does not answer, or has ended.
        """
        found: float = self._asked(None)
        return found

    @property
    def fallbacks(self) -> int:
        """How often leases of theirs have run out."""
        return sum(agent.fallbacks for agent in self.seen())

    def obey(self, number: int, term: int) -> bool:
        """Return whether all obey a controller, by its number, since it leads under a term, and call every one."""
        first = 2 * term - 1
        return all(agent.by == number and agent.calls_all and agent.epoch >= first for agent in self.seen())

    def _asked(self, question: dict[str, int] | None) -> Any:
        try:
            self._asks.send(question)
            if self._asks.poll(ANSWERS_WITHIN_S):
                return self._asks.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError("the agents' process has ended") from error
        self._asks.close()  # an answer that comes yet is not the next question's
        raise RuntimeError(f"the agents' process does not answer within {ANSWERS_WITHIN_S:g} s")


async def _stay(agents: Sequence[PairAgent], asked: Connection) -> None:
    """Call all controllers, and answer how agents do, until nobody asks any more or an agent fails."""
    loop, late = asyncio.get_running_loop(), Lateness()
    over: asyncio.Future[None] = loop.create_future()

    def answer() -> None:
        try:
            since = asked.recv()
        except EOFError:
            loop.remove_reader(asked.fileno())
            over.set_result(None)
        else:
            asked.send(late.taken() if since is None else tuple(one.seen(since.get(one.host, -1)) for one in agents))

    loop.add_reader(asked.fileno(), answer)
    calls = (agent.stay(number) for agent in agents for number in range(len(agent.addresses)))
    fails = asyncio.gather(late.watch(), *calls)
    await asyncio.wait((fails, over), return_when=asyncio.FIRST_COMPLETED)
    fails.cancel()  # one that has failed already stays so, and is raised
    with contextlib.suppress(asyncio.CancelledError):
        await fails


def _be(agents: Sequence[PairAgent], asks: Connection, asked: Connection) -> None:
    asks.close()  # the end of who asks is then the end of ours
    asyncio.run(_stay(agents, asked))


@contextlib.contextmanager
def calling(agents: Sequence[PairAgent]) -> Iterator[CallingAgents]:
    """Let agents call all controllers until the end.

    Raises:
        RuntimeError: at the end, one of them has failed.
    """
    asks, asked = get_context("fork").Pipe()
    process = get_context("fork").Process(target=_be, args=(agents, asks, asked), name="agents")
    process.start()
    asked.close()
    try:
        yield CallingAgents(asks)
    finally:
        asks.close()
        process.join(10)
        process.kill()
        process.join()
    if process.exitcode:
        raise RuntimeError(f"the agents' process ended with {process.exitcode}")
