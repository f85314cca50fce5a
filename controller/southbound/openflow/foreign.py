"""Rules that are left alone, other people's and those on the ignore list, and which stand in the way of ours. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address

from controller.southbound.openflow.state import Match, MatchValue, Rule, SwitchState, is_ours

_ALL_COOKIE_BITS = 2**64 - 1
_KNOWN_BY = ("eth_type", "ipv4_src", "ipv4_dst", "ipv6_src", "ipv6_dst", "arp_spa", "arp_tpa")  # a packet of ours
Fields = dict[str, tuple[int, int]]  # by OXM name: value and mask


@dataclass(frozen=True, slots=True)
class Ignored:
    """One entry of the ignore list; a rule is on it if all that is given holds.

    Attributes:
        cookie: bits that the rule's cookie must have where ``cookie_mask`` has ones; None for any.
        cookie_mask: which bits count.
        table_id: the rule's table; None for any.
        priority: the rule's priority; None for any.
        match: the rule matches nothing beyond this; empty for any.
    """

    cookie: int | None = None
    cookie_mask: int = _ALL_COOKIE_BITS
    table_id: int | None = None
    priority: int | None = None
    match: Match = ()

    def covers(self, rule: Rule) -> bool:
        """Return whether a rule is meant."""
        return (
            (self.cookie is None or rule.cookie & self.cookie_mask == self.cookie & self.cookie_mask)
            and (self.table_id is None or rule.table_id == self.table_id)
            and (self.priority is None or rule.priority == self.priority)
            and (not self.match or _within(_fields(rule.match), _fields(self.match)))
        )


def on_list(rule: Rule, ignored: Iterable[Ignored]) -> bool:
    """Return whether a rule is on the ignore list."""
    return any(entry.covers(rule) for entry in ignored)


def without_ignored(desired: SwitchState, installed: SwitchState, ignored: Iterable[Ignored]) -> SwitchState:
    """Return what is installed without the rules that are to be left alone; itself if there are none.

    A rule in the place of one that the plan wants is never left alone: the plan must hold. With a rule goes what it
    needs and the plan does not have, its meter and its group: a switch would delete it with them.
    """
    entries = tuple(ignored)
    if not entries:
        return installed
    wanted = {rule.key for rule in desired.rules}
    spared = {rule for rule in installed.rules if rule.key not in wanted and on_list(rule, entries)}
    if not spared:
        return installed
    meter_ids = {rule.meter_id for rule in spared} - {meter.meter_id for meter in desired.meters}
    group_ids = {rule.group_id for rule in spared} - {group.group_id for group in desired.groups}
    return SwitchState(
        installed.rules - spared,
        frozenset(meter for meter in installed.meters if meter.meter_id not in meter_ids),
        frozenset(group for group in installed.groups if group.group_id not in group_ids),
    )


def beside(desired: SwitchState, installed: SwitchState, rest: SwitchState) -> SwitchState:
    """Return what a switch holds once ``rest`` of what is installed there has been brought to a state."""
    return SwitchState(
        desired.rules | (installed.rules - rest.rules),
        desired.meters | (installed.meters - rest.meters),
        desired.groups | (installed.groups - rest.groups),
    )


@dataclass(frozen=True, slots=True)
class Shadow:
    """A rule that is not ours and takes packets of ours: of ``first``, and of ``more`` others.

    ``touches`` says whether a packet between two hosts of ours can be among them, so that a promise may depend on it.
    """

    rule: Rule
    first: Rule
    more: int
    touches: bool = True

    @property
    def takes_place(self) -> bool:
        """Whether it stands where ours should: the same table, priority and match."""
        return self.rule.key == self.first.key


@lru_cache(maxsize=64)  # a switch whose rules have not changed since its last audit costs a comparison only
def shadows(wanted: frozenset[Rule], found: frozenset[Rule]) -> tuple[Shadow, ...]:
    """Return the rules that are not ours and take packets of a rule wanted, in order of table and priority.

    Such a rule has at least the priority of ours and can match a packet that ours matches. Of two rules of one
    priority that match one packet it is undefined which is taken (OpenFlow 1.3 section 5.3).
    """
    ours: dict[int, list[tuple[Rule, Fields]]] = defaultdict(list)
    for rule in sorted(wanted, key=lambda r: (-r.priority, repr(r.match))):
        ours[rule.table_id].append((rule, _fields(rule.match)))
    named = {name: {_bits(v) for rule in wanted for n, v in rule.match if n == name} for name in _KNOWN_BY}
    seen = []
    for rule in sorted(found, key=lambda r: (r.table_id, -r.priority, repr(r.match))):
        if is_ours(rule.cookie):
            continue
        fields = _fields(rule.match)
        taken = [r for r, theirs in ours[rule.table_id] if r.priority <= rule.priority and _have_common(fields, theirs)]
        if taken:
            first = next((r for r in taken if r.key == rule.key), taken[0])
            seen.append(Shadow(rule, first, len(taken) - 1, first.key == rule.key or _meets(fields, named)))
    return tuple(seen)


def _meets(fields: Fields, named: dict[str, set[tuple[int, int]]]) -> bool:
    """Return whether a rule can take a packet that one of our hosts sends to another.

    Args:
        fields: what it matches.
        named: the kinds of packets, and the addresses, that rules of ours name.
    """
    return all(
        not ours or any(not (fields[name][0] ^ value) & fields[name][1] & mask for value, mask in ours)
        for name, ours in named.items()
        if name in fields
    )


def _have_common(a: Fields, b: Fields) -> bool:
    """Return whether a packet can match both."""
    for name, (value, mask) in a.items():
        if name in b:
            other, other_mask = b[name]
            if (value ^ other) & mask & other_mask:
                return False
    return True


def _within(inner: Fields, outer: Fields) -> bool:
    """Return whether whatever matches ``inner`` matches ``outer``."""
    for name, (value, mask) in outer.items():
        if name not in inner:
            return False
        other, other_mask = inner[name]
        if mask & ~other_mask or (value ^ other) & mask:
            return False
    return True


def _fields(match: Match) -> Fields:
    return {name: _bits(value) for name, value in match}


def _bits(value: MatchValue) -> tuple[int, int]:
    """Return a match field's value and mask as integers; all ones for a field that is matched whole.

    A field of somebody else's that we cannot read could be anything: it is no condition.
    """
    try:
        if isinstance(value, tuple):
            return number_of(value[0]), number_of(value[1])
        return number_of(value), -1
    except ValueError:
        return 0, 0


def number_of(text: int | str) -> int:
    """Return a number, an IP or an Ethernet address as an integer.

    >>> number_of("10.0.0.1"), number_of("00:00:00:00:01:02"), number_of("0x0806"), number_of(7)
    (167772161, 258, 2054, 7)

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(text, int):
        return text
    if ":" not in text:
        return int(IPv4Address(text)) if "." in text else int(text, 0)
    if text.count(":") == 5 and all(len(part) == 2 for part in text.split(":")):
        return int(text.replace(":", ""), 16)
    return int(IPv6Address(text))
