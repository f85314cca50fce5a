"""What a user meets at one controller with two userspace switches: each thing that once went wrong, done again.

The hosts have no agents. ``run.py`` has the traffic, ``aims.py`` what is to come of it.
"""

import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import yaml

from mininet_tests.site.openvswitch import PrivateOvs
from mininet_tests.site.running import Running
from mininet_tests.site.users import Users
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois

WITHIN_S = 30.0
AWAY_S = 3.0  # in which a fault that is said again and again shows
HANGS_S = 6.0  # two leases
RESERVED_BPS, TOO_MUCH_BPS = 60_000_000, 70_000_000  # of 100 Mbit/s
ENDED, ENDED_BPS = 3, 1_000_000
CREATED, UNAVAILABLE = 201, 503  # of HTTP
STRANGER, SENDER = "ls9", "base20"


def replayed(ovs: PrivateOvs, controller: Running, store: Path) -> dict[str, Any]:
    """Return what came of each, by the name that its aims have.

    Raises:
        AssertionError: something did not come about in time.
    """
    points: dict[str, Callable[[], dict[str, Any]]] = {
        "offers": lambda: _offers(controller),
        "circuit port gone and back": lambda: _added_again(ovs, controller),
        "host port down": lambda: _host_port_down(ovs, controller),
        "reservations that have ended": lambda: _ended(controller),
        "database hangs": lambda: _hanging(controller, store),
        "switch claimed twice": lambda: _claimed_twice(ovs, controller),  # the last one: a claim is over after 30 s
    }
    return {name: _from_well(controller, play) for name, play in points.items()}


def _from_well(controller: Running, play: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what came of one, begun when nothing is left of the one before: a line has to be up for 10 s again."""
    _well(controller)
    return play()


def _offers(controller: Running) -> dict[str, Any]:
    """Ask for more than is free beside a reservation; take each offer at once, and give it back."""
    begin = datetime.now(UTC) + timedelta(hours=1)
    asked = _reservation(RESERVED_BPS, begin)
    first = _posted(controller, "/v1/reservations", asked | {"commit": True})
    refused = _posted(controller, "/v1/reservations", _reservation(TOO_MUCH_BPS, begin))
    offers = refused.json().get("offers", [])
    taken = []
    for offer in offers:
        body = {key: offer[key] for key in ("class", "rate_bps", "start", "end") if key in offer}
        answer = _posted(controller, "/v1/reservations", {"from": "base21", "to": "arch", **body})
        taken.append({"kind": offer["kind"], "status": answer.status_code})
        if answer.status_code == httpx.codes.CREATED:
            httpx.delete(f"{controller.url}/v1/reservations/{answer.json()['id']}").raise_for_status()
    httpx.delete(f"{controller.url}/v1/reservations/{first.json()['id']}").raise_for_status()
    return {"first": first.status_code, "refused": refused.status_code, "offered": len(offers), "taken": taken}


def _added_again(ovs: PrivateOvs, controller: Running) -> dict[str, Any]:
    """Delete a circuit's port and add it: what is said of it, and how long it has no queues when it is back."""
    link = chile_illinois().link("ls1", "ch1")
    log, seen_bytes = _log(controller), _log(controller).stat().st_size

    def said() -> list[str]:
        lines = log.read_text()[seen_bytes:].splitlines()
        return [line for line in lines if "event=fault." in line]

    ovs.vsctl("del-port", "ls1", link.port_name)
    eventually(lambda: not _health(controller)["ok"], within_s=WITHIN_S, what="it is not well")
    answer = _posted(controller, "/v1/announcements", _image("without-its-port"))
    eventually(lambda: any("event=fault.began" in line for line in said()), within_s=WITHIN_S, what="the fault is said")
    time.sleep(AWAY_S)
    ovs.vsctl(
        *("add-port", "ls1", link.port_name, "--", "set", "interface", link.port_name),
        f"ofport_request={link.port_no}",
    )
    began_s = time.monotonic()
    has_queues = partial(ovs.vsctl, "get", "port", link.port_name, "qos")
    eventually(lambda: has_queues().strip() != "[]", within_s=WITHIN_S, what="the port has its queues")
    bare_s = time.monotonic() - began_s
    eventually(lambda: any("event=fault.over" in line for line in said()), within_s=WITHIN_S, what="its end is said")
    httpx.delete(f"{controller.url}/v1/announcements/without-its-port").raise_for_status()
    return {
        "announced": answer.status_code,
        "carried": answer.json().get("carried"),
        "reasons": answer.json().get("reasons"),
        "says_where": _says("ls1", answer.json().get("reasons", [])),
        "began_lines": sum("event=fault.began" in line for line in said()),
        "over_lines": sum("event=fault.over" in line for line in said()),
        "without_queues_s": bare_s,
    }


def _host_port_down(ovs: PrivateOvs, controller: Running) -> dict[str, Any]:
    """Take a host's port away and give it back under its number."""
    link = chile_illinois().link("ls1", SENDER)
    ovs.vsctl("del-port", "ls1", link.port_name)
    noticed_s, reasons = _unwell(controller)
    ovs.vsctl(
        *("add-port", "ls1", link.port_name, "--", "set", "interface", link.port_name, "type=internal"),
        f"ofport_request={link.port_no}",
    )
    subprocess.run(["ip", "link", "set", link.port_name, "up"], check=True)
    says_where = _says(SENDER, reasons)
    return {"noticed_s": noticed_s, "reasons": reasons, "says_where": says_where, "well_again_s": _well(controller)}


def _claimed_twice(ovs: PrivateOvs, controller: Running) -> dict[str, Any]:
    """Let a second bridge connect under the datapath id of the first."""
    switch = chile_illinois().switches[0]
    target = ovs.vsctl("get-controller", switch.name).strip()
    ovs.vsctl(
        *("add-br", STRANGER, "--", "set", "bridge", STRANGER, "datapath_type=netdev", "fail_mode=secure"),
        *("protocols=OpenFlow13", f"other-config:datapath-id={switch.dpid:016x}"),
        *("--", "set-controller", STRANGER, target),
    )
    log = _log(controller)
    eventually(lambda: "event=switch.claimed_twice" in log.read_text(), within_s=WITHIN_S, what="it is said")
    noticed_s, reasons = _unwell(controller)
    ovs.vsctl("del-br", STRANGER)
    return {"noticed_s": noticed_s, "reasons": reasons, "says_where": _says(switch.name, reasons)}


def _ended(controller: Running) -> dict[str, Any]:
    """Reserve and release: what has ended is not in memory any more, and is read from the database."""
    begin = datetime.now(UTC) + timedelta(hours=2)
    made = [_posted(controller, "/v1/reservations", _reservation(ENDED_BPS, begin)).json() for _ in range(ENDED)]
    before = _in_memory(controller)
    for one in made:
        httpx.delete(f"{controller.url}/v1/reservations/{one['id']}").raise_for_status()
    found = [httpx.get(f"{controller.url}/v1/reservations/{one['id']}", timeout=20) for one in made]
    listed = httpx.get(f"{controller.url}/v1/reservations?state=released&limit=1000", timeout=20).json()
    return {
        "made": len(made),
        "in_memory_before": before,
        "in_memory": _in_memory(controller),
        "found": sorted({(answer.status_code, answer.json()["state"]) for answer in found}),
        "not_listed": len({one["id"] for one in made} - {one["id"] for one in listed["reservations"]}),
    }


def _in_memory(controller: Running) -> int:
    """Return how many reservations the controller has in memory, by its metrics."""
    lines = httpx.get(f"{controller.url}/metrics", timeout=20).text.splitlines()
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if line.startswith("headway_reservations{"))


