"""Hosts' agents as a pair of controllers hears them: a stream to each, the highest epoch is obeyed, leases run out."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from topology.protocol import (
    ATTACH_PATH,
    Allocation,
    Allocations,
    Applied,
    Declined,
    Hello,
    Telemetry,
    parsed_allocations,
    to_bytes,
)

DIALS_EVERY_S = 0.1
TELLS_EVERY_S = 1.0


@dataclass(slots=True)
class PairAgent:
    """One host's. It keeps to the rules of the real one, and has no kernel.

    Attributes:
        host: whose.
        addresses: where the controllers listen for agents.
        epoch: what it obeys.
        renewed_s: when that was said last, of ``time.monotonic``.
        obeyed_s: by epoch, when it was obeyed first.
        by: which controller said it.
        fallbacks: how often a lease has run out.
        went_back: epochs that were obeyed after a higher one; there must be none.
    """

    host: str
    addresses: tuple[str, ...]
    epoch: int = 0
    renewed_s: float = 0.0
    obeyed_s: dict[int, float] = field(default_factory=dict)
    by: int = -1
    fallbacks: int = 0
    went_back: int = 0
    _lease_s: float = 0.0
    _entries: tuple[Allocation, ...] = ()
    _streams: dict[int, ClientConnection] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _end: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Call all controllers, again and again, until the end."""
        threads = [threading.Thread(target=self._stay, args=(n,), daemon=True) for n in range(len(self.addresses))]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._end.set()
            for thread in threads:
                thread.join(5)

    def _stay(self, number: int) -> None:
        while not self._end.is_set():
            with contextlib.suppress(OSError, WebSocketException, EOFError):
                address = f"ws://{self.addresses[number]}{ATTACH_PATH}"
                with connect(address, proxy=None, compression=None, open_timeout=2, close_timeout=0.1) as stream:
                    self._serve(number, stream)
            with self._lock:
                self._streams.pop(number, None)
            self._end.wait(DIALS_EVERY_S)

    def _serve(self, number: int, stream: ClientConnection) -> None:
        with self._lock:
            self._streams[number] = stream
            stream.send(to_bytes(self._hello()), text=True)
        told_s = 0.0
        while not self._end.is_set():
            with contextlib.suppress(TimeoutError):
                heard = parsed_allocations(stream.recv(timeout=0.1, decode=False))
                with self._lock:
                    answer = self._heard(number, heard)
                if answer is not None:
                    stream.send(to_bytes(answer), text=True)
            if time.monotonic() - told_s > TELLS_EVERY_S:
                told_s = time.monotonic()
                stream.send(to_bytes(Telemetry(self.epoch, self._left_ms())), text=True)

    def _left_ms(self) -> int:
        return max(0, round((self.renewed_s + self._lease_s - time.monotonic()) * 1000))

    def _hello(self) -> Hello:
        left_ms = self._left_ms()
        held = self._entries if left_ms else ()
        return Hello(self.host, "0", "6.12", self.epoch if held else 0, left_ms, held)

    def _heard(self, number: int, told: Allocations) -> Applied | Declined | None:
        """Obey a message, or not; under the lock."""
        now_s, left_ms = time.monotonic(), self._left_ms()
        if self._entries and not left_ms:
            self.fallbacks += 1
            self._entries = ()
        if not told.epoch:
            return None
        if told.epoch < self.epoch:
            return Declined(told.epoch, self.epoch, "older")
        is_news = told.epoch != self.epoch
        self.went_back += bool(self.obeyed_s) and told.epoch < max(self.obeyed_s)
        self.epoch, self.renewed_s, self._lease_s = told.epoch, now_s, told.lease_ms / 1000
        self._entries, self.by = told.entries, number
        self.obeyed_s.setdefault(told.epoch, now_s)
        if is_news:
            for other, stream in self._streams.items():
                if other != number:
                    with contextlib.suppress(OSError, WebSocketException):
                        stream.send(to_bytes(self._hello()), text=True)
        return Applied(told.epoch)
