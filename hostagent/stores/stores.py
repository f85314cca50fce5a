"""The stores of this host: looked at once a second, told to the controller."""

import time
from collections.abc import Callable, Iterable

from hostagent.doctor.connections import ReceivingConnection, receiving
from hostagent.log import log
from hostagent.stores.disk import Disk, pressure
from hostagent.stores.estimate import SocketIntake, StoreIntake, StoreLook, intake
from hostagent.stores.settings import IntakeStore
from topology.protocol import StoreTelemetry


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
        self._disks = {store.called: Disk(store.path) for store in self._stores}
        self._connections = connections
        self._now_ns = now_ns
        self._before: dict[str, StoreLook] = {}

    def told(self) -> tuple[StoreTelemetry, ...]:
        """Return what each has taken since the call before; nothing at the first, or if nobody can look."""
        if not self._stores:
            return ()
        try:
            looks = self._looks()
        except OSError as error:
            log.warning("agent.stores_not_seen", why=str(error))
            self._before = {}
            return ()
        before, self._before = self._before, looks
        return tuple(
            _telemetry(store, intake(before[store.called], looks[store.called], store.rate))
            for store in self._stores
            if store.called in before
        )

    def _looks(self) -> dict[str, StoreLook]:
        """Return what is seen of each store; a connection is of the first that takes it."""
        now_ns, found = self._now_ns(), dict[str, dict[int, SocketIntake]]()
        stalled = pressure()
        for one in self._connections():
            store = next((s for s in self._stores if s.takes(one.local_port, one.peer)), None)
            if store is not None:
                seen = SocketIntake(one.received_bytes, one.unread_bytes, one.room_bytes)
                found.setdefault(store.called, {})[one.cookie] = seen
        return {
            store.called: StoreLook(now_ns, found.get(store.called, {}), self._disks[store.called].state(), stalled)
            for store in self._stores
        }


def _telemetry(store: IntakeStore, seen: StoreIntake) -> StoreTelemetry:
    """Return the message on a store; what its operator knows is said in place of what was measured."""
    return StoreTelemetry(
        name=store.called,
        drained_bps=seen.drained_bps,
        is_waiting=seen.is_waiting,
        unread_bytes=seen.unread_bytes,
        room_bytes=seen.room_bytes if store.buffer is None else max(0, store.buffer - seen.unread_bytes),
        brake=seen.brake,
        rate_bps=store.rate,
        first_port=store.ports.first if store.ports else 0,
        last_port=store.ports.last if store.ports else 65535,
        senders=store.senders,
    )
