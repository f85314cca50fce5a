"""Stores at the receiving hosts: what one has taken in and not drained, and what it lets in when full. Pure.

What their hosts' agents tell of them is what the controller knows of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from controller.plan.intake import Brake, Intake
from controller.plan.keys import FlowId
from controller.plan.plan import Flow
from controller.state.receivers import is_kept_in
from controller.state.reported import KnownStore
from controller.whatif.begun import Begun
from controller.whatif.sendings import US, let_in
from controller.whatif.supposed import StoreBucket
from topology.network import Network
from topology.telemetry import StoreBrake, StoreTelemetry

NAME = "store"  # of one that a scenario says


def said_store(host: str, bucket: StoreBucket) -> KnownStore:
    """Return what is known of a store whose operator has said what it drains, while it is empty."""
    drains_bps, holds_bytes = bucket.drains_bps, bucket.holds_bytes
    told = StoreTelemetry(NAME, 0, False, 0, holds_bytes, StoreBrake.DISK, rate_bps=drains_bps, most_bytes=holds_bytes)
    return KnownStore(told, Intake(host, drains_bps, holds_bytes, Brake.DISK, is_fixed=True))


def with_said(begun: Begun, stores: Mapping[str, StoreBucket], network: Network) -> Begun:
    """Return what there is already, with the stores that a scenario says."""
    known = {**begun.stores}
    for name, bucket in stores.items():
        host = network.machine(name)
        known[host] = {NAME: said_store(host, bucket)}
    return replace(begun, stores=known)


@dataclass(slots=True)
class FillingStore:
    """A store, and how full it is.

    Attributes:
        told: what its host's agent told last.
        drains_bps: payload.
        holds: bits x 1,000,000 that it takes at once when it is empty.
        level: those that are not drained yet.
        inflow_bps: what comes now.
        drained: bits x 1,000,000 since its host told of it.
        waited_us: for how long something has waited since then.
    """

    told: StoreTelemetry
    drains_bps: int
    holds: int
    level: int
    inflow_bps: int = 0
    drained: int = 0
    waited_us: int = 0

    @property
    def is_busy(self) -> bool:
        """Whether something comes, or waits."""
        return bool(self.level or self.inflow_bps)

    def goes_on(self, took_us: int) -> None:
        """Take in what came for a time, and drain."""
        come = self.level + self.inflow_bps * took_us
        level = min(self.holds, max(0, come - self.drains_bps * took_us))
        self.drained += come - level
        self.waited_us += took_us if self.level and level else 0
        self.level = level

    def tells(self, since_us: int) -> StoreTelemetry:
        """Return what its host's agent tells of it after a time, and count anew."""
        drained_bps, is_waiting = self.drained // since_us, self.waited_us >= since_us
        room_bytes = (self.holds - self.level) // (8 * US)
        self.told = replace(self.told, drained_bps=drained_bps, is_waiting=is_waiting, room_bytes=room_bytes)
        self.count_anew()
        return self.told

    def count_anew(self) -> None:
        """Count what is drained, and how long something waits, from now on."""
        self.drained = self.waited_us = 0


class Receivers:
    """All stores of which it is known what they drain; others take everything."""

    def __init__(self, network: Network, stores: Mapping[str, Mapping[str, KnownStore]]) -> None:
        """Begin with them as they were told of, by host, by name."""
        self._network = network
        self.stores: dict[str, list[FillingStore]] = {}
        for host, by_name in sorted(stores.items()):
            found = [_bucket(one, one.intake.drain_bps) for one in by_name.values() if one.intake.drain_bps is not None]
            if found:
                self.stores[host] = found

    def _all(self) -> Iterator[FillingStore]:
        return (one for of_host in self.stores.values() for one in of_host)

    @property
    def is_busy(self) -> bool:
        """Whether something comes to one of them, or waits there."""
        return any(one.is_busy for one in self._all())

    def count_anew(self) -> None:
        """Let all count what they drain from now on."""
        for one in self._all():
            one.count_anew()

    def go_on(self, took_us: int) -> None:
        """Take in what came for a time, and drain."""
        for one in self._all():
            one.goes_on(took_us)

    def limited(self, rates_bps: Mapping[FlowId, int], flows: Mapping[FlowId, Flow]) -> dict[FlowId, int]:
        """Return the rates at which flows arrive: to a full store, no more together than it drains."""
        found = dict(rates_bps)
        if not self.stores:
            return found
        to_host: dict[str, list[tuple[FlowId, Flow]]] = {}
        for name, flow in flows.items():
            to_host.setdefault(self._network.machine(flow.target), []).append((name, flow))
        for host, of_host in self.stores.items():
            left = to_host.get(host, [])
            for one in of_host:
                kept = {name for name, flow in left if is_kept_in(flow, one.told, self._network)}
                left = [(name, flow) for name, flow in left if name not in kept]
                found |= self._let_into(one, {name: rates_bps[name] for name in rates_bps if name in kept})
        return found

    def _let_into(self, one: FillingStore, wanted_bps: dict[FlowId, int]) -> dict[FlowId, int]:
        one.inflow_bps = sum(wanted_bps.values())
        if one.level < one.holds or one.inflow_bps <= one.drains_bps:
            return {}
        one.inflow_bps = one.drains_bps
        return let_in(wanted_bps, one.drains_bps)

    @property
    def changes_in_us(self) -> int | None:
        """After how long the next store is full; None if none will be."""
        times_us = []
        for one in self._all():
            grows_bps = one.inflow_bps - one.drains_bps
            if grows_bps > 0:
                times_us.append(-(-(one.holds - one.level) // grows_bps))
        return min(times_us, default=None)


def _bucket(known: KnownStore, drains_bps: int) -> FillingStore:
    holds_bytes = max(known.told.most_bytes, known.told.room_bytes)
    return FillingStore(
        known.told, drains_bps, holds_bytes * 8 * US, level=(holds_bytes - known.told.room_bytes) * 8 * US
    )
