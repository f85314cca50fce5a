"""The stores of this host: looked at once a second, told to the controller."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from hostagent.doctor.connections import ReceivingConnection, receiving
from hostagent.log import log
from hostagent.stores.disk import Disk, pressure
from hostagent.stores.estimate import SocketIntake, StoreIntake, StoreLook, intake
from hostagent.stores.paths import looked_at
from hostagent.stores.settings import IntakeStore
from topology.telemetry import StoreTelemetry

STANDS_SHARE = 16  # a store that drains less than a sixteenth of what was told stands still: that is no other rate
NEWS_SHARE = 4  # a quarter less or more than what was told is news


class Stores:
    """What each store takes.

    Args:
        settings: the stores.
        connections: returns those that receive now.
        now_ns: the time, CLOCK_MONOTONIC.
    """

    def __init__(
        self,
        settings: Iterable[IntakeStore],
        connections: Callable[[], Iterable[ReceivingConnection]] = receiving,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._stores = tuple(settings)
        resolved = looked_at((store.path for store in self._stores), Path.resolve)
        self._disks = {store.called: Disk(resolved[store.path]) for store in self._stores if store.path in resolved}
        self._connections = connections
        self._now_ns = now_ns
        self._before: dict[str, StoreLook] = {}
        self._told_bps: dict[str, int] = {}
        self._had_news = False

    def has_news(self) -> bool:
        """Return whether a store of which nobody has said what it takes drains at another rate than was told last.

        What was news is told again after as long: nothing is believed that was seen once.
        """
        had, self._had_news = self._had_news, False
        if not self._told_bps or all(store.rate for store in self._stores):
            return False
        try:
            looks = self._looks()
        except OSError:
            return False  # the next call of told says so
        seen = {name: intake(self._before[name], look) for name, look in looks.items() if name in self._told_bps}
        self._had_news = any(
            one.is_waiting and _is_other(self._told_bps[name], one.drained_bps) for name, one in seen.items()
        )
        return had or self._had_news

    def told(self) -> tuple[StoreTelemetry, ...]:
        """Return what each has taken since the call before; nothing at the first, or if nobody can look."""
        if not self._stores:
            return ()
        try:
            looks = self._looks()
        except OSError as error:
            log.warning("agent.stores_not_seen", why=str(error))
            self._before, self._told_bps = {}, {}
            return ()
        before, self._before = self._before, looks
        told = tuple(
            _telemetry(store, intake(before[store.called], looks[store.called], store.rate, store.buffer))
            for store in self._stores
            if store.called in before
        )
        self._told_bps = {one.name: one.drained_bps for one in told}
        return told

    def _looks(self) -> dict[str, StoreLook]:
        """Return what is seen of each store; a connection is of the first that takes it."""
        now_ns, found = self._now_ns(), dict[str, dict[int, SocketIntake]]()
        stalled = pressure()
        for one in self._connections():
            store = next((s for s in self._stores if s.takes(one.local_port, one.peer)), None)
            if store is not None:
                seen = SocketIntake(one.received_bytes, one.unread_bytes, one.room_bytes)
                found.setdefault(store.called, {})[one.cookie] = seen
        disks = {name: disk.state() for name, disk in self._disks.items()}
        return {
            store.called: StoreLook(now_ns, found.get(store.called, {}), disks.get(store.called), stalled)
            for store in self._stores
        }


def _is_other(told_bps: int, now_bps: int) -> bool:
    return now_bps * STANDS_SHARE >= told_bps and abs(now_bps - told_bps) * NEWS_SHARE > told_bps


def _telemetry(store: IntakeStore, seen: StoreIntake) -> StoreTelemetry:
    """Return the message on a store; what its operator knows is said in place of what was measured."""
    return StoreTelemetry(
        name=store.called,
        drained_bps=seen.drained_bps,
        is_waiting=seen.is_waiting,
        unread_bytes=seen.unread_bytes,
        room_bytes=seen.room_bytes,
        brake=seen.brake,
        rate_bps=store.rate,
        first_port=store.ports.first if store.ports else 0,
        last_port=store.ports.last if store.ports else 65535,
        senders=store.senders,
        most_bytes=seen.most_bytes,
    )
