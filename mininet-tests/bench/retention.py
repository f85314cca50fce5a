"""What a million reservations that have ended cost: a start, a page of a list, memory; beside an empty database.

Both databases, each empty and full in turn, in one run; a real controller over HTTP. The million is made by SQL of one
reservation that a database has saved.
"""

import argparse
import base64
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from controller.database import Changes, Database
from controller.database.tables import ENDED_RESERVATIONS
from controller.plan.lifecycle import ReservationState
from controller.plan.reservations import NO_CONSTRAINTS, Reservation
from mininet_tests.site.postgresql import PrivatePostgres
from mininet_tests.site.running import Running, running
from mininet_tests.testing.aims import Aim, at_most, stated
from mininet_tests.testing.reports import print_aims, write_report
from topology.protocol import FlowClass

MILLION = 1_000_000
LIVE, STARTS, CALLS = 50, 3, 100
MORE_START_S, MORE_RESIDENT_MIB, PAGE_WITHIN_MS = 0.5, 20, 100

_MADE = {  # what differs from the one that is there
    "reservation_id": "'r' || i",
    "sequence": "i",
    "number": "i",
    "key": "'key ' || i",
    "state": "CASE WHEN i % 1000 = 0 THEN 'failed' WHEN i % 2 = 0 THEN 'released' ELSE 'expired' END",
    "changed_us": "changed_us + CAST(i AS BIGINT) * 1000000",
}


def many_made(count: int) -> str:
    """Return the SQL that makes of one reservation that has ended as many more."""
    names = [column.name for column in ENDED_RESERVATIONS.columns]
    values = ", ".join(_MADE.get(name, name) for name in names)
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"  # noqa: S608
    made = f"SELECT {values} FROM n, ended_reservations WHERE reservation_id = 'r1'"  # noqa: S608 - names of our own
    return f"INSERT INTO ended_reservations ({', '.join(names)}) {numbers} {made}"


def ended_one(now_us: int) -> Reservation:
    """Return a reservation that ended two months ago, of which the million is made."""
    ended_us = now_us - 60 * 86_400_000_000
    return Reservation(
        reservation_id="r1",
        sequence=1,
        version=3,
        state=ReservationState.EXPIRED,
        flow_class=FlowClass.URGENT,
        a_end="base20",
        z_end="arch",
        rate_bps=10**9,
        start_us=ended_us - 3_600_000_000,
        end_us=ended_us,
        path=("base20", "ls1", "ch1", "arch"),
        backup=(),
        constraints=NO_CONSTRAINTS,
        hold_until_us=None,
        created_us=ended_us - 7_200_000_000,
        changed_us=ended_us,
        description="a night of images",
        reason="its time is over",
        key="key 1",
    )


def filled(url: str, count: int) -> None:
    """Put so many that have ended into a database."""
    database = Database(url)
    database.open()
    try:
        if count:
            known = ended_one(time.time_ns() // 1000 - count * 1_000_000)
            database.save(Changes(reservations=(replace(known, description="one"),))).result()
    finally:
        database.close()
    if count:
        engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)
        with engine.begin() as connection:
            connection.execute(sa.text(many_made(count)))
        engine.dispose()


def resident_mib(process_id: int) -> float:
    """Return the memory that a process has in RAM."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return round(int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024, 1)


def cursor(after: int) -> str:
    """Return the API's cursor behind a sequence."""
    return base64.urlsafe_b64encode(f"after {after}".encode()).decode()


