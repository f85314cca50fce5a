"""What a switch holds under one plan after the other, worked out where the plans differ.

The answer is the one of :func:`~controller.southbound.openflow.desired.switch_state`, whatever came before.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Generic, TypeVar

from controller.plan.differences import differing_keys
from controller.plan.keys import ClassShare
from controller.plan.plan import Plan
from controller.plan.policy import Policy
from controller.southbound.openflow.aggregates import treated_in
from controller.southbound.openflow.circuit_ports import circuit_ports
from controller.southbound.openflow.desired import class_meters, sender_meters, switch_groups
from controller.southbound.openflow.flow_table import FlowTable
from controller.southbound.openflow.meter_numbers import MeterNumbers, SenderKey
from controller.southbound.openflow.plan_aggregates import (
    NO_AGGREGATES,
    NO_PLAN,
    AggregateKey,
    AggregateWays,
    PlanAggregates,
)
from controller.southbound.openflow.rules import (
    crossing_rules,
    leave_rules,
    sender_rules,
    standing_rules,
    used_heads,
)
from controller.southbound.openflow.senders import (
    PolicedSender,
    numbered_senders,
    sender_keys,
    senders_of_share,
    targets_apart,
)
from controller.southbound.openflow.shared import NOTHING, Pair, Treatment
from controller.southbound.openflow.state import DropMeter, Rule, SwitchState
from topology.network import Hop, Network, Switch
from topology.protocol import FlowClass

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
    """A class's aggregates that enter a circuit, what their meters were made of, these, and the rules that use them."""

    ways: AggregateWays
    meter_bps: int
    meters: frozenset[DropMeter] = frozenset()
    rule_of: Mapping[tuple[SenderKey, int], Rule] = field(default_factory=dict)  # by sender, and its meter's number
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
        self._meter_ids: Mapping[SenderKey, int] = {}
        self._begun: Mapping[ClassShare, AggregateWays] = {}
        heads = [] if network is None else [head for head, _ in circuit_ports(network, self._switch.name)]
        self._hops = frozenset(Hop(self._switch.name, head) for head in heads)
        self._plan = NO_PLAN.plan
        self._shares: dict[ClassShare, _OfShare] = {}
        self._keys: dict[ClassShare, tuple[AggregateWays, Mapping[AggregateKey, SenderKey]]] = {}
        self._pairs: dict[Pair, Treatment] = {}
        self._flow = FlowTable(self._switch, self._policy)
        self._class_meters: dict[str, frozenset[DropMeter]] = {}
        self._crossing, self._leave = _Latest[frozenset[Rule]](), _Latest[frozenset[Rule]]()
        self._rules, self._meters = _Latest[frozenset[Rule]](), _Latest[frozenset[DropMeter]]()

    def state(self, network: Network, plan: Plan, found: PlanAggregates) -> SwitchState:
        """Return all rules, meters and groups of the switch under a plan, of which these are the aggregates.

        Raises:
            MetersExhausted: more is planned there than there are meters.
        """
        with self._lock:
            return self._state(network, plan, found)

    def _state(self, network: Network, plan: Plan, found: PlanAggregates) -> SwitchState:
        if network is not self._network:
            self._begin(network)
        switch, policy, down = self._switch, self._policy, plan.down
        flow = self._follow(network, plan, found.begun.get(switch.name, {}))
        ways = found.crossing.get(switch.name, NO_AGGREGATES)
        heads = used_heads(network, switch, down, found)
        parts: tuple[frozenset[Rule], ...] = (
            standing_rules(network, switch, down),
            flow,
            self._crossing.made((ways,), down, lambda: frozenset(crossing_rules(network, switch, ways, policy, down))),
            self._leave.made((), heads, lambda: frozenset(leave_rules(network, switch, policy, heads))),
        )
        parts += tuple(of_share.rules for of_share in self._shares.values())
        rules = self._rules.made(parts, None, lambda: frozenset[Rule]().union(*parts))
        meters = [self._class_meters[head] for head in sorted(heads)]
        meters += [of_share.meters for of_share in self._shares.values()]
        held = self._meters.made(meters, None, lambda: frozenset[DropMeter]().union(*meters))
        return SwitchState(rules, held, switch_groups(network, switch))

    def _follow(self, network: Network, plan: Plan, begun: Mapping[ClassShare, AggregateWays]) -> frozenset[Rule]:
        """Bring classes' meters, senders, their meters and rules to what begins here; return the rules of the pairs.

        Of classes by circuits those are looked at of which the aggregates or the circuit's limits are other values.
        """
        touched = dict.fromkeys(differing_keys(self._begun, begun))
        for hop in (hop for hop in self._plan.hops_apart(plan) if hop in self._hops):
            self._class_meters[hop.head] = frozenset(class_meters(network, self._switch, plan, (hop.head,)))
            touched |= {ClassShare(hop, c): None for c in FlowClass}
        touched |= self._numbered(network, begun, touched)
        changed: dict[Pair, Treatment] = {}
        for share in touched:
            ways = begun.get(share, NO_AGGREGATES)
            meter_bps = plan.links[share.hop].classes[share.flow_class].meter_bps
            known = self._shares.get(share) or _OfShare(NO_AGGREGATES, 0)
            if ways is known.ways and meter_bps == known.meter_bps:
                continue
            self._treat(share, known.ways, ways, changed)
            if not ways:
                self._shares.pop(share, None)
                continue
            found = senders_of_share(plan, share, ways, self._keys_of(network, share, ways), self._meter_ids)
            self._shares[share] = self._policed(network, known, ways, meter_bps, found)
        for pair in (pair for pair, treatment in changed.items() if not treatment):
            del self._pairs[pair]
        self._begun, self._plan = begun, plan
        return self._flow.followed(network, plan.down, changed)

    def _policed(
        self, network: Network, known: _OfShare, ways: AggregateWays, meter_bps: int, found: Iterable[PolicedSender]
    ) -> _OfShare:
        """Return what a class by a circuit has for its senders now; rules are made of those that have come."""
        senders = {(sender.key, sender.meter_id): sender for sender in found}
        rule_of, rules = known.rule_of, known.rules
        if senders.keys() != rule_of.keys():
            come = {one: sender for one, sender in senders.items() if one not in rule_of}
            made = zip(come, sender_rules(network, self._switch, come.values()), strict=True)
            rule_of = {one: rule for one, rule in rule_of.items() if one in senders} | dict(made)
            rules = frozenset(rule_of.values())
        return _OfShare(ways, meter_bps, frozenset(sender_meters(senders.values())), rule_of, rules)

    def _numbered(
        self, network: Network, begun: Mapping[ClassShare, AggregateWays], touched: Iterable[ClassShare]
    ) -> dict[ClassShare, None]:
        """Number the meters of what begins here; return the classes by circuits of which one has another number now."""
        is_known = self._numbers.latest(self._switch.name) is self._meter_ids
        if is_known and all(self._has_same_senders(network, share, begun) for share in touched):
            return {}
        had = self._meter_ids
        keys = [self._keys_of(network, share, ways) for share, ways in begun.items()]
        self._meter_ids = numbered_senders(network, self._switch, keys, self._numbers)
        return {} if had is self._meter_ids else self._renumber(had)

    def _has_same_senders(self, network: Network, share: ClassShare, begun: Mapping[ClassShare, AggregateWays]) -> bool:
        """Return whether a class by a circuit has the senders that it had."""
        old, new = self._begun.get(share, NO_AGGREGATES), begun.get(share, NO_AGGREGATES)
        if old is new:
            return True
        had, have = ({*self._keys_of(network, share, ways).values()} for ways in (old, new))
        return had == have

    def _keys_of(self, network: Network, share: ClassShare, ways: AggregateWays) -> Mapping[AggregateKey, SenderKey]:
        """Return the senders of a class by a circuit, by aggregate: looked for again where those are others."""
        known = self._keys.get(share)
        if known is None or known[0] is not ways:
            known = self._keys[share] = ways, sender_keys(share, ways, targets_apart(network, self._switch))
        return known[1]

    def _renumber(self, before: Mapping[SenderKey, int]) -> dict[ClassShare, None]:
        """Have meters made anew that have other numbers now; return of which classes by which circuits."""
        moved = {key for key, number in self._meter_ids.items() if before.get(key, number) != number}
        shares = {ClassShare(Hop(self._switch.name, key.head), key.flow_class): None for key in moved}
        for share in shares:
            if known := self._shares.get(share):
                self._shares[share] = replace(known, meter_bps=-1)
        return shares

    def _treat(self, share: ClassShare, old: AggregateWays, new: AggregateWays, changed: dict[Pair, Treatment]) -> None:
        """Note of which pairs a class by a circuit has other aggregates now, and what becomes of their packets."""
        for pair, treated in treated_in(share, old.keys() - new.keys()):
            changed[pair] = self._pairs[pair] = self._pairs[pair] - {treated}
        for pair, treated in treated_in(share, new.keys() - old.keys()):
            changed[pair] = self._pairs[pair] = self._pairs.get(pair, NOTHING) | {treated}
