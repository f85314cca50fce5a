"""What strangers do to a controller's ports, each thing beside a client that works: its latency, memory, answers, log.

All of it is on loopback; the strangers have an address of their own (127.0.0.2), the client that works a process.
Who is cut off counts as cut off, and goes on with another connection while the attack lasts.
"""

import argparse
import asyncio
import contextlib
import itertools
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from mininet_tests.bench.smuggled import FORMS
from mininet_tests.site.running import Running, running
from mininet_tests.testing.aims import Aim, at_most, stated
from mininet_tests.testing.reports import write_report

STRANGER = "127.0.0.2"
SLOWER_MS, GROWN_BYTES = 50.0, 50 * 10**6
MOST_SENT_BYTES = 8 << 20  # by one stranger on one connection
PIECE = 64 << 10


@dataclass(slots=True)
class Met:
    """What strangers have met.

    Attributes:
        statuses: how often each answer came.
        opened: connections that were made.
        cut: those that the controller ended.
        sent_bytes: what it took of them.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    opened: int = 0
    cut: int = 0
    sent_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: so many strangers at once, each of whom says something and then goes on saying more.

    Attributes:
        name: as it is reported.
        strangers: how many there are.
        says: at first.
        more: again and again, until cut off; empty for silence.
        port: of ``listen`` in the configuration.
    """

    name: str
    strangers: int
    says: bytes
    more: bytes = b""
    port: str = "rest"


