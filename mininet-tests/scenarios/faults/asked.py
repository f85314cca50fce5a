"""What every user of a controller does: ask it, look how it is, read its log."""

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from mininet_tests.site.running import Running
from mininet_tests.testing.eventually import eventually

WITHIN_S = 30.0
SENDER = "base20"


def posted(controller: Running, path: str, body: dict[str, Any]) -> httpx.Response:
    """Return the answer to a POST."""
    return controller.asks("POST", path, json=body)


def reservation(rate_bps: int, begin: datetime, sender: str = "base21") -> dict[str, Any]:
    """Return the body that asks for a rate for an hour, urgently."""
    return {
        "from": sender,
        "to": "arch",
        "class": "urgent",
        "rate_bps": rate_bps,
        "start": begin.isoformat(),
        "duration_s": 3600,
    }


def image(name: str, size_bytes: int = 1_000_000) -> dict[str, Any]:
    """Return the body that announces an image."""
    return {"id": name, "class": "urgent", "bytes": size_bytes, "from": [SENDER], "to": "arch"}


def released(controller: Running, made: httpx.Response) -> None:
    """Give a reservation back that was granted.

    Raises:
        httpx.HTTPError: it cannot be.
    """
    controller.asks("DELETE", f"/v1/reservations/{made.json()['id']}").raise_for_status()


def log_of(controller: Running) -> Path:
    """Return the file that a controller logs to."""
    return controller.config.with_suffix(".log")


def health(controller: Running) -> Any:
    """Return what a controller says of itself."""
    return controller.asks("GET", "/healthz").json()


def names(place: str, reasons: list[str]) -> bool:
    """Return whether a reason names a place."""
    return any(place in reason for reason in reasons)


def unwell(controller: Running) -> tuple[float, list[str]]:
    """Return after how many seconds a controller is not well, and why not."""
    began_s = time.monotonic()
    eventually(lambda: not health(controller)["ok"], within_s=WITHIN_S, what="it is not well")
    return time.monotonic() - began_s, health(controller)["reasons"]


def well(controller: Running) -> float:
    """Return after how many seconds a controller is well."""
    began_s = time.monotonic()
    eventually(lambda: bool(health(controller)["ok"]), within_s=WITHIN_S, what=f"it is well: {health(controller)}")
    return time.monotonic() - began_s
