"""What is asked of the state for each promise, found once for all that are looked at together. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from controller.plan.clock import Instant
from controller.plan.keys import FlowId
from controller.plan.paths import Path
from controller.plan.reservations import Reservation
from controller.plan.told_apart import planned_parts_bps
from controller.site import Site
from controller.state.desired import basis, hosts_absent, path_now, plan_input
from controller.state.reported import Hosts
from controller.state.starting import STARTING_US
from controller.state.value import SiteState


class Circumstances(NamedTuple):
    """All that decides whether promises are carried; while it is the same, so are the answers.

    Attributes:
        parts: what is replaced, never changed: the same if they are the same objects.
        values: the rest, by value.
    """

    parts: tuple[object, ...]
    values: tuple[object, ...]

    def are(self, others: "Circumstances | None") -> bool:
        """Return whether they are the same."""
        if others is None or self.values != others.values:
            return False
        return all(one is other for one, other in zip(self.parts, others.parts, strict=True))


@dataclass(frozen=True)
class Moment:
    """The state at an instant. The ledger in it may change meanwhile: what that decides is asked anew each time.

    Attributes:
        site: what does not change.
        state: what does.
        now: the instant.
    """

    site: Site
    state: SiteState
    now: Instant

    @cached_property
    def dead(self) -> frozenset[str]:
        """The circuits whose lines are down."""
        return self.state.reported.lines.down(self.now.elapsed_us)

    @cached_property
    def down(self) -> frozenset[str]:
        """Those, and the circuits that are to carry nothing now."""
        return self.dead | self.state.wished.ledger.closed(self.now.calendar_us)

    def way_of(self, host: str, name: FlowId) -> Path | None:
        """Return the path that the desired plan has for a host's flow; None if it has none."""
        own = self.state.desired.plan.of_host(self.site.network.machine(host))
        return next((e.flow.path for e in own if name in e.flow.names), None)

    @cached_property
    def kept_bps(self) -> Mapping[FlowId, int]:
        """What each flow keeps of its promise beside the circuits that are down, if all had something to send now."""
        state = self.state
        all_send = replace(state.reported, hosts=Hosts({}))  # of nobody is it known that he waits
        absent = hosts_absent(self.site, state.reported, self.now.elapsed_us)
        down, now_us = state.desired.plan.down, self.now.calendar_us
        flows = plan_input(self.site, state.wished, all_send, down, now_us, absent).flows
        return {name: bps for flow in flows for name, bps in planned_parts_bps(flow, flow.floor_bps).items()}

    @cached_property
    def is_starting(self) -> bool:
        """Whether this process has not had the time yet to find its switches and agents, which go on as granted."""
        has_begun = self.now.elapsed_us >= self.state.started_us + STARTING_US
        return not self.state.installed.hosts_epoch and not has_begun

    @property
    def is_current(self) -> bool:
        """Whether nothing has changed that the desired plan is made of."""
        return self.state.wished.version == self.state.desired.basis.wished and self._others_are_current

    @cached_property
    def _others_are_current(self) -> bool:
        """Whether that is so of all but the ledger."""
        known, state = self.state.desired.basis, self.state
        made_of = basis(self.site, state.wished, state.reported, state.installed, self.now)
        return replace(made_of, wished=known.wished) == known

    def circumstances(self) -> Circumstances:
        """Return all that decides, beside a reservation itself, whether it is carried; as it is now."""
        wished, reported, now_us = self.state.wished, self.state.reported, self.now.calendar_us
        bought_bps = tuple(wished.bought_bps(circuit, now_us) for circuit in wished.purchases)
        parts = wished.ledger, wished.purchases, reported.wiring, reported.alarms
        decided = wished.version, reported.demands, self.down, bought_bps, self.is_starting, self.is_current
        return Circumstances((*parts, self.state.installed, self.state.desired), decided)

    def path_of(self, known: Reservation) -> Path:
        """Return the path that a reservation takes now; empty if none of its circuits that are bought is up."""
        return path_now(self.site, self.state.wished, known, self.down, self.now.calendar_us)
