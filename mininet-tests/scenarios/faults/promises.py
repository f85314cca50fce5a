"""Offers that are taken, reservations that are changed while they run, announcements said twice, what has ended."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mininet_tests.scenarios.faults.asked import WITHIN_S, image, posted, released, reservation
from mininet_tests.site.running import Running, running
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois_2
from topology.network_text import section_of

RESERVED_BPS, TOO_MUCH_BPS = 60_000_000, 70_000_000  # of 100 Mbit/s
OTHER_BPS, SMALL_BPS, LARGER_BPS = 600_000_000, 300_000_000, 450_000_000  # of circuits of 1,000 and 500 Mbit/s
ENDED, ENDED_BPS = 3, 1_000_000


def offers(controller: Running) -> dict[str, Any]:
    """Ask for more than is free beside a reservation; take each offer at once, and give it back."""
    begin = datetime.now(UTC) + timedelta(hours=1)
    first = posted(controller, "/v1/reservations", reservation(RESERVED_BPS, begin) | {"commit": True})
    refused = posted(controller, "/v1/reservations", reservation(TOO_MUCH_BPS, begin))
    offered = refused.json().get("offers", [])
    taken = []
    for offer in offered:
        body = {key: offer[key] for key in ("class", "rate_bps", "start", "end") if key in offer}
        answer = posted(controller, "/v1/reservations", {"from": "base21", "to": "arch", **body})
        taken.append({"kind": offer["kind"], "status": answer.status_code})
        if answer.is_success:
            released(controller, answer)
    released(controller, first)
    return {"first": first.status_code, "refused": refused.status_code, "offered": len(offered), "taken": taken}


def changed() -> dict[str, Any]:
    """Change a reservation that runs, beside one that ran when it began and is no more; two circuits could carry it.

    It is a controller of its own: the network of the others has one circuit.
    """
    with TemporaryDirectory() as folder:
        section = section_of(chile_illinois_2())
        with running(Path(folder), f"sqlite:///{folder}/headway.db", network=section) as controller:
            now = datetime.now(UTC)
            other = posted(controller, "/v1/reservations", reservation(OTHER_BPS, now) | {"commit": True})
            body = reservation(SMALL_BPS, now, "base20") | {"commit": True}
            made = posted(controller, "/v1/reservations", body).json()
            eventually(lambda: _state(controller, made) != "committed", within_s=WITHIN_S, what="it has begun")
            released(controller, other)
            time.sleep(1)  # so that the other one is in the past of this one, and in nothing that is to come
            answer = controller.asks(
                "PATCH", f"/v1/reservations/{made['id']}", json={"rate_bps": LARGER_BPS}, headers={"If-Match": "*"}
            )
            after = answer.json()
    return {
        "status": answer.status_code,
        "rate_bps": after.get("rate_bps"),
        "circuits_before": made["circuits"],
        "circuits_after": after.get("circuits"),
    }


def _state(controller: Running, made: dict[str, Any]) -> str:
    return str(controller.asks("GET", f"/v1/reservations/{made['id']}").json()["state"])


def said_twice(controller: Running) -> dict[str, Any]:
    """Announce the same twice, then something else under its name, and withdraw it."""
    first = posted(controller, "/v1/announcements", image("said-twice"))
    again = posted(controller, "/v1/announcements", image("said-twice"))
    other = posted(controller, "/v1/announcements", image("said-twice", 2_000_000))
    controller.asks("DELETE", "/v1/announcements/said-twice").raise_for_status()
    return {
        "statuses": [first.status_code, again.status_code, other.status_code],
        "is_the_same": first.json()["promised"] == again.json()["promised"],
    }


def ended(controller: Running) -> dict[str, Any]:
    """Reserve and release: what has ended is not in memory any more, and is read from the database."""
    begin = datetime.now(UTC) + timedelta(hours=2)
    made = [posted(controller, "/v1/reservations", reservation(ENDED_BPS, begin)) for _ in range(ENDED)]
    before = _in_memory(controller)
    for one in made:
        released(controller, one)
    numbers = {one.json()["id"] for one in made}
    found = [controller.asks("GET", f"/v1/reservations/{number}") for number in numbers]
    listed = controller.asks("GET", "/v1/reservations?state=released&limit=1000").json()
    return {
        "made": len(made),
        "in_memory_before": before,
        "in_memory": _in_memory(controller),
        "found": sorted({(answer.status_code, answer.json()["state"]) for answer in found}),
        "not_listed": len(numbers - {one["id"] for one in listed["reservations"]}),
    }


def _in_memory(controller: Running) -> int:
    """Return how many reservations the controller has in memory, by its metrics."""
    lines = controller.asks("GET", "/metrics").text.splitlines()
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if line.startswith("headway_reservations{"))