def calls(count: int) -> dict[str, str]:
    """Return what is asked, by what it is called in the report."""
    page = "/v1/reservations?limit=100"
    found = {"page of those that have not ended": f"{page}&state=held&state=committed", "first page": page}
    if count:
        middle = cursor(count // 2)
        found |= {
            "page in the middle": f"{page}&cursor={middle}",
            "page of those that have failed": f"{page}&state=failed&cursor={middle}",
            "page of a host that has none": f"{page}&from=arch&cursor={middle}",
            "one that has ended": f"/v1/reservations/r{count // 2}",
            "page of history": f"/v1/history?limit=100&cursor={middle}",
        }
    return found


def times_ms(client: httpx.Client, path: str) -> dict[str, float]:
    """Return how long a call takes."""
    found = []
    for _ in range(CALLS):
        began_s = time.perf_counter()
        client.get(path).raise_for_status()
        found.append((time.perf_counter() - began_s) * 1e3)
    found.sort()
    return {"p50_ms": round(statistics.median(found), 2), "p99_ms": round(found[len(found) * 99 // 100], 2)}


def holds_ms(client: httpx.Client, tag: str) -> dict[str, float]:
    """Return how long a hold with a key takes, which is looked for among all that have ended; they stay."""
    found = []
    start = datetime.fromtimestamp(time.time() + 86_400, UTC).isoformat()
    asked = {"from": "base20", "to": "arch", "class": "urgent", "rate": "1 Mbit/s", "start": start, "duration_s": 3600}
    for number in range(LIVE):
        began_s = time.perf_counter()
        headers = {"Idempotency-Key": f"{tag} {number}".replace(" ", "-")}
        answer = client.post("/v1/reservations", json=asked | {"commit": True}, headers=headers)
        answer.raise_for_status()
        found.append((time.perf_counter() - began_s) * 1e3)
    return {"p50_ms": round(statistics.median(found), 2)}


def started_s(controller: Running) -> float:
    """Return how long a controller needs until it answers, at the median."""
    found = []
    for _ in range(STARTS):
        controller.end()
        began_s = time.perf_counter()
        controller.start()
        found.append(time.perf_counter() - began_s)
    return round(statistics.median(found), 2)


def measured(folder: Path, url: str, count: int) -> dict[str, Any]:
    """Return what a controller does with so many that have ended in its database."""
    began_s = time.perf_counter()
    filled(url, count)
    made_s = time.perf_counter() - began_s
    with running(folder, url, rate="100 Gbit/s") as controller, httpx.Client(base_url=controller.url) as client:
        held = holds_ms(client, f"live of {count}")
        start_s = started_s(controller)
        result = {name: times_ms(client, path) for name, path in calls(count).items()}
        if controller.process is None:
            raise AssertionError("the controller is gone")
        return {
            "ended": count,
            "made_s": round(made_s, 1),
            "start_s": start_s,
            "resident_mib": resident_mib(controller.process.pid),
            "hold with a key": held,
            **result,
        }


@contextmanager
def databases(folder: Path) -> Iterator[dict[str, tuple[str, str]]]:
    """Give the URLs of two empty databases of each kind."""
    with PrivatePostgres() as postgres:
        yield {
            "sqlite": (f"sqlite:///{folder}/empty.db", f"sqlite:///{folder}/full.db"),
            "postgresql": (postgres.url, postgres.new_database()),
        }


def aims(result: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    found: dict[str, Aim] = {}
    for kind, (empty, full) in result["databases"].items():
        more_s = round(full["start_s"] - empty["start_s"], 2)
        more_mib = round(full["resident_mib"] - empty["resident_mib"], 1)
        live = "page of those that have not ended"
        times = full[live]["p50_ms"] / empty[live]["p50_ms"]
        found |= {
            f"{kind}: a start takes longer by, s": at_most(more_s, MORE_START_S),
            f"{kind}: more memory, MiB": at_most(more_mib, MORE_RESIDENT_MIB),
            f"{kind}: {live}, times that of an empty database": at_most(round(times, 2), 2),
        }
        pages = {name: one["p50_ms"] for name, one in full.items() if isinstance(one, dict)}
        slowest = max(pages, key=lambda name: pages[name])
        found[f"{kind}: slowest call, ms (p50)"] = at_most(pages[slowest], PAGE_WITHIN_MS)
    return found


def report(count: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return all that was measured."""
    result: dict[str, Any] = {"databases": {}}
    with tempfile.TemporaryDirectory() as name, databases(Path(name)) as urls:
        for kind, (empty, full) in urls.items():
            progress(f"{kind}, empty")
            without = measured(Path(name), empty, 0)
            progress(f"{kind}, {count:,} that have ended")
            result["databases"][kind] = [without, measured(Path(name), full, count)]
    result["machine"] = {"python": platform.python_version(), "kernel": platform.release(), "cpu": platform.machine()}
    return result | stated(aims(result))


def main() -> None:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/retention"), help="folder (default: %(default)s)")
    parser.add_argument("--ended", type=int, default=MILLION, help="how many have ended (default: %(default)s)")
    asked = parser.parse_args()
    result = report(asked.ended, lambda text: print(f"bench: {text}", file=sys.stderr, flush=True))
    write_report(asked.out, result)
    print_aims(asked.out, result)


if __name__ == "__main__":
    main()
