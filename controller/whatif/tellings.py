"""What hosts tell the controller each second, where stores are: what has arrived, and how much room there is. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller.whatif.receivers import Receivers
from controller.whatif.underway import Underway
from controller.whatif.virtual_site import VirtualSite
from topology.telemetry import StoreTelemetry

EVERY_US = 1_000_000
STEADY = 64  # so many alike say nothing new: the controller has learnt from them what there is to learn


@dataclass
class Tellings:
    """Tells of stores while something comes to one or waits there; the last says that all is drained.

    Attributes:
        virtual: who is told.
        receivers: the stores.
        transfers: by name, what is under way.
        foresee: lets something happen at a time.
    """

    virtual: VirtualSite
    receivers: Receivers
    transfers: Mapping[str, Underway]
    foresee: Callable[[int, Callable[[], None]], None]
    _told: dict[str, tuple[StoreTelemetry, ...]] = field(default_factory=dict)
    _alike: int = 0
    _goes_on: bool = False

    def begin(self) -> None:
        """Let hosts begin to tell, if there is something to tell and they do not yet."""
        if not self._goes_on and self.receivers.is_busy:
            self._goes_on = True
            self.receivers.count_anew()  # what went while nobody told is not of the second that begins
            self.foresee(self.virtual.now_us + EVERY_US, self._tell)

    def _tell(self) -> None:
        """Tell of the second before; and again after the next one, if there may be something new then."""
        network, now_us = self.virtual.site.network, self.virtual.now_us
        for known in self.transfers.values():
            for one in known.sendings:
                if one.host in self.virtual.metered:
                    continue  # it has no agent: nobody counts there
                rtt_us = network.path_rtt_us(one.path)
                self.virtual.delivered(one.host, one.flow, one.confirmed_bytes(now_us, rtt_us), known.begun_us)
        told = {host: tuple(one.tells(EVERY_US) for one in found) for host, found in self.receivers.stores.items()}
        for host, stores in told.items():
            self.virtual.told(host, stores)
        self._alike = self._alike + 1 if told == self._told else 0
        self._told = told
        self._goes_on = not self._alike or (self.receivers.is_busy and self._alike < STEADY)
        if self._goes_on:
            self.foresee(now_us + EVERY_US, self._tell)
