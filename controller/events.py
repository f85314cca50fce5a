"""What happens, under one name in the log and in the event stream: a bounded memory of it, and those who listen.

Numbers grow by one and start at the clock's microseconds, so that they grow over restarts too: a listener that comes
back with the number it saw last is told what it has missed, or that this is not known any more.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

import structlog

BUFFERED = 10_000  # events that are remembered; a night of an observatory has some hundreds
KEEP_ALIVE_S = 15.0  # a listener that hears nothing for this long is sent a sign of life, so that no proxy hangs up

log = structlog.get_logger()

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that has happened.

    Attributes:
        number: grows by one from each to the next.
        at_us: when, Unix time.
        monotonic_s: when, by the clock that nobody can set.
        name: what, e.g. ``reservation.held``.
        fields: to what, and how.
    """

    number: int
    at_us: int
    monotonic_s: float
    name: str
    fields: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Heard:
    """What a listener is told.

    Attributes:
        lost: whether something before ``events`` is not remembered any more.
        events: what has happened since, oldest first.
        last: the number of the latest event there is.
    """

    lost: bool
    events: tuple[Happened, ...]
    last: int


@dataclass(eq=False, slots=True)
class _Listener:
    """Wakes a coroutine from whatever thread; once, until it has looked."""

    loop: asyncio.AbstractEventLoop
    news: asyncio.Event = field(default_factory=asyncio.Event)
    woken: bool = False


class Events:
    """The latest events. Any thread may publish.

    Attributes:
        before: the number below that of the first event there ever was.
    """

    def __init__(self, now_us: Callable[[], int], buffered: int = BUFFERED, keep_alive_s: float = KEEP_ALIVE_S) -> None:
        self._now_us = now_us
        self._lock = threading.Lock()
        self._latest: deque[Happened] = deque(maxlen=buffered)
        self._next = now_us()
        self.before = self._next - 1
        self._listeners: set[_Listener] = set()
        self._keep_alive_s = keep_alive_s
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether the process ends."""
        return self._closed

    @property
    def last(self) -> int:
        """The number of the latest event; before the first, the one below it."""
        with self._lock:
            return self._next - 1

    def publish(self, name: str, *, level: str = "info", **fields: Value) -> None:
        """Tell everybody who listens, and the log, where it stands under the same name with the same fields."""
        with self._lock:
            self._latest.append(Happened(self._next, self._now_us(), time.monotonic(), name, fields))
            self._next += 1
            self._wake()
        getattr(log, level)(name, **fields)

    def since(self, number: int) -> Heard:
        """Return what has happened after an event."""
        with self._lock:
            first = self._next - len(self._latest)
            lost = not first - 1 <= number < self._next
            newest_first = takewhile(lambda event: lost or event.number > number, reversed(self._latest))
            return Heard(lost, tuple(newest_first)[::-1], self._next - 1)

    async def listen(self, number: int) -> AsyncIterator[Heard | None]:
        """Yield what has happened after an event, and then what happens, until the events are closed.

        A listener that is too slow loses what it cannot take in, and is told so. None is a sign of life.
        """
        listener = _Listener(asyncio.get_running_loop())
        with self._lock:
            self._listeners.add(listener)
        try:
            while not self._closed:
                listener.news.clear()
                listener.woken = False
                heard = self.since(number)
                if heard.lost or heard.events:
                    number = heard.last
                    yield heard
                    continue
                try:
                    await asyncio.wait_for(listener.news.wait(), self._keep_alive_s)
                except TimeoutError:
                    yield None
        finally:
            with self._lock:
                self._listeners.discard(listener)

    def close(self) -> None:
        """Let every listener go: the process ends."""
        with self._lock:
            self._closed = True
            self._wake()

    def _wake(self) -> None:
        """Wake who sleeps; under the lock."""
        for listener in self._listeners:
            if not listener.woken and not listener.loop.is_closed():
                listener.woken = True
                listener.loop.call_soon_threadsafe(listener.news.set)
