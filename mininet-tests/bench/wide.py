"""What clients that ask for the widest windows cost a client that works, with 30,000 reservations on the books.

One client reads a reservation, and holds and commits another, again and again. Beside it four others ask for as much
as they can, one request after the other: what is free in a year, all reservations by the longest pages, the calendar.
Times by the client's clock, of a process of its own. What an answer costs, and for how long it holds the lock, is CPU
time in process.
"""

import argparse
import asyncio
import json
import multiprocessing
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from pydantic_core import to_json

from controller.northbound.rest import render_promises
from controller.plan.availability import Question, availability, resources_of
from controller.plan.kept_ledger import KeptLedger
from controller.plan.lifecycle import ReservationState
from mininet_tests.bench.bare_http import BareHttp, reservation
from mininet_tests.bench.reservations import ON_THE_BOOKS, S, booked, filled
from mininet_tests.site.running import running
from mininet_tests.testing.aims import Aim, at_most, stated
from mininet_tests.testing.reports import write_report
from topology.protocol import FlowClass

CLIENTS = 4
BETWEEN_S = 0.01
MOST_MS, MOST_LOCK_MS = 20, 1
T = TypeVar("T")
ENDS = {"from": "la-serena", "to": "champaign"}
MOST_PIECES = 10_000
Times = dict[str, list[float]]


async def work(url: str, until_s: float) -> Times:
    """Return how long a client that works waits for its answers, s: reads, and holds with their commits."""
    http, chance = await BareHttp.to(url), random.Random(1)
    known = json.loads(await http.done(201, "POST", "/v1/reservations", json.dumps(reservation(chance)).encode()))["id"]
    times: Times = {"read": [], "hold": [], "commit": []}
    while time.monotonic() < until_s:
        asked = json.dumps(reservation(chance)).encode()
        began = time.perf_counter()
        await http.done(200, "GET", f"/v1/reservations/{known}")
        read = time.perf_counter()
        held = json.loads(await http.done(201, "POST", "/v1/reservations", asked))["id"]
        hold = time.perf_counter()
        await http.done(200, "POST", f"/v1/reservations/{held}/commit")
        times["commit"].append(time.perf_counter() - hold)
        times["hold"].append(hold - read)
        times["read"].append(read - began)
        await asyncio.sleep(BETWEEN_S)
    http.close()
    return times


async def ask_what_is_free(http: BareHttp) -> int:
    """Ask what is free in the year in which all reservations are, page by page; return the bytes of the longest."""
    now, longest = datetime.now(UTC), 0
    at: str | None = (now + timedelta(seconds=60)).isoformat()
    while at is not None:
        window = ENDS | {"class": "urgent", "start": at, "end": (now + timedelta(days=370)).isoformat()}
        answer = await http.done(200, "GET", f"/v1/availability?{urlencode(window)}")
        said = json.loads(answer)
        longest, at = max(longest, len(answer)), said.get("next")
        if sum(len(way["rates"]) for way in said["paths"]) > MOST_PIECES:
            raise AssertionError("an answer has more pieces than there may be")
    return longest


async def ask_for_lists(http: BareHttp) -> int:
    """Ask for all reservations by the longest pages; return the bytes of the longest."""
    query: dict[str, Any] = {"limit": 1000}
    longest = 0
    while True:
        answer = await http.done(200, "GET", f"/v1/reservations?{urlencode(query)}")
        longest, query["cursor"] = max(longest, len(answer)), json.loads(answer)["next"]
        if query["cursor"] is None:
            return longest


async def ask_for_the_calendar(http: BareHttp) -> int:
    """Ask for the calendar's feed; return its bytes."""
    return len(await http.done(200, "GET", "/v1/calendar.ics"))


ASKED: dict[str, Callable[[BareHttp], Any]] = {
    "what is free in a year": ask_what_is_free,
    "all reservations": ask_for_lists,
    "the calendar": ask_for_the_calendar,
}


async def _asking(url: str, ask: Callable[[BareHttp], Any], until_s: float) -> tuple[int, int]:
    """Ask until the time is over; return how often, and the bytes of the longest answer."""
    http, count, longest = await BareHttp.to(url), 0, 0
    while time.monotonic() < until_s:
        longest = max(longest, await ask(http))
        count += 1
    http.close()
    return count, longest


def working(url: str, seconds: float) -> Times:
    """Run the client that works, in a process of its own."""
    return asyncio.run(work(url, time.monotonic() + seconds))


