"""Stores at the receiving hosts: what one has taken in and not drained, and what it lets in when full. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.plan.keys import FlowId
from controller.whatif.sendings import US, let_in
from controller.whatif.supposed import StoreBucket


@dataclass
class Receivers:
    """How full each store is.

    Attributes:
        stores: by host, what it can take; a host that is not there takes everything.
        level: by host, bits x 1,000,000 that are not drained yet.
    """

    stores: Mapping[str, StoreBucket]
    level: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with every store empty."""
        self.level = dict.fromkeys(self.stores, 0)
        self._inflow_bps = dict.fromkeys(self.stores, 0)

    def _holds(self, host: str) -> int:
        return self.stores[host].holds_bytes * 8 * US

    def go_on(self, took_us: int) -> None:
        """Take in what came for a time, and drain."""
        for host, store in self.stores.items():
            grown = self.level[host] + (self._inflow_bps[host] - store.drains_bps) * took_us
            self.level[host] = min(self._holds(host), max(0, grown))

    def limited(self, rates_bps: Mapping[FlowId, int], targets: Mapping[FlowId, str]) -> dict[FlowId, int]:
        """Return the rates at which flows arrive: to a full store, no more together than it drains."""
        found = dict(rates_bps)
        for host, store in self.stores.items():
            wanted = {name: bps for name, bps in rates_bps.items() if targets[name] == host}
            inflow_bps = sum(wanted.values())
            if self.level[host] >= self._holds(host) and inflow_bps > store.drains_bps:
                found |= let_in(wanted, store.drains_bps)
                inflow_bps = store.drains_bps
            self._inflow_bps[host] = inflow_bps
        return found

    @property
    def changes_in_us(self) -> int | None:
        """After how long the next store is full; None if none will be."""
        times_us = []
        for host, store in self.stores.items():
            grows_bps = self._inflow_bps[host] - store.drains_bps
            if grows_bps > 0:
                times_us.append(-(-(self._holds(host) - self.level[host]) // grows_bps))
        return min(times_us, default=None)
