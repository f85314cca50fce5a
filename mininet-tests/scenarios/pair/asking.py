"""A script that reserves at a pair of controllers, and knows what it was answered."""

import itertools
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx

from topology.units import shown_time

PATIENCE_S = 0.25  # for one answer; then the other controller is asked, with the same key
BETWEEN_S = 0.01
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # a client that loads its authorities takes longer than a hand-over


def client(timeout_s: float) -> httpx.Client:
    """Return a client without TLS, made in no time."""
    return httpx.Client(timeout=timeout_s, verify=_NO_TLS)


@dataclass(slots=True)
class Script:
    """Asks for one reservation after the other, each until it is answered.

    Attributes:
        urls: the controllers.
        ends: the hosts for which it reserves.
        start_s: when the reservations begin, Unix time.
        answered: by key, the reservation.
        unsure: keys of requests that one controller did not answer.
    """

    urls: tuple[str, ...]
    ends: tuple[str, str]
    start_s: int
    answered: dict[str, str] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _clients: dict[str, httpx.Client] = field(default_factory=dict)
    _first: int = 0

    def asks(self) -> float:
        """Make a reservation at whoever takes it; return when it was answered, of ``time.monotonic``."""
        key = f"pair-{next(self._numbers)}"
        for _ in range(10_000):
            url = self.urls[self._first]
            said = self.asked(url, key)
            if said is not None and said.status_code == 307:
                url = said.headers["location"].removesuffix("/v1/reservations")
                said = self.asked(url, key)
            if said is not None and said.status_code in {200, 201}:
                self.answered[key] = said.json()["id"]
                self._first = self.urls.index(url)
                return time.monotonic()
            if said is not None and said.status_code not in {307, 503}:
                raise AssertionError(f"{said.status_code}: {said.text}")
            self.unsure |= {key} if said is None else set()
            self._first = (self._first + 1) % len(self.urls)
            time.sleep(BETWEEN_S)
        raise AssertionError("nobody answers any more")

    def asked(self, url: str, key: str) -> httpx.Response | None:
        """Return what a controller answers to the request with a key; None if it does not."""
        body = {
            "from": self.ends[0],
            "to": self.ends[1],
            "rate": "1 Mbit/s",
            "start": shown_time(self.start_s * 1_000_000),
            "duration_s": 60,
        }
        if url not in self._clients:
            self._clients[url] = client(PATIENCE_S)
        try:
            return self._clients[url].post(f"{url}/v1/reservations", json=body, headers={"Idempotency-Key": key})
        except httpx.TransportError:
            self._clients.pop(url).close()
            return None
