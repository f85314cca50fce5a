"""Strangers at a controller's ports: what each says, how often it comes again, and what it is answered.

They have an address of their own, 127.0.0.2. Who is cut off counts as cut off, and goes on with another connection.
"""

import asyncio
import contextlib
import itertools
import os
import re
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection

from mininet_tests.bench.smuggled import FORMS

STRANGER = "127.0.0.2"
MOST_SENT_BYTES = 8 << 20  # by one stranger on one connection
PIECE = 64 << 10
AGAIN_S = 1.0  # who is cut off comes again, but not as fast as the machine can
BEHIND = 15  # steps of priority: a 28th of the controller's share, and as much as anybody else on a busy machine
NOBODY = 65_534  # the user "nobody" of Debian
AT_ONCE = 64  # connections that are being made: more handshakes of one process would time out at its own hands


@dataclass(slots=True)
class Met:
    """What strangers have met.

    Attributes:
        statuses: how often each answer came.
        opened: connections that were made.
        cut: those that the controller ended.
        sent_bytes: what it took of them.
        refused: how often no connection was made at all.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    opened: int = 0
    cut: int = 0
    sent_bytes: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: so many strangers at once, each of whom says something and then goes on saying more.

    Attributes:
        name: as it is reported.
        strangers: how many there are.
        says: at first, or one after the other, each on a connection of its own.
        more: again and again, until cut off; empty for silence.
        port: of ``listen`` in the configuration.
        by_tls: whether it is said by TLS, if the port speaks it.
        user: who it is, on this machine.
        asks: whether it waits for each answer, and then asks again.
        gets: what shows that strangers came as far as they can: "in", "answered", "cut off" (an answer is lost where
            the end of a connection overtakes it), or "nowhere" if none may come in.
    """

    name: str
    strangers: int
    says: bytes | tuple[bytes, ...] = b""
    more: bytes = b""
    port: str = "rest"
    by_tls: bool = True
    user: int = 0
    asks: bool = False
    gets: str = "in"

    def got(self, met: Met) -> int:
        """Return how many strangers came as far as they can."""
        came = {"answered": met.statuses.total(), "cut off": met.cut}
        return came.get(self.gets, met.opened)


HEAD = b"GET /v1/topology HTTP/1.1\r\nHost: localhost\r\n"
LOUD = b"GET /v1/reservations?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /v1/reservations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # the beginning of a ClientHello
OPENFLOW_HELLO = bytes.fromhex("0400000800000001")


