"""Messages to a switch, and the smallest ordered list of them from one state to another. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from controller.southbound.errors import NotSettable
from controller.southbound.openflow.meter_numbers import SENDER_METER_IDS
from controller.southbound.openflow.state import (
    GROUP_IDS,
    METER_IDS,
    DropMeter,
    FailoverGroup,
    Rule,
    SwitchState,
    is_ours,
)

_SHRUNK, _PUT = "what shrinks has shrunk", "what is put is there"
_METER_ID, _GROUP_ID = attrgetter("meter_id"), attrgetter("group_id")


@dataclass(frozen=True, slots=True)
class PutMeter:
    """Add ``meter``, or change it in place if ``exists``."""

    meter: DropMeter
    exists: bool

    def __str__(self) -> str:
        """Return it on one line, for people."""
        return f"put {self.meter}"


@dataclass(frozen=True, slots=True)
class DeleteMeter:
    """Delete a meter; the switch deletes the rules that still use it (OpenFlow 1.3 section 6.4)."""

    meter: DropMeter

    def __str__(self) -> str:
        """Return it on one line, for people."""
        return f"delete {self.meter}"


@dataclass(frozen=True, slots=True)
class PutGroup:
    """Add ``group``, or change it in place if ``exists``."""

    group: FailoverGroup
    exists: bool

    def __str__(self) -> str:
        """Return it on one line, for people."""
        return f"put {self.group}"


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Delete a group; the switch deletes the rules that still use it (OpenFlow 1.3 section 6.4)."""

    group: FailoverGroup

    def __str__(self) -> str:
        """Return it on one line, for people."""
        return f"delete {self.group}"


@dataclass(frozen=True, slots=True)
class PutRule:
    """Add ``rule``, or replace in one step the one with the same key.

    ADD and not MODIFY: an ADD over an identical match and priority replaces the entry at once (OpenFlow 1.3 section
    6.4), changes the cookie too, and is not silently lost when somebody deleted the entry meanwhile.
    """

    rule: Rule

    def __str__(self) -> str:
        """Return it on one line, for people."""
        return f"put {self.rule}"


@dataclass(frozen=True, slots=True)
class DeleteRule:
    """Delete the one rule with this key, if its cookie is ours."""

    rule: Rule

    def __str__(self) -> str:
        """Return it on one line, for people."""
        return f"delete {self.rule}"


@dataclass(frozen=True, slots=True)
class Barrier:
    """The switch does all before it before anything after it (OpenFlow 1.3, section 7.3.7).

    Attributes:
        is_awaited: whether nothing after it is sent before all before it is confirmed.
    """

    is_awaited: bool = True


Message = PutMeter | DeleteMeter | PutGroup | DeleteGroup | PutRule | DeleteRule | Barrier


def messages(desired: SwitchState, installed: SwitchState) -> tuple[Message, ...]:
    """Return the smallest ordered difference that turns ``installed`` into ``desired``; nothing if they are equal.

    Four phases, a barrier between them:

    1. Classes' meters that shrink. 2. New meters and groups, senders' meters that grow, then rules put: make before
    break, no packet is ever without its rule. 3. Rules deleted, then meters and groups that nobody uses any more.
    4. Classes' meters that grow, and senders' that shrink.

    A barrier is awaited where a refusal must stop what comes next. Rules are deleted, and senders' meters shrink, once
    the rules put are confirmed; a class's meter grows or comes once those that shrink are. A switch may be far away.

    So over the classes' meters kept, the sum of rates never exceeds the larger of before and after. A new meter beside
    one that goes is counted with it from phase 2 to 3: a plan that replaces one by another shrinks the old one first.
    A sender's meter has room for what comes to it before the rules turn, and for what leaves it until they have: what
    it lets through is counted by the class's as well.

    Raises:
        NotSettable: ``desired`` names what is not ours, or contradicts itself.
    """
    if desired.meters is installed.meters and desired.rules is installed.rules and desired.groups == installed.groups:
        return ()
    # Sets of the same values tell what differs quickly, and few of many rules and meters do.
    old_meters = {meter.meter_id: meter for meter in installed.meters - desired.meters}
    new_meters = {meter.meter_id: meter for meter in desired.meters - installed.meters}
    changed = [meter for id_, meter in sorted(new_meters.items()) if id_ in old_meters]
    shrinks = {m.meter_id: _size(m) < _size(old_meters[m.meter_id]) for m in changed}
    is_early = {id_: shrunk is (id_ not in SENDER_METER_IDS) for id_, shrunk in shrinks.items()}
    early = [meter for meter in changed if is_early[meter.meter_id]]
    puts: list[Message] = []
    deletes: list[Message] = []
    is_other = desired.rules is not installed.rules or desired.groups != installed.groups
    if is_other or old_meters.keys() != new_meters.keys():
        come = desired.rules - installed.rules
        _check(desired, installed, come)
        kept = {rule.key for rule in come}  # an entry is known by its key: the switch has each once
        old_groups, new_groups = ({group.group_id for group in state.groups} for state in (installed, desired))
        puts = [
            *(PutMeter(meter, exists=False) for id_, meter in sorted(new_meters.items()) if id_ not in old_meters),
            *(PutGroup(group, exists=group.group_id in old_groups) for group in _numbered(desired, installed)),
            *(PutRule(rule) for rule in _ordered(come)),
        ]
        deletes = [
            *(DeleteRule(rule) for rule in _ordered(installed.rules - desired.rules) if rule.key not in kept),
            *(DeleteMeter(meter) for id_, meter in sorted(old_meters.items()) if id_ not in new_meters),
            *(DeleteGroup(group) for group in _numbered(installed, desired) if group.group_id not in new_groups),
        ]
    shrunk = [PutMeter(meter, exists=True) for meter in early if meter.meter_id not in SENDER_METER_IDS]
    grown = [PutMeter(meter, exists=True) for meter in early if meter.meter_id in SENDER_METER_IDS]
    last = [PutMeter(meter, exists=True) for meter in changed if not is_early[meter.meter_id]]
    of_senders = [message.meter.meter_id in SENDER_METER_IDS for message in last]
    needs_last = {_SHRUNK: not all(of_senders), _PUT: any(of_senders)}
    return _with_barriers(
        _Phase(shrunk, frozenset(), frozenset({_SHRUNK})),
        _Phase([*grown, *puts], _all_of({_SHRUNK: _turns_a_class(puts)}), _all_of({_PUT: bool(puts)})),
        _Phase(deletes, frozenset({_PUT}), _all_of({_SHRUNK: _turns_a_class(deletes)})),
        _Phase(last, _all_of(needs_last), frozenset()),
    )


