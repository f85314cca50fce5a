"""The streams to all controllers: one obeys the controller of the highest epochs, and tells every one of them all."""

import threading
from collections.abc import Iterable, Iterator, Mapping

from hostagent.agent.stream import ControllerStream
from topology.protocol import Demand, to_bytes


class OpenStreams:
    """Those that were dialled and are not over; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._demand_said: dict[ControllerStream, Mapping[str, Demand]] = {}  # what each knows of watched entries

    def __iter__(self) -> Iterator[ControllerStream]:
        """Yield those there are now."""
        with self._lock:
            found = tuple(self._demand_said)
        return iter(found)

    def add(self, stream: ControllerStream) -> None:
        """Take one in."""
        with self._lock:
            self._demand_said[stream] = {}

    def remove(self, stream: ControllerStream) -> None:
        """Forget one."""
        with self._lock:
            del self._demand_said[stream]

    def send(self, message: bytes, *, but: ControllerStream | None = None) -> None:
        """Have a message sent by all of them but one."""
        for stream in self:
            if stream is not but:
                stream.send(message)

    def tell_demand(self, demands: Iterable[Demand]) -> None:
        """Tell those of the demand of all watched entries who do not know it."""
        now = {demand.name: demand for demand in demands}
        with self._lock:
            known = self._demand_said
            self._demand_said = dict.fromkeys(known, now)
        for stream, said in known.items():
            for name, demand in now.items():
                if said.get(name) != demand:
                    stream.send(to_bytes(demand))

    def cancel(self, why: str = "") -> None:
        """End all; those who read hear why, if it is said."""
        for stream in self:
            stream.cancel(why)
