"""How fast reservations are decided and kept; every comparison in one run, side by side, into one JSON file.

Decisions: admission of a request over site, circuit, class share and answers, with path choice, in process, against
the same decisions by a linear sweep over all overlapping reservations (which is what OSCARS does). Service: hold and
commit over HTTP by concurrent clients, each answer durable before it is given.
"""

import argparse
import asyncio
import gc
import json
import math
import multiprocessing
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from controller.database import Changes, Database
from controller.plan.admission import Refused, Request
from controller.plan.calendar import Booking
from controller.plan.kept_ledger import KeptLedger
from controller.plan.keys import Resource
from controller.plan.ledger import Created
from controller.plan.lifecycle import LifecycleEvent, ReservationState
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.reservations import Reservation
from controller.plan.resources import need
from mininet_tests.bench.attach import cpu_s
from mininet_tests.bench.bare_commits import commits_per_s
from mininet_tests.bench.bare_http import BareHttp, reservation
from mininet_tests.site.postgresql import PrivatePostgres
from mininet_tests.site.running import Running, running
from mininet_tests.testing.aims import Aim, at_least, below, stated
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.reports import write_report
from topology.network import Hop
from topology.protocol import FlowClass

T = TypeVar("T")

S = 1_000_000
YEAR_US = 365 * 86_400 * S
CIRCUIT_BPS = 100 * 10**9
ON_THE_BOOKS = 30_000
SIZES = (300, 3_000, ON_THE_BOOKS, 300_000)
DECISIONS = 3_000
ROUNDS = 5
SWEEPS = 300
CLIENTS = 16
DECIDED_WITHIN_US, PAIRS_OVER_COMMITS = 200, 0.5


def request(chance: random.Random, base_us: int) -> Request:
    """Return a request of 5 minutes to 4 hours somewhere in a year."""
    start_us = base_us + chance.randrange(YEAR_US)
    end_us = start_us + chance.randrange(300 * S, 4 * 3600 * S)
    return Request("la-serena", "champaign", FlowClass.URGENT, chance.randrange(1, 1_000) * 1_000_000, start_us, end_us)


def filled(size: int, chance: random.Random, base_us: int) -> KeptLedger:
    """Return a ledger with so many committed reservations, each of them admitted."""
    ledger = KeptLedger(chile_illinois(rate_bps=CIRCUIT_BPS), DEFAULT_POLICY)
    while len(ledger.calendar) < size:
        name = f"r{len(ledger.reservations)}"
        if not isinstance(ledger.hold(request(chance, base_us), Created(name, base_us)), Refused):
            ledger.happened(name, LifecycleEvent.COMMIT, base_us)
    ledger.saved(ledger.changes(decided=True))
    gc.collect()
    gc.freeze()  # as the controller does once it has read its books
    return ledger


def timed_us(work: Callable[[], T]) -> tuple[float, T]:
    """Return how long it takes, and what it returns."""
    began = time.perf_counter()
    answer = work()
    return (time.perf_counter() - began) * 1e6, answer


def decisions(ledger: KeptLedger, chance: random.Random, base_us: int) -> list[float]:
    """Return the times of deciding so many requests; each granted one is taken out again."""
    times = []
    for number in range(DECISIONS):
        asked, name = request(chance, base_us), f"bench{number}"
        took_us, answer = timed_us(partial(ledger.hold, asked, Created(name, base_us)))
        times.append(took_us)
        if not isinstance(answer, Refused):
            ledger.happened(name, LifecycleEvent.RELEASE, base_us)
    ledger.saved(ledger.changes(decided=True))
    return times


