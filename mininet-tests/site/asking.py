"""A script that reserves at a pair of controllers by the client that scripts have, and knows what it was answered."""

import itertools
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Event
from typing import Any, NamedTuple

from headway import ApiProblem, Client, NoAnswer
from headway.promises import ReservationIn
from headway.transport import Asked
from topology.units import shown_time

PATIENCE_S = 60.0  # then nobody answers any more


class CountingClient(Client):
    """Counts how often each request was sent, by its key."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None, token: str | None = None) -> None:
        super().__init__(url, tls=tls, token=None if token is None else lambda: token)
        self.sent = Counter[str | None]()

    @property
    def answered_by(self) -> int:
        """Which of the addresses has answered last."""
        return self._at

    def _once(self, asked: Asked, at: int) -> Any:
        self.sent[asked.headers.get("Idempotency-Key")] += 1
        return super()._once(asked, at)


class Answered(NamedTuple):
    """When a request was answered, of ``time.monotonic``, and which of the addresses did."""

    at_s: float
    by: int


def change_s(answers: Sequence[Answered]) -> float | None:
    """Return the time from the last answer of one controller to the first one of the other, s; None if none changed.

    >>> change_s([Answered(1.0, 0), Answered(1.25, 0), Answered(1.5, 1), Answered(2.5, 1)])
    0.25
    """
    return next((later.at_s - sooner.at_s for sooner, later in pairwise(answers) if sooner.by != later.by), None)


def longest_s(answers: Sequence[Answered]) -> float:
    """Return the longest time from one answer to the next, s.

    >>> longest_s([Answered(1.0, 0), Answered(1.25, 0), Answered(1.5, 1), Answered(2.5, 1)])
    1.0
    """
    return max(later.at_s - sooner.at_s for sooner, later in pairwise(answers))


@dataclass(slots=True)
class Script:
    """Asks for one reservation after the other, each until it is answered.

    Attributes:
        urls: the controllers.
        ends: the hosts for which it reserves.
        start_s: when the reservations begin, Unix time.
        tls: whom it believes, of controllers that speak TLS.
        token: that it shows.
        before: how many reservations there are that it has not made.
        answered: by key, the reservation.
    """

    urls: tuple[str, ...]
    ends: tuple[str, str]
    start_s: int
    tls: ssl.SSLContext | None = None
    token: str | None = None
    before: int = 0
    answered: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _client: CountingClient = field(init=False)

    def __post_init__(self) -> None:
        """Make its client."""
        self._client = CountingClient(",".join(self.urls), self.tls, self.token)

    def asks(self) -> Answered:
        """Make a reservation at whoever takes it."""
        key, ends_s = f"pair-{next(self._numbers)}", time.monotonic() + PATIENCE_S
        while True:
            try:
                self.answered[key] = self._client.hold_reservation(self.wanted(), idempotency_key=key)["id"]
            except (NoAnswer, ApiProblem):
                if time.monotonic() > ends_s:
                    raise
            else:
                return Answered(time.monotonic(), self._client.answered_by)

    def answers(self, each_s: float, happens: Callable[[], None]) -> list[Answered]:
        """Return the answers that it has while something happens, asking again so long after each."""
        ended = Event()

        def asks() -> list[Answered]:
            answers = [self.asks()]
            while not ended.wait(each_s):
                answers.append(self.asks())
            return [*answers, self.asks()]

        with ThreadPoolExecutor(1) as thread:
            asking = thread.submit(asks)
            try:
                happens()
            finally:
                ended.set()
            return asking.result()

    def kept(self, leader: Client) -> dict[str, int]:
        """Return what has become of the answers, where nothing is left to be done, by asking for each once more."""
        again = {key: leader.hold_reservation(self.wanted(), idempotency_key=key)["id"] for key in self.answered}
        listed = [each["id"] for each in leader.all_reservations()]
        others = sum(again[key] != known for key, known in self.answered.items())
        return {
            "answers": len(self.answered),
            "asked_twice": sum(times > 1 for times in self._client.sent.values()),
            "lost": sum(known not in listed for known in self.answered.values()),
            "done_twice": others + len(listed) - self.before - len(set(self.answered.values())),
        }

    def wanted(self) -> ReservationIn:
        """Return what it asks for."""
        return {
            "from": self.ends[0],
            "to": self.ends[1],
            "rate": "1 Mbit/s",
            "start": shown_time(self.start_s * 1_000_000),
            "duration_s": 60,
        }