class _Phase(NamedTuple):
    """Messages that are sent together.

    Attributes:
        messages: in their order.
        needs: what is to be confirmed before they are sent.
        leaves: what is not, once they are sent.
    """

    messages: Sequence[Message]
    needs: frozenset[str]
    leaves: frozenset[str]


def _all_of(wanted: Mapping[str, bool]) -> frozenset[str]:
    return frozenset(name for name, is_wanted in wanted.items() if is_wanted)


def _with_barriers(*phases: _Phase) -> tuple[Message, ...]:
    """Return all messages, with a barrier between two phases; what it confirms need not be waited for again."""
    ordered: list[Message] = []
    unsure: frozenset[str] = frozenset()
    for phase in (one for one in phases if one.messages):
        if ordered:
            is_awaited = not phase.needs.isdisjoint(unsure)
            ordered.append(Barrier(is_awaited))
            unsure = frozenset() if is_awaited else unsure
        ordered += phase.messages
        unsure |= phase.leaves
    return tuple(ordered)


def at_once(difference: Iterable[Message]) -> Iterator[list[Message]]:
    """Yield the messages between awaited barriers: each such part is sent at once, when the one before is confirmed."""
    for is_awaited, part in groupby(difference, lambda message: isinstance(message, Barrier) and message.is_awaited):
        if not is_awaited:
            yield list(part)


def _turns_a_class(some: Iterable[Message]) -> bool:
    """Return whether a class's meter comes or goes."""
    turned = (message for message in some if isinstance(message, PutMeter | DeleteMeter))
    return any(message.meter.meter_id not in SENDER_METER_IDS for message in turned)


def _size(meter: DropMeter) -> tuple[int, int]:
    """Return what decides between shrinking and growing: the rate, then the burst."""
    return meter.rate_kbps, meter.burst_kbit


def _numbered(state: SwitchState, other: SwitchState) -> list[FailoverGroup]:
    """Return the groups of a state that another has not, or has otherwise, by number."""
    return sorted(state.groups - other.groups, key=lambda group: group.group_id)


def _ordered(rules: Iterable[Rule]) -> list[Rule]:
    """Return rules from the last table to the first, the highest priority first.

    A packet then never meets a rule whose next table, or whose exception of higher priority, is not there yet.
    """
    return sorted(rules, key=lambda rule: (-rule.table_id, -rule.priority, repr(rule.match)))


def _check(desired: SwitchState, installed: SwitchState, come: frozenset[Rule]) -> None:
    """Refuse a state that is not ours to set, or that contradicts itself. What is installed does not.

    Rules that come are compared with each other, not with all that stay.
    """
    meter_ids, group_ids = {*map(_METER_ID, desired.meters)}, {*map(_GROUP_ID, desired.groups)}
    for meter_id in (number for number in meter_ids if number not in METER_IDS):
        raise NotSettable("a desired meter must be one of ours", meter_id)
    for group_id in (number for number in group_ids if number not in GROUP_IDS):
        raise NotSettable("a desired group must be one of ours", group_id)
    is_less = {*map(_METER_ID, installed.meters)} - meter_ids or {*map(_GROUP_ID, installed.groups)} - group_ids
    for rule in desired.rules if is_less else come:
        if not is_ours(rule.cookie):
            raise NotSettable("a desired rule must have our cookie", rule.cookie)
        if rule.meter_id is not None and rule.meter_id not in meter_ids:
            raise NotSettable("a desired rule uses a meter that is not desired", rule.meter_id)
        if rule.group_id is not None and rule.group_id not in group_ids:
            raise NotSettable("a desired rule uses a group that is not desired", rule.group_id)
    if repeated := len(desired.meters) - len(meter_ids):
        raise NotSettable("two desired meters of one number", repeated)
    if repeated := len(desired.groups) - len(group_ids):
        raise NotSettable("two desired groups of one number", repeated)
    if repeated := len(come) - len({rule.key for rule in come}):
        raise NotSettable("two desired rules for the same table, priority and match", repeated)