def asking(url: str, what: str, seconds: float) -> tuple[int, int]:
    """Run the clients that ask for much, in a process of their own; return how often they were answered, how long."""

    async def all_of_them() -> list[tuple[int, int]]:
        until_s = time.monotonic() + seconds
        return await asyncio.gather(*(_asking(url, ASKED[what], until_s) for _ in range(CLIENTS)))

    found = asyncio.run(all_of_them())
    return sum(count for count, _ in found), max(longest for _, longest in found)


def in_process(ledger: KeptLedger, base_us: int) -> dict[str, float]:
    """Return the CPU time of the longest answer about what is free, and what of it others wait for, ms."""
    question = Question(ENDS["from"], ENDS["to"], FlowClass.URGENT, base_us, base_us + 370 * 86_400 * S)
    resources = resources_of(question, ledger.network)
    free, copied_ms = _cpu_ms(lambda: ledger.calendar.free_of(resources))
    answers, looked_ms = _cpu_ms(lambda: availability(question, ledger.network, free))
    _, said_ms = _cpu_ms(lambda: to_json(render_promises.availability(question, None, answers, ledger.network)))
    return {"under_the_lock_ms": round(copied_ms, 3), "answer_ms": round(looked_ms + said_ms, 1)}


def _cpu_ms(work: Callable[[], T]) -> tuple[T, float]:
    """Return what some work returns, and the least CPU time of some calls, ms."""
    times_ns = []
    for _ in range(5):
        began_ns = time.thread_time_ns()
        found = work()
        times_ns.append(time.thread_time_ns() - began_ns)
    return found, min(times_ns) / 1e6


def shown(times: Times) -> dict[str, Any]:
    """Return medians and 99th percentiles, ms."""
    found: dict[str, Any] = {}
    for what, each in times.items():
        ordered = sorted(each)
        found[what] = {
            "count": len(ordered),
            "p50_ms": round(ordered[len(ordered) // 2] * 1e3, 2),
            "p99_ms": round(ordered[len(ordered) * 99 // 100] * 1e3, 2),
            "most_ms": round(ordered[-1] * 1e3, 2),
        }
    return found


def measured(url: str, seconds: float, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return what a client that works waits, alone and beside the others."""
    found: dict[str, Any] = {}
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.apply(working, (url, 1.0))
        progress("alone")
        found["alone"] = shown(pool.apply(working, (url, seconds)))
        for what in ASKED:
            progress(f"beside {CLIENTS} clients that ask for {what}")
            others = pool.apply_async(asking, (url, what, seconds + 2))
            found[what] = shown(pool.apply(working, (url, seconds)))
            answered, longest = others.get()
            found[what] |= {"asked": answered, "longest_bytes": longest}
    return found


def aims(result: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    return {
        f"{kind} beside clients that ask for {what}, p99, ms": at_most(result[what][kind]["p99_ms"], MOST_MS)
        for what in ASKED
        for kind in ("read", "hold", "commit")
    } | {"what is free in a year, under the lock, ms": at_most(result["in_process"]["under_the_lock_ms"], MOST_LOCK_MS)}


def main() -> None:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/wide"), help="folder (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each is measured (default: %(default)s)")
    parser.add_argument("--reservations", type=int, default=ON_THE_BOOKS, help="on the books (default: %(default)s)")
    asked = parser.parse_args()

    def progress(text: str) -> None:
        print(f"bench: {text}", file=sys.stderr, flush=True)

    progress(f"{asked.reservations:,} reservations are put on the books")
    base_us = time.time_ns() // 1000 + 3600 * S
    ledger = filled(asked.reservations, random.Random(2), base_us)
    books = tuple(replace(r, key="") for r in ledger.reservations.values() if r.state is ReservationState.COMMITTED)
    with tempfile.TemporaryDirectory() as name:
        url = f"sqlite:///{name}/headway.db"
        booked(books, url)
        with running(Path(name), url, rate="100 Gbit/s") as controller:
            result = measured(controller.url, asked.seconds, progress)
    result["in_process"] = in_process(ledger, base_us)
    result["machine"] = {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cpu": platform.machine(),
    }
    result |= stated(aims(result))
    write_report(asked.out, result)
    for what in ("alone", *ASKED):
        p99 = ", ".join(f"{kind} {result[what][kind]['p99_ms']} ms" for kind in ("read", "hold", "commit"))
        print(f"{what}: p99 {p99}")
    spent = result["in_process"]
    print(f"what is free in a year: {spent['answer_ms']} ms of CPU, {spent['under_the_lock_ms']} under the lock")
    print(f"written: {asked.out / 'report.json'}")


if __name__ == "__main__":
    main()