HEAD = b"GET /v1/topology HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/reservations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def attacks(many: int) -> tuple[Attack, ...]:
    """Return all attacks; ``many`` strangers in the largest."""
    few, half = max(8, many // 100), max(8, many // 10)
    return (
        Attack("idle connections", many, b""),
        Attack("half heads", many, HEAD + b"X-Slow"),
        Attack("header bombs", few, HEAD, b"X-Bomb: " + b"a" * PIECE + b"\r\n"),
        Attack("many header lines", few, HEAD, b"a:b\r\n" * (PIECE // 5)),
        Attack("endless body", few, POST + b"Content-Length: 99999999999\r\n\r\n", b" " * PIECE),
        Attack(
            "endless chunks", few, POST + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * PIECE + b"\r\n"
        ),
        Attack("bodies that never come", half, POST + b"Content-Length: 100\r\n\r\n"),
        Attack("event listeners", 2 * many, b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        Attack("half TLS handshakes", half, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        Attack("agents' port, silent", half, b"", port="agents"),
        Attack("switches' port, silent", half, b"", port="openflow"),
        Attack("switches' port, no OpenFlow", few, b"\xff" * 64, b"\x00" * PIECE, port="openflow"),
    )


async def _stranger(attack: Attack, at: tuple[str, int], heard: Met, until_s: float) -> None:
    """Be one stranger until the time is over."""
    while time.monotonic() < until_s:
        writer = None
        try:
            reader, writer = await asyncio.open_connection(*at, local_addr=(STRANGER, 0))
            heard.opened += 1
            await asyncio.wait_for(_spoken(attack, reader, writer, heard), until_s - time.monotonic())
            heard.cut += 1
        except TimeoutError:
            return
        except OSError:
            heard.cut += writer is not None
        finally:
            if writer is not None:
                writer.transport.abort()
        await asyncio.sleep(1.0)  # who is cut off comes again, but not as fast as the machine can


async def _spoken(attack: Attack, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Met) -> None:
    """Say what is to be said on one connection, until the other end has had enough."""
    listening = asyncio.ensure_future(_listened(reader, heard))
    try:
        writer.write(attack.says)
        sent = 0
        while attack.more and sent < MOST_SENT_BYTES and not listening.done():
            writer.write(attack.more)
            await writer.drain()
            sent += len(attack.more)
            heard.sent_bytes += len(attack.more)
            await asyncio.sleep(0)
        await listening
    finally:
        listening.cancel()


async def _listened(reader: asyncio.StreamReader, heard: Met) -> None:
    """Count the statuses of what is answered, to the end."""
    while data := await reader.read(PIECE):
        heard.statuses.update(int(code) for code in re.findall(rb"HTTP/1\.[01] (\d{3}) ", data))


async def _smuggle(at: tuple[str, int], heard: Met, until_s: float) -> None:
    """Send each form in its turn, on a connection of its own, and count what is answered."""
    for form in itertools.cycle(FORMS):
        if time.monotonic() >= until_s:
            return
        reader, writer = await asyncio.open_connection(*at, local_addr=(STRANGER, 0))
        heard.opened += 1
        with contextlib.suppress(OSError, TimeoutError):
            writer.write(form)
            await asyncio.wait_for(_listened(reader, heard), 0.5)
        writer.transport.abort()


async def _honest(at: tuple[str, int], until_s: float) -> tuple[list[float], int]:
    """Ask every 20 ms, on one connection as long as it lasts; return the times, ms, and how many were not answered."""
    times_ms: list[float] = []
    failed, stream = 0, None
    while time.monotonic() < until_s:
        began_s = time.monotonic()
        try:
            stream = stream or await asyncio.open_connection(*at)
            stream[1].write(HEAD + b"\r\n")
            head = await asyncio.wait_for(stream[0].readuntil(b"\r\n\r\n"), 10)
            size = re.search(rb"(?i)content-length: (\d+)", head)
            await stream[0].readexactly(int(size[1]) if size else 0)
            failed += b" 200 " not in head.partition(b"\r\n")[0]
            times_ms.append((time.monotonic() - began_s) * 1e3)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            failed, stream = failed + 1, None
        await asyncio.sleep(0.02)
    if stream is not None:
        stream[1].transport.abort()
    return times_ms, failed


def _asking(at: tuple[str, int], seconds: float) -> tuple[list[float], int]:
    """Be the honest client, in a process of its own: no stranger's work delays it."""
    return asyncio.run(_honest(at, time.monotonic() + seconds))


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def p99(times_ms: list[float]) -> float | None:
    """Return the time that one in a hundred is above."""
    return round(sorted(times_ms)[len(times_ms) * 99 // 100], 1) if times_ms else None


async def _beside(
    pool: Pool,
    controller: Running,
    rest: tuple[str, int],
    seconds: float,
    *strangers: Callable[[float], Awaitable[None]],
) -> dict[str, Any]:
    """Return what the honest client saw beside some strangers, and what memory was at most."""
    pid = controller.pid
    until_s, most = time.monotonic() + seconds, 0
    crowd = [asyncio.ensure_future(stranger(until_s)) for stranger in strangers]
    client = asyncio.get_running_loop().run_in_executor(None, pool.apply, _asking, (rest, seconds))
    while time.monotonic() < until_s:
        most = max(most, resident_bytes(pid))
        await asyncio.sleep(0.1)
    times_ms, failed = await client
    await asyncio.gather(*crowd, return_exceptions=True)
    return {"asked": len(times_ms), "p99_ms": p99(times_ms), "not_answered": failed, "resident_bytes": most}


async def _all(
    pool: Pool, controller: Running, many: int, seconds: float, say: Callable[[str], None]
) -> dict[str, Any]:
    listen = yaml.safe_load(controller.config.read_text())["listen"]
    ports = {
        name: (parts.hostname or "", parts.port or 0) for name in listen for parts in [urlsplit(f"//{listen[name]}")]
    }
    rest = ports["rest"]
    await _beside(pool, controller, rest, 1)  # the first requests take longer
    alone = await _beside(pool, controller, rest, seconds)
    found: dict[str, Any] = {}
    for attack in (*attacks(many), None):
        name = attack.name if attack else f"{len(FORMS)} smuggling forms"
        strangers = attack.strangers if attack else 1
        say(f"{name}: {strangers} strangers for {seconds:g} s")
        heard = Met()
        be = partial(_stranger, attack, ports[attack.port], heard) if attack else partial(_smuggle, rest, heard)
        seen = await _beside(pool, controller, rest, seconds, *[be] * strangers)
        statuses = {str(code): count for code, count in sorted(heard.statuses.items())}
        met = {"opened": heard.opened, "cut": heard.cut, "sent_bytes": heard.sent_bytes, "statuses": statuses}
        found[name] = {"strangers": strangers, **seen, **met}
    say("alone again")
    return {"alone": alone, "attacks": found, "after": await _beside(pool, controller, rest, seconds)}


def aims(seen: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    alone, found = seen["alone"], seen["attacks"]
    stated_ones: dict[str, Aim] = {}
    for name, one in found.items():
        slower = None if one["p99_ms"] is None else round(one["p99_ms"] - alone["p99_ms"], 1)
        stated_ones[f"{name}: p99 above undisturbed, ms"] = at_most(slower, SLOWER_MS)
        stated_ones[f"{name}: honest requests not answered"] = at_most(one["not_answered"], 0)
    most = max(one["resident_bytes"] for one in found.values())
    faults = sum(count for one in found.values() for code, count in one["statuses"].items() if code >= "500")
    stated_ones["memory, most beside undisturbed, bytes"] = at_most(most - alone["resident_bytes"], GROWN_BYTES)
    stated_ones["answers of 5xx"] = at_most(faults, 0)
    stated_ones["tracebacks in the log"] = at_most(seen["tracebacks"], 0)
    return stated_ones


def measured(many: int, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Return what a controller of its own went through."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * many + 1_000)), hard))
    with tempfile.TemporaryDirectory() as name, running(Path(name), f"sqlite:///{name}/headway.db") as controller:
        with get_context("spawn").Pool(1) as pool:
            seen = asyncio.run(_all(pool, controller, many, seconds, say))
        log = controller.config.with_suffix(".log").read_text(errors="replace")
        seen["tracebacks"] = log.count("Traceback")
        seen["traceback"] = log[max(0, log.find("Traceback") - 300) :][:3_000] if seen["tracebacks"] else ""
    return {"many": many, "seconds": seconds, **seen}


def main() -> None:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/hostile"), help="folder (default: %(default)s)")
    parser.add_argument(
        "--many", type=int, default=5_000, help="strangers in the largest attacks (default: %(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each attack lasts (default: %(default)s)")
    asked = parser.parse_args()
    seen = measured(asked.many, asked.seconds, lambda text: print(f"hostile: {text}", file=sys.stderr, flush=True))
    report = {**seen, **stated(aims(seen))}
    write_report(asked.out, report)
    print("| attack | strangers | p99 | memory | cut off | answers |\n|---|---|---|---|---|---|")
    rows = {"nobody": seen["alone"], **seen["attacks"], "nobody, afterwards": seen["after"]}
    for name, one in rows.items():
        answers = ", ".join(f"{code}: {count}" for code, count in one.get("statuses", {}).items())
        memory = f"{one['resident_bytes'] / 1e6:.0f} MB"
        print(
            f"| {name} | {one.get('strangers', 0)} | {one['p99_ms']} ms | {memory} | {one.get('cut', 0)} | {answers} |"
        )
    print(f"falls short: {', '.join(report['falls_short']) or 'nothing'}\nwritten: {asked.out / 'report.json'}")


if __name__ == "__main__":
    main()