def _hanging(controller: Running, store: Path) -> dict[str, Any]:
    """Hold the database for two leases: what users are answered meanwhile, and whether a host's lease is renewed."""
    agents = yaml.safe_load(controller.config.read_text())["listen"]["agents"]
    with Users(controller.url, agents) as users:

        def written(status: int, since_s: float) -> bool:
            return any(one.status == status and one.asked_s > since_s for one in users.writes)

        eventually(lambda: users.renewed_s and written(CREATED, 0), within_s=WITHIN_S, what="all is well")
        with closing(sqlite3.connect(store, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            began_s = time.monotonic()
            eventually(lambda: written(UNAVAILABLE, began_s), within_s=WITHIN_S, what="a write fails")
            noticed_s = time.monotonic()
            time.sleep(HANGS_S)
            over_s = time.monotonic()
            holder.execute("ROLLBACK")
        gap_s = users.longest_without_renewal_s(began_s)
        eventually(lambda: written(CREATED, over_s), within_s=WITHIN_S, what="writes are answered again")
    writes = [one for one in users.writes if noticed_s < one.asked_s < over_s]
    reads = [one for one in users.reads if began_s < one.asked_s < over_s]
    slowest = max((one for one in users.writes if one.asked_s > began_s), key=lambda one: one.took_s)
    return {
        "writes": len(writes),
        "write_statuses": sorted({one.status for one in writes}),
        "without_retry_after": sum(not one.retry_after for one in writes),
        "slowest_write_s": slowest.took_s,
        "read_statuses": sorted({one.status for one in reads if one.path != "/healthz"}),
        "read_while_a_write_waited": sum(slowest.covers(one) for one in reads),
        "slowest_read_s": max(one.took_s for one in reads),
        "lease_s": users.lease_s,
        "without_renewal_s": gap_s,
        "failures": users.failures,
    }


def _says(name: str, reasons: list[str]) -> bool:
    """Return whether a reason names a place."""
    return any(name in reason for reason in reasons)


def _unwell(controller: Running) -> tuple[float, list[str]]:
    """Return after how long the controller is not well, and why not."""
    began_s = time.monotonic()
    eventually(lambda: not _health(controller)["ok"], within_s=WITHIN_S, what="it is not well")
    return time.monotonic() - began_s, _health(controller)["reasons"]


def _well(controller: Running) -> float:
    """Return after how long the controller is well."""
    began_s = time.monotonic()
    eventually(
        lambda: bool(_health(controller)["ok"]), within_s=WITHIN_S, what=f"it is well again: {_health(controller)}"
    )
    return time.monotonic() - began_s


def _health(controller: Running) -> Any:
    return httpx.get(f"{controller.url}/healthz", timeout=20).json()


def _log(controller: Running) -> Path:
    return controller.config.with_suffix(".log")


def _posted(controller: Running, path: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{controller.url}{path}", json=body, timeout=20)


def _image(name: str) -> dict[str, Any]:
    return {"id": name, "class": "urgent", "bytes": 1_000_000, "from": [SENDER], "to": "arch"}


def _reservation(rate_bps: int, begin: datetime) -> dict[str, Any]:
    """Return the body that asks for a rate for an hour, urgently."""
    return {
        "from": "base21",
        "to": "arch",
        "class": "urgent",
        "rate_bps": rate_bps,
        "start": begin.isoformat(),
        "duration_s": 3600,
    }