def least_cpu_us(ledger: KeptLedger, chance: random.Random, base_us: int) -> list[float]:
    """Return the least CPU time of some rounds for each of some requests: what deciding it takes, whoever else works.

    Deciding is the same work each time, so what one round takes longer than another was the machine's.
    """
    asked = [request(chance, base_us) for _ in range(DECISIONS // ROUNDS)]
    least = [math.inf] * len(asked)
    for turn in range(ROUNDS):
        for number, one in enumerate(asked):
            name, began_ns = f"round{turn}-{number}", time.thread_time_ns()
            answer = ledger.hold(one, Created(name, base_us))
            least[number] = min(least[number], (time.thread_time_ns() - began_ns) / 1e3)
            if not isinstance(answer, Refused):
                ledger.happened(name, LifecycleEvent.RELEASE, base_us)
        ledger.saved(ledger.changes(decided=True))
    return least


def overlapping(bookings: list[Booking], asked: Booking) -> list[Booking]:
    """Return the bookings that meet another one in time, by looking at each."""
    return [b for b in bookings if b.start_us < asked.end_us and asked.start_us < b.end_us]


def sweep(meeting: list[Booking], asked: Booking, capacity_bps: dict[Resource, int]) -> bool:
    """Return whether a booking fits, by a sweep over all that meet it; the decision OSCARS makes, made right."""
    for resource, wanted_bps in asked.need.claims(asked.rate_bps):
        steps = []
        for booking in meeting:
            bps = dict(booking.need.claims(booking.rate_bps))[resource]
            steps += [(booking.start_us, bps), (booking.end_us, -bps)]
        total = peak = 0
        for _, bps in sorted(steps):
            total += bps
            peak = max(peak, total)
        if peak + wanted_bps > capacity_bps[resource]:
            return False
    return True


def compared(ledger: KeptLedger, chance: random.Random, base_us: int) -> dict[str, float]:
    """Return the same decisions timed both ways, in turn; both must agree on each.

    ``search_us`` is for finding what overlaps, which OSCARS leaves to its database; ``sweep_us`` has it in it.
    """
    path = ("ls1", "ch1")
    bookings = [
        Booking(need(ledger.network, (path,), r.flow_class), r.rate_bps, r.start_us, r.end_us)
        for r in ledger.reservations.values()
        if r.state is ReservationState.COMMITTED
    ]
    resources = dict(bookings[0].need.shares_ppm)
    capacity_bps = {resource: ledger.calendar.capacity_bps(resource, base_us) for resource in resources}
    ours, searches, sweeps = [], [], []
    for _ in range(SWEEPS):
        asked = request(chance, base_us)
        booking = Booking(bookings[0].need, asked.rate_bps, asked.start_us, asked.end_us)
        our_us, shortage = timed_us(partial(ledger.calendar.shortage, booking))
        search_us, meeting = timed_us(partial(overlapping, bookings, booking))
        sweep_us, fits = timed_us(partial(sweep, meeting, booking, capacity_bps))
        if fits != (shortage is None):
            raise AssertionError(f"the calendar and the sweep differ on {asked}")
        ours.append(our_us)
        searches.append(search_us)
        sweeps.append(search_us + sweep_us)
    return {
        "ours_us": statistics.median(ours),
        "sweep_us": statistics.median(sweeps),
        "search_us": statistics.median(searches),
    }


def queries(ledger: KeptLedger, base_us: int) -> dict[str, float]:
    """Return the times of the long questions."""
    way = need(ledger.network, (("ls1", "ch1"),), FlowClass.URGENT)
    end_us = base_us + YEAR_US
    most_bps = ledger.calendar.most_bps(way, base_us, end_us)
    return {
        "year_peak_us": timed_us(lambda: ledger.calendar.peak_bps(Hop("ls1", "ch1"), base_us, end_us))[0],
        "earliest_start_us": timed_us(
            lambda: ledger.calendar.earliest_start(way, most_bps + 10**9, 86_400 * S, base_us, end_us)
        )[0],
    }


def in_process(progress: Callable[[str], None]) -> dict[str, Any]:
    """Return all that is measured without a server."""
    chance, base_us = random.Random(1), time.time_ns() // 1000
    result: dict[str, Any] = {"growth": [], "growth_p99": [], "queries": {}}
    for size in SIZES:
        progress(f"{size:,} reservations on the books: decisions")
        ledger = filled(size, chance, base_us)
        decisions(ledger, chance, base_us)  # warm
        times = sorted(decisions(ledger, chance, base_us))
        p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
        result["growth"].append([size, round(p50, 1)])
        result["growth_p99"].append([size, round(p99, 1)])
        result["queries"][size] = {name: round(us, 1) for name, us in queries(ledger, base_us).items()}
        if size == ON_THE_BOOKS:
            result["decision_us"] = {"p50_at_30000": round(p50, 1), "p99_at_30000": round(p99, 1)}
            result["p99_over_p50_at_30000"] = round(p99 / p50, 2)
            least = sorted(least_cpu_us(ledger, chance, base_us))
            p50, p99 = least[len(least) // 2], least[len(least) * 99 // 100]
            result["decision_cpu_us"] = {"p50_at_30000": round(p50, 1), "p99_at_30000": round(p99, 1)}
            result["cpu_p99_over_p50_at_30000"] = round(p99 / p50, 2)
            progress("the same decisions by a sweep")
            both = compared(ledger, chance, base_us)
            result["sweep"] = {name: round(us, 1) for name, us in both.items()}
            result["sweep_over_ours_at_30000"] = round(both["sweep_us"] / both["ours_us"], 1)
            without = (both["sweep_us"] - both["search_us"]) / both["ours_us"]
            result["sweep_without_search_over_ours_at_30000"] = round(without, 1)
    return result


async def _client(url: str, number: int, until_s: float, *, at_once: bool) -> list[float]:
    """Return the times of hold and commit pairs until the time is over; ``at_once``: each in one request."""
    http, chance, times = await BareHttp.to(url), random.Random(number), []
    while time.monotonic() < until_s:
        asked = json.dumps(reservation(chance) | {"commit": at_once}).encode()
        began = time.perf_counter()
        answer = json.loads(await http.done(201, "POST", "/v1/reservations", asked))
        if not at_once:
            await http.done(200, "POST", f"/v1/reservations/{answer['id']}/commit")
        times.append(time.perf_counter() - began)
    http.close()
    return times


async def _clients(url: str, seconds: float, *, at_once: bool) -> list[float]:
    until_s = time.monotonic() + seconds
    found = await asyncio.gather(*(_client(url, number, until_s, at_once=at_once) for number in range(CLIENTS)))
    return [one for times in found for one in times]


def _measured(url: str, seconds: float, at_once: bool) -> list[float]:
    return asyncio.run(_clients(url, seconds, at_once=at_once))


def pairs_per_s(controller: Running, seconds: float, *, at_once: bool = False) -> dict[str, float]:
    """Return how many durable hold and commit pairs are done a second, by clients in a process of their own.

    ``controller_cpu_ms`` is what a pair takes of the controller's CPU time, which other load hardly makes longer.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(_measured, (controller.url, 1.0, at_once))
        before_s = cpu_s(controller.pid)
        times = sorted(pool.apply(_measured, (controller.url, seconds, at_once)))
        spent_s = cpu_s(controller.pid) - before_s
    return {
        "pairs_per_s": round(len(times) / seconds, 1),
        "pair_ms_p50": round(times[len(times) // 2] * 1e3, 2),
        "pair_ms_p99": round(times[len(times) * 99 // 100] * 1e3, 2),
        "controller_cpu_ms": round(spent_s * 1e3 / len(times), 3),
    }


def booked(reservations: tuple[Reservation, ...], url: str) -> None:
    """Put the reservations into a database, as a controller that has run for long would have."""
    database = Database(url)
    database.open()
    try:
        for first in range(0, len(reservations), 1_000):
            database.save(Changes(reservations=reservations[first : first + 1_000])).result()
    finally:
        database.close()


@contextmanager
def databases(directory: Path) -> Iterator[dict[str, str]]:
    """Give the URLs of an empty SQLite and an empty PostgreSQL database."""
    with PrivatePostgres() as postgres:
        yield {"sqlite": f"sqlite:///{directory}/headway.db", "postgresql": postgres.url}


def over_http(seconds: float, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return what a running controller does, on both databases, with 30,000 reservations on the books."""
    ledger = filled(ON_THE_BOOKS, random.Random(2), time.time_ns() // 1000 + 3600 * S)
    books = tuple(replace(r, key="") for r in ledger.reservations.values() if r.state is ReservationState.COMMITTED)
    result: dict[str, Any] = {"clients": CLIENTS, "rest_pairs_per_s": {}, "rest": {}}
    result |= {"pairs_over_bare_commits": {}, "in_one_request_over_bare_commits": {}}
    with tempfile.TemporaryDirectory() as name, databases(Path(name)) as urls:
        for kind, url in urls.items():
            progress(f"{kind}: {CLIENTS} clients hold and commit for {seconds:g} s")
            booked(books, url)
            bare_per_s = commits_per_s(url, CLIENTS, seconds)
            with running(Path(name), url, rate="100 Gbit/s") as controller:
                result["rest"][kind] = pairs_per_s(controller, seconds)
                result["rest"][kind]["in_one_request"] = pairs_per_s(controller, seconds, at_once=True)
            result["rest"][kind]["bare_commits_per_s"] = bare_per_s
            result["rest_pairs_per_s"][kind] = result["rest"][kind]["pairs_per_s"]
            result["pairs_over_bare_commits"][kind] = round(result["rest_pairs_per_s"][kind] / bare_per_s, 2)
            at_once_per_s = result["rest"][kind]["in_one_request"]["pairs_per_s"]
            result["in_one_request_over_bare_commits"][kind] = round(at_once_per_s / bare_per_s, 2)
    return result


def aims(result: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    return {
        "decision at 30,000 on the books, p99, us": below(result["decision_us"]["p99_at_30000"], DECIDED_WITHIN_US),
        "decision at 30,000 on the books, p99 over p50": below(result["p99_over_p50_at_30000"], 2),
        "decision at 30,000 on the books, least CPU time, p99 over p50": below(result["cpu_p99_over_p50_at_30000"], 2),
    } | {
        f"durable hold and commit pairs over bare commits, {kind}": at_least(ratio, PAIRS_OVER_COMMITS)
        for kind, ratio in result["pairs_over_bare_commits"].items()
    }


def main() -> None:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/reservations"), help="folder (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each database is measured")
    asked = parser.parse_args()

    def progress(text: str) -> None:
        print(f"bench: {text}", file=sys.stderr, flush=True)

    result = {
        **in_process(progress),
        **over_http(asked.seconds, progress),
        "machine": {"python": platform.python_version(), "kernel": platform.release(), "cpu": platform.machine()},
    }
    result |= stated(aims(result))
    write_report(asked.out, result)
    decision = result["decision_us"]
    print(
        f"decision at 30,000: p50 {decision['p50_at_30000']} us, p99 {decision['p99_at_30000']} us "
        f"(aim: {DECIDED_WITHIN_US})"
    )
    cpu = result["decision_cpu_us"]
    print(f"its CPU time, the least of {ROUNDS} rounds: p50 {cpu['p50_at_30000']} us, p99 {cpu['p99_at_30000']} us")
    print(
        f"a linear sweep takes {result['sweep_over_ours_at_30000']} times as long, "
        f"{result['sweep_without_search_over_ours_at_30000']} times if what overlaps is found for nothing"
    )
    print("growth, p50 us: " + ", ".join(f"{size:,}: {us}" for size, us in result["growth"]))
    for kind, rate in result["rest_pairs_per_s"].items():
        ratio = result["pairs_over_bare_commits"][kind]
        print(f"{kind}: {rate} durable hold+commit pairs/s with {CLIENTS} clients, {ratio} of the bare commits")
        at_once = result["rest"][kind]["in_one_request"]
        of_bare = result["in_one_request_over_bare_commits"][kind]
        print(f"{kind}: {at_once['pairs_per_s']} of them in one request each, {of_bare} of the bare commits")
    print(f"written: {asked.out / 'report.json'}")


if __name__ == "__main__":
    main()
