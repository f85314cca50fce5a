"""A database that hangs while people use the controller."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import yaml

from mininet_tests.scenarios.faults.asked import WITHIN_S
from mininet_tests.site.running import Running
from mininet_tests.site.users import Users
from mininet_tests.testing.eventually import eventually

HANGS_S = 6.0  # two leases


def hanging(controller: Running, database: Path) -> dict[str, Any]:
    """Hold the database for two leases: what users are answered meanwhile, and whether a host's lease is renewed."""
    agents = yaml.safe_load(controller.config.read_text())["listen"]["agents"]
    with Users(controller.url, agents) as users:

        def written(status: int, since_s: float) -> bool:
            return any(one.status == status and one.asked_s > since_s for one in users.writes)

        eventually(lambda: users.renewed_s and written(httpx.codes.CREATED, 0), within_s=WITHIN_S, what="all is well")
        with closing(sqlite3.connect(database, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            began_s = time.monotonic()
            eventually(
                lambda: written(httpx.codes.SERVICE_UNAVAILABLE, began_s), within_s=WITHIN_S, what="a write fails"
            )
            noticed_s = time.monotonic()
            time.sleep(HANGS_S)
            over_s = time.monotonic()
            holder.execute("ROLLBACK")
        gap_s = users.longest_without_renewal_s(began_s)
        eventually(lambda: written(httpx.codes.CREATED, over_s), within_s=WITHIN_S, what="writes are answered again")
    writes = [one for one in users.writes if noticed_s < one.asked_s < over_s]
    reads = [one for one in users.reads if began_s < one.asked_s < over_s]
    waiting = [one for one in users.writes if began_s < one.asked_s < over_s]
    return {
        "writes": len(writes),
        "write_statuses": sorted({one.status for one in writes}),
        "without_retry_after": sum(not one.retry_after for one in writes),
        "slowest_write_s": max(one.took_s for one in waiting),
        "read_statuses": sorted({one.status for one in reads if one.path != "/healthz"}),
        "read_while_a_write_waited": sum(any(write.covers(one) for write in waiting) for one in reads),
        "slowest_read_s": max(one.took_s for one in reads),
        "lease_s": users.lease_s,
        "without_renewal_s": gap_s,
        "failures": users.failures,
    }
