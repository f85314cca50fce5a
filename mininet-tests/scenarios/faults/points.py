"""What a user meets at one controller with two userspace switches: each thing that once went wrong, done again.

The hosts have no agents. ``run.py`` has the traffic, ``aims.py`` what is to come of it.
"""

import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from mininet_tests.site.openvswitch import PrivateOvs
from mininet_tests.site.running import Running
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois

WITHIN_S = 30.0
AWAY_S = 3.0  # in which a fault that is said again and again shows
HANGS_S = 6.0  # two leases
RESERVED_BPS, TOO_MUCH_BPS = 60_000_000, 70_000_000  # of 100 Mbit/s
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
        "switch claimed twice": lambda: _claimed_twice(ovs, controller),
        "database hangs": lambda: _hanging(controller, store),
    }
    return {name: play() for name, play in points.items()}


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


def _hanging(controller: Running, store: Path) -> dict[str, Any]:
    """Hold the database for two leases: what a write is answered meanwhile, and how quick all others are."""
    with closing(sqlite3.connect(store, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        until_s, answers = time.monotonic() + HANGS_S, list[dict[str, Any]]()
        while time.monotonic() < until_s:
            answers += _each_once(controller, len(answers))
        holder.execute("ROLLBACK")

    def granted() -> bool:
        return _posted(controller, "/v1/announcements", _image("afterwards")).status_code in (200, 201)

    eventually(granted, within_s=WITHIN_S, what="writes are answered again")
    writes, reads = ([a for a in answers if a["is_write"] is kind] for kind in (True, False))
    return {
        "writes": len(writes),
        "write_statuses": sorted({a["status"] for a in writes}),
        "without_retry_after": sum(not a["retry_after"] for a in writes),
        "slowest_write_s": max(a["took_s"] for a in writes),
        "slowest_read_s": max(a["took_s"] for a in reads),
    }


def _each_once(controller: Running, number: int) -> Iterator[dict[str, Any]]:
    """Yield how one write and two reads were answered."""
    calls: list[tuple[bool, Callable[[], httpx.Response]]] = [
        (True, lambda: _posted(controller, "/v1/announcements", _image(f"hanging-{number}"))),
        (False, lambda: httpx.get(f"{controller.url}/v1/plan", timeout=20)),
        (False, lambda: httpx.get(f"{controller.url}/healthz", timeout=20)),
    ]
    for is_write, call in calls:
        began_s = time.monotonic()
        answer = call()
        took_s = time.monotonic() - began_s
        retry_after = answer.headers.get("Retry-After", "")
        yield {"is_write": is_write, "status": answer.status_code, "took_s": took_s, "retry_after": retry_after}


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
    eventually(lambda: bool(_health(controller)["ok"]), within_s=WITHIN_S, what="it is well again")
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