def rest_attacks(many: int) -> tuple[Attack, ...]:
    """Return those on REST; ``many`` strangers in the largest."""
    few, half = max(8, many // 100), max(8, many // 10)
    chunks = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    return (
        Attack("idle connections", many, by_tls=False),
        Attack("half heads", many, HEAD + b"X-Slow"),
        Attack("header bombs", few, HEAD, b"X-Bomb: " + b"a" * PIECE + b"\r\n", gets="cut off"),
        Attack("many header lines", few, HEAD, b"a:b\r\n" * (PIECE // 5), gets="cut off"),
        Attack("endless body", few, POST + b"Content-Length: 99999999999\r\n\r\n", b" " * PIECE, gets="cut off"),
        Attack("endless chunks", few, chunks, b"10000\r\n" + b" " * PIECE + b"\r\n", gets="cut off"),
        Attack("bodies that never come", half, POST + b"Content-Length: 100\r\n\r\n"),
        Attack("event listeners", 2 * many, b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n", gets="answered"),
        Attack("one large GET again and again", 4, LOUD, asks=True, gets="answered"),
        Attack("half TLS handshakes", half, HELLO, by_tls=False),
        Attack(f"{len(FORMS)} smuggling forms", 1, FORMS, gets="answered"),
    )


def other_attacks(many: int) -> tuple[Attack, ...]:
    """Return those on the other ports."""
    few, half = max(8, many // 100), max(8, many // 10)
    return (
        Attack("silent connections", half, port="agents", by_tls=False),
        Attack("half TLS handshakes", half, HELLO, port="agents", by_tls=False),
        Attack(
            "no hello", half, b"GET /headway/agents HTTP/1.1\r\nHost: localhost\r\n\r\n", port="agents", gets="cut off"
        ),
        Attack("silent connections", half, port="openflow", by_tls=False),
        Attack("half TLS handshakes", half, HELLO, port="openflow", by_tls=False),
        Attack("half OpenFlow handshakes", half, OPENFLOW_HELLO, port="openflow"),
        Attack("no OpenFlow", few, b"\xff" * 64, b"\x00" * PIECE, port="openflow", gets="cut off"),
    )


def socket_attacks(many: int) -> tuple[Attack, ...]:
    """Return those on REST's socket of the machine."""
    return (
        Attack("another user of the machine", max(8, many // 10), port="rest_socket", user=NOBODY, gets="nowhere"),
        Attack("idle connections of its own user", max(8, many // 10), port="rest_socket"),
    )


def trusting_anybody() -> ssl.SSLContext:
    """Return the context of a stranger who does not care whom he talks to."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@dataclass(frozen=True, slots=True)
class Door:
    """Where strangers come.

    Attributes:
        at: address and port, or a path.
        context: of TLS, None for plain text.
    """

    at: tuple[str, int] | str
    context: ssl.SSLContext | None

    async def opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection."""
        if isinstance(self.at, str):
            return await asyncio.open_unix_connection(self.at)
        return await asyncio.open_connection(*self.at, local_addr=(STRANGER, 0), ssl=self.context)


async def _stranger(attack: Attack, door: Door, met: Met, until_s: float, making: asyncio.Semaphore) -> None:
    """Be one stranger until the time is over."""
    for says in itertools.cycle(attack.says if isinstance(attack.says, tuple) else (attack.says,)):
        if time.monotonic() >= until_s:
            return
        writer = None
        try:
            async with making:
                reader, writer = await asyncio.wait_for(door.opened(), until_s - time.monotonic())
            met.opened += 1
            patience_s = 0.5 if isinstance(attack.says, tuple) else until_s - time.monotonic()
            spoken = (
                _asked(says, reader, writer, met) if attack.asks else _spoken(says, attack.more, reader, writer, met)
            )
            await asyncio.wait_for(spoken, patience_s)
            met.cut += 1
        except TimeoutError:
            continue
        except (OSError, EOFError):
            met.cut += writer is not None
            met.refused += writer is None
        finally:
            if writer is not None:
                writer.transport.abort()
        if not isinstance(attack.says, tuple):
            await asyncio.sleep(AGAIN_S)


async def _spoken(
    says: bytes, more: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, met: Met
) -> None:
    """Say what is to be said on one connection, until the other end has had enough."""
    listening = asyncio.ensure_future(_listened(reader, met))
    try:
        writer.write(says)
        sent = 0
        while more and sent < MOST_SENT_BYTES and not listening.done():
            writer.write(more)
            await writer.drain()
            sent += len(more)
            met.sent_bytes += len(more)
            await asyncio.sleep(0)
        await listening
    finally:
        listening.cancel()


async def _asked(says: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, met: Met) -> None:
    """Ask again and again, as fast as it is answered."""
    while True:
        writer.write(says)
        met.statuses[(await answered(reader))] += 1


async def answered(reader: asyncio.StreamReader) -> int:
    """Return the status of an answer that was read to its end.

    Raises:
        EOFError: the other end has hung up before.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    size = re.search(rb"(?i)content-length: (\d+)", head)
    await reader.readexactly(int(size[1]) if size else 0)
    return int(head.split(b" ", 2)[1])


async def _listened(reader: asyncio.StreamReader, met: Met) -> None:
    """Count the statuses of what is answered, to the end."""
    while data := await reader.read(PIECE):
        met.statuses.update(int(code) for code in re.findall(rb"HTTP/1\.[01] (\d{3}) ", data))


async def _crowd(attack: Attack, door: Door, seconds: float) -> Met:
    met, until_s, making = Met(), time.monotonic() + seconds, asyncio.Semaphore(AT_ONCE)
    crowd = (_stranger(attack, door, met, until_s, making) for _ in range(attack.strangers))
    await asyncio.gather(*crowd, return_exceptions=True)
    return met


def _be(attack: Attack, at: tuple[str, int] | str, is_tls: bool, seconds: float, told: Connection) -> None:
    """Be a crowd, in a process of its own, behind the controller: strangers have machines of their own."""
    os.nice(BEHIND)
    if attack.user:
        os.setgroups([])
        os.setuid(attack.user)
    door = Door(at, trusting_anybody() if is_tls and attack.by_tls else None)
    told.send(asyncio.run(_crowd(attack, door, seconds)))


@contextlib.contextmanager
def crowd(attack: Attack, at: tuple[str, int] | str, *, is_tls: bool, seconds: float) -> Iterator[Connection]:
    """Have the strangers of an attack; what is given receives what they have met."""
    ours, theirs = get_context("fork").Pipe()
    process = get_context("fork").Process(target=_be, args=(attack, at, is_tls, seconds, theirs))
    process.start()
    try:
        yield ours
    finally:
        process.join(30)
        process.kill()
        process.join()
