"""Scripts that reserve while the controller dies under them, and what must be true afterwards."""

import contextlib
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import httpx

from mininet_tests.site.running import Running

S = 1_000_000
CLIENTS = 6
BOOKABLE_BPS = 9_388_000_000  # of 10 Gbit/s, without the guarantees of 5%, 0.02%, 1% and 0.1%
KEPT = {"held", "committed", "provisioning", "active"}


@dataclass(slots=True)
class Acknowledged:
    """What clients were told by a 2xx, by idempotency key: the reservation as they saw it last."""

    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    refused: int = 0
    requests: int = 0


class BookingClient(threading.Thread):
    """Reserves, commits, changes and cancels at random; what the controller's death has cut off it asks again."""

    def __init__(self, url: str, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._number = number
        self._end = stop
        self._random = random.Random(number)
        self.told = Acknowledged()

    def run(self) -> None:
        """Work until told to stop."""
        with httpx.Client(base_url=self._url, timeout=10) as self._http:
            count = 0
            while not self._end.is_set():
                count += 1
                self._story(f"client{self._number}-{count}")

    def _story(self, key: str) -> None:
        start = time.time() + 3600 + self._random.randrange(10**6)
        body = {
            "from": "la-serena",
            "to": "champaign",
            "class": "urgent",
            "rate_bps": self._random.randrange(1, 3_000) * 1_000_000,
            "start": datetime.fromtimestamp(start, UTC).isoformat(),
            "duration_s": self._random.randrange(60, 100_000),
            "hold_s": 3600,
        }
        held = self._asked("POST", "/v1/reservations", json=body, headers={"Idempotency-Key": key})
        if held is None or held.status_code == 409:
            self.told.refused += held is not None
            return
        one = self._take_in(key, held)
        path = f"/v1/reservations/{one['id']}"
        if self._random.random() < 0.8:
            answer = self._asked("POST", f"{path}/commit")
            if answer is None:
                return
            one = self._take_in(key, answer)
        if self._random.random() < 0.3:
            tag = {"If-Match": f'"{one["version"]}"'}
            answer = self._asked("PATCH", path, json={"rate_bps": one["rate_bps"] // 2 + 1}, headers=tag)
            if answer is not None and answer.status_code == 200:
                one = self._take_in(key, answer)
        if self._random.random() < 0.2:
            answer = self._asked("DELETE", path)
            if answer is not None:
                self._take_in(key, answer)
                self.told.cancelled.add(key)

    def _take_in(self, key: str, answer: httpx.Response) -> dict[str, Any]:
        if not answer.is_success:
            raise AssertionError(f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}")
        self.told.seen[key] = answer.json()
        return self.told.seen[key]

    def _asked(self, method: str, path: str, **more: Any) -> httpx.Response | None:
        """Return the answer; asked again for as long as there is none. None: told to stop, the outcome unknown."""
        while not self._end.is_set():
            with contextlib.suppress(httpx.TransportError):
                answer = self._http.request(method, path, **more)
                self.told.requests += 1
                if answer.status_code != 503:
                    return answer
            self._end.wait(0.02)
        return None


def survived(controller: Running, kills: int) -> list[BookingClient]:
    """Return the clients after they have worked through ``kills`` deaths of the controller; it is running again."""
    stop = threading.Event()
    clients = [BookingClient(controller.url, number, stop) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    chance = random.Random(0)
    for _ in range(kills):
        stop.wait(chance.uniform(0.05, 0.5))
        controller.end(signal.SIGKILL)
        controller.start()
    stop.wait(0.5)
    stop.set()
    for client in clients:
        client.join(30)
    return clients


def problems(controller: Running, clients: list[BookingClient]) -> list[str]:
    """Return what is not as it was acknowledged: gone, twice, older; and a calendar that is not the sum."""
    there = _all(controller.url)
    by_id = {one["id"]: one for one in there}
    found = [f"{one['id']} is there twice" for one in there if by_id[one["id"]] is not one]
    for key, told in ((k, t) for client in clients for k, t in client.told.seen.items()):
        known = by_id.get(told["id"])
        if known is None:
            found.append(f"{key}: {told['id']} was acknowledged and is gone")
        elif known["version"] < told["version"]:
            found.append(f"{key}: version {told['version']} was acknowledged, {known['version']} is there")
        elif known["version"] == told["version"] and known["rate_bps"] != told["rate_bps"]:
            found.append(f"{key}: {told['rate_bps']} was acknowledged, {known['rate_bps']} is there")
    ids = [told["id"] for client in clients for told in client.told.seen.values()]
    found += [f"{one} has two keys" for one in set(ids) if ids.count(one) > 1]
    stories = sum(len(client.told.seen) for client in clients)
    if not stories <= len(there) <= stories + CLIENTS:  # each client may not know of the one it was about to be told
        found.append(f"{stories} were acknowledged, {len(there)} are there")
    return found + _calendar_problems(controller.url, [one for one in there if one["state"] in KEPT])


def _all(url: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor = None
    while True:
        query = {"limit": 1000} | ({"cursor": cursor} if cursor else {})
        page = httpx.get(f"{url}/v1/reservations", params=query, timeout=30).json()
        rows += page["reservations"]
        cursor = page.get("next")
        if not cursor:
            return rows


def _calendar_problems(url: str, kept: list[dict[str, Any]]) -> list[str]:
    """Compare what is said to be free with the capacity less the sum of what is reserved, over all the time."""
    if not kept:
        return ["nothing was reserved: the test has tested nothing"]
    times = sorted({datetime.fromisoformat(one[end]) for one in kept for end in ("start", "end")})
    window = {"start": times[0].isoformat(), "end": times[-1].isoformat()}
    query = {"from": "la-serena", "to": "champaign", "class": "urgent", **window}
    (way,) = httpx.get(f"{url}/v1/availability", params=query, timeout=60).json()["paths"]
    free = {piece["from"]: piece["rate_bps"] for piece in way["rates"]}
    starts = sorted((datetime.fromisoformat(at), bps) for at, bps in free.items())
    events = sorted(
        event
        for one in kept
        for event in (
            (datetime.fromisoformat(one["start"]), one["rate_bps"]),
            (datetime.fromisoformat(one["end"]), -one["rate_bps"]),
        )
    )
    return _compared(starts, events, times)


def _compared(free: list[tuple[datetime, int]], events: list[tuple[datetime, int]], times: list[datetime]) -> list[str]:
    used_bps = 0
    found, f, e = [], 0, 0
    for at, until in pairwise(times):
        while e < len(events) and events[e][0] <= at:
            used_bps += events[e][1]
            e += 1
        while f + 1 < len(free) and free[f + 1][0] <= at:
            f += 1
        if used_bps + free[f][1] != BOOKABLE_BPS:
            found.append(f"{at} to {until}: {used_bps} reserved and {free[f][1]} free is not {BOOKABLE_BPS}")
    return found[:5]
