"""What a switch holds under one plan after the other, worked out where the plans differ.

The answer is the one of :func:`~controller.southbound.openflow.desired.switch_state`, whatever came before.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from operator import is_
from typing import Generic, TypeVar

from controller.plan.keys import ClassShare
from controller.plan.plan import LinkPlan, Plan
from controller.plan.policy import Policy
from controller.southbound.openflow.desired import class_meters, lane_meters, switch_groups
from controller.southbound.openflow.lanes import Lane, lane_meter_ids, lanes_of_share
from controller.southbound.openflow.meter_numbers import LaneKey, MeterNumbers
from controller.southbound.openflow.plan_lanes import NO_LANES, LaneWays, PlanLanes
from controller.southbound.openflow.rules import (
    crossing_rules,
    leave_rules,
    pair_rules,
    standing_rules,
    used_heads,
)
from controller.southbound.openflow.state import DropMeter, Rule, SwitchState
from topology.network import Hop, Network, Switch

T = TypeVar("T")


class _Latest(Generic[T]):
    """What was made last, and of what."""

    def __init__(self) -> None:
        self._parts: tuple[object, ...] | None = None
        self._value: object = None
        self._made: T | None = None

    def made(self, parts: Collection[object], value: object, make: Callable[[], T]) -> T:
        """Return what is made of some parts and a value: the very same while the parts are, and the value is equal."""
        known = self._parts
        is_same = known is not None and len(known) == len(parts) and all(map(is_, known, parts))
        if self._made is None or not is_same or self._value != value:
            self._parts, self._value, self._made = tuple(parts), value, make()
        return self._made


@dataclass(frozen=True, slots=True)
class _OfShare:
    """The lanes of a class that enter a circuit, what they were made of, and their meters."""

    ways: LaneWays
    meter_bps: int
    lanes: tuple[Lane, ...] = ()
    meters: frozenset[DropMeter] = frozenset()


@dataclass(slots=True)
class _OfPair:
    """The lanes from a host here to one beyond, what their rules depend on, and these."""

    lanes: dict[LaneKey, Lane]
    made_of: Collection[object] = ()
    rules: frozenset[Rule] = frozenset()


class SwitchBook:
    """One switch. Any thread may ask."""

    def __init__(self, switch: Switch, policy: Policy, numbers: MeterNumbers) -> None:
        self._switch, self._policy, self._numbers = switch, policy, numbers
        self._lock = threading.Lock()
        self._begin(None)

    def _begin(self, network: Network | None) -> None:
        """Forget what was made for a network in which ports had other numbers."""
        self._network = network
        self._meter_ids: Mapping[LaneKey, int] = {}
        self._begun: Mapping[ClassShare, LaneWays] = {}
        self._shares: dict[ClassShare, _OfShare] = {}
        self._pairs: dict[tuple[str, str], _OfPair] = {}
        self._flow: frozenset[Rule] = frozenset()
        self._class_meters: dict[str, tuple[LinkPlan, frozenset[DropMeter]]] = {}
        self._crossing, self._leave = _Latest[frozenset[Rule]](), _Latest[frozenset[Rule]]()
        self._rules, self._meters = _Latest[frozenset[Rule]](), _Latest[frozenset[DropMeter]]()

    def state(self, network: Network, plan: Plan, found: PlanLanes) -> SwitchState:
        """Return all rules, meters and groups of the switch under a plan, of which these are the lanes.

        Raises:
            MetersExhausted: more is planned there than there are meters.
        """
        with self._lock:
            return self._state(network, plan, found)

    def _state(self, network: Network, plan: Plan, found: PlanLanes) -> SwitchState:
        if network is not self._network:
            self._begin(network)
        switch, policy, down = self._switch, self._policy, plan.down
        self._follow(network, plan, found.begun.get(switch.name, {}))
        ways = found.crossing.get(switch.name, NO_LANES)
        heads = used_heads(network, switch, down, found)
        parts = (
            standing_rules(network, switch, down),
            self._flow,
            self._crossing.made((ways,), down, lambda: frozenset(crossing_rules(network, switch, ways, policy, down))),
            self._leave.made((), heads, lambda: frozenset(leave_rules(network, switch, policy, heads))),
        )
        rules = self._rules.made(parts, None, lambda: frozenset[Rule]().union(*parts))
        meters = [self._class_meters_at(network, plan, head) for head in sorted(heads)]
        meters += [of_share.meters for of_share in self._shares.values()]
        held = self._meters.made(meters, None, lambda: frozenset[DropMeter]().union(*meters))
        return SwitchState(rules, held, switch_groups(network, switch))

    def _class_meters_at(self, network: Network, plan: Plan, head: str) -> frozenset[DropMeter]:
        link, known = plan.links[Hop(self._switch.name, head)], self._class_meters.get(head)
        if known is None or known[0] is not link:
            known = self._class_meters[head] = link, frozenset(class_meters(network, self._switch, plan, (head,)))
        return known[1]

    def _follow(self, network: Network, plan: Plan, begun: Mapping[ClassShare, LaneWays]) -> None:
        """Bring lanes, their meters and their rules to what begins here under a plan."""
        numbers, name = self._numbers, self._switch.name
        if begun is not self._begun or numbers.latest(name) is not self._meter_ids:
            self._begun, before = begun, self._meter_ids
            self._meter_ids = lane_meter_ids(network, self._switch, begun, numbers)
            if before is not self._meter_ids:
                self._renumber(before)
        touched: set[tuple[str, str]] = set()
        for share in (*self._shares.keys() - begun.keys(), *begun):
            ways = begun.get(share, NO_LANES)
            meter_bps = plan.links[share.hop].classes[share.flow_class].meter_bps
            known = self._shares.get(share) or _OfShare(NO_LANES, 0)
            if ways is known.ways and meter_bps == known.meter_bps:
                continue
            lanes = lanes_of_share(network, plan, share, ways, self._meter_ids) if ways else ()
            self._shares[share] = _OfShare(ways, meter_bps, lanes, frozenset(lane_meters(lanes)))
            touched |= self._replace(known.lanes, lanes)
            if not ways:
                del self._shares[share]
        self._make_rules(network, touched)

    def _renumber(self, before: Mapping[LaneKey, int]) -> None:
        """Have lanes made anew whose meters have other numbers now."""
        moved = {key for key, number in self._meter_ids.items() if before.get(key, number) != number}
        for share, known in self._shares.items():
            if not moved.isdisjoint(known.ways):
                self._shares[share] = _OfShare({}, -1, known.lanes)

    def _replace(self, old: tuple[Lane, ...], new: tuple[Lane, ...]) -> set[tuple[str, str]]:
        """Put lanes in place of others; return the two hosts of each."""
        for lane in old:
            self._pairs[lane.near.name, lane.far.name].lanes.pop(lane.key)
        for lane in new:
            self._pairs.setdefault((lane.near.name, lane.far.name), _OfPair({})).lanes[lane.key] = lane
        return {(lane.near.name, lane.far.name) for lane in (*old, *new)}

    def _make_rules(self, network: Network, touched: set[tuple[str, str]]) -> None:
        """Make the rules of some pairs of hosts anew, where anything has changed that they depend on."""
        gone, come = set[Rule](), set[Rule]()
        for pair in touched:
            known = self._pairs[pair]
            made_of = {(lane.mark, lane.flow_class, lane.hop, lane.meter_id) for lane in known.lanes.values()}
            if made_of != known.made_of:
                gone |= known.rules
                of_pair = known.lanes.values()
                known.rules = frozenset(pair_rules(network, of_pair, self._policy) if of_pair else ())
                known.made_of = made_of
                come |= known.rules
            if not known.lanes:
                del self._pairs[pair]
        if gone != come:
            self._flow = (self._flow - gone) | come
