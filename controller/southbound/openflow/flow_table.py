"""The rules that say what is planned between hosts here and hosts beyond, in as few places as say it. Pure.

``shared.py`` says which places: a pair's own, the one that sends, the one that it is for, or all. They look at nothing
but the metadata, and at the code point, at which every packet to a circuit is looked at; so they may come and go.
Places that are about many are about those of one way: the port by which the table before has sent packets on.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from controller.plan.paths import default_path
from controller.plan.policy import Policy
from controller.southbound.openflow import metadata
from controller.southbound.openflow.addressing import ARP, Fields, ip_types, marked
from controller.southbound.openflow.aggregates import is_local, remote_hosts, stands_for
from controller.southbound.openflow.rule_parts import FLOW_TABLE, goes_on
from controller.southbound.openflow.shared import (
    NOTHING,
    Level,
    Pair,
    Standing,
    TablePlace,
    Treated,
    Treatment,
    is_dense,
    places_of,
)
from controller.southbound.openflow.state import Bits, Rule
from topology.network import Network, Switch
from topology.protocol import FlowClass

# By the place: packets with a mark, those without, and those of which nothing is planned although something is of
# others. A stranger, whose number is 0, is in none of the places that are about anybody.
PRIORITIES: Mapping[Level, tuple[int, int, int]] = {
    "pair": (500, 400, 395),
    "source": (390, 380, 375),
    "target": (360, 350, 345),
    "all": (340, 330, 325),
}
STRANGER_PRIORITY = 370
_UNPLANNED = metadata.joined(metadata.of_class(FlowClass.UNPLANNED))


def flow_rules(
    network: Network, switch: Switch, down: frozenset[str], cells: Mapping[Pair, Treatment], policy: Policy
) -> frozenset[Rule]:
    """Return the rules of a switch for what is planned from its hosts to others.

    Args:
        network: where.
        switch: which.
        down: the circuits that are down.
        cells: what becomes of each pair's packets of which anything is planned.
        policy: what each class may have.
    """
    return FlowTable(switch, policy).followed(network, down, cells)


@lru_cache(maxsize=1024)
def by_port(network: Network, switch: Switch, down: frozenset[str]) -> Mapping[int, tuple[str, ...]]:
    """Return the hosts beyond by the port at which what is not planned leaves for them."""
    found: dict[int, list[str]] = {}
    for host in remote_hosts(network, switch):
        head = default_path(network, switch.name, host.name, down)[1]
        found.setdefault(network.link(switch.name, head).port_no, []).append(host.name)
    return {port_no: tuple(names) for port_no, names in found.items()}


class _Group:
    """The pairs whose targets lie behind one port, and the rules about them."""

    def __init__(self) -> None:
        self.cells: dict[Pair, Treatment] = {}
        self.sources: Counter[str] = Counter()
        self.targets: Counter[str] = Counter()
        self.places: dict[TablePlace, Standing] = {}

    def put(self, pair: Pair, treatment: Treatment) -> None:
        """Note what becomes of a pair's packets now."""
        had = self.cells.pop(pair, NOTHING)
        step = (treatment != NOTHING) - (had != NOTHING)
        if treatment:
            self.cells[pair] = treatment
        for counts, name in ((self.sources, pair[0]), (self.targets, pair[1])):
            counts[name] += step
            if not counts[name]:
                del counts[name]

    @property
    def is_dense(self) -> bool:
        """Whether it is worth looking for what its pairs have in common."""
        return is_dense(len(self.cells), len(self.sources), len(self.targets))


class FlowTable:
    """The rules of one switch of a network, one plan after the other; what does not change is not looked at."""

    def __init__(self, switch: Switch, policy: Policy) -> None:
        self._switch, self._policy = switch, policy
        self._here: tuple[str, ...] = ()
        self._down: frozenset[str] | None = None
        self._groups: dict[int, _Group] = {}
        self._port_of: dict[str, int] = {}
        self._made: dict[tuple[int, TablePlace], tuple[Standing, frozenset[Rule]]] = {}
        self._rules: frozenset[Rule] = frozenset()

    def followed(self, network: Network, down: frozenset[str], changed: Mapping[Pair, Treatment]) -> frozenset[Rule]:
        """Return the rules after some pairs are treated otherwise; the very same if none of them is.

        Args:
            network: the same each time.
            down: the circuits that are down now.
            changed: what becomes of these pairs' packets now, nothing if nothing is planned; all others as before.
        """
        gone, come = set[Rule](), set[Rule]()
        if down != self._down:
            changed = self._regrouped(network, down) | dict(changed)
            gone |= set(self._rules)
            self._made = {}
        by_group: dict[int, dict[Pair, Treatment]] = {}
        for pair, treatment in changed.items():
            by_group.setdefault(self._port_of[pair[1]], {})[pair] = treatment
        for port_no, cells in by_group.items():
            self._follow(network, port_no, cells, gone, come)
        if gone != come:
            self._rules = (self._rules - gone) | come
        return self._rules

    def _regrouped(self, network: Network, down: frozenset[str]) -> dict[Pair, Treatment]:
        """Begin anew with other groups; return what was known."""
        self._here = tuple(host.name for host in network.hosts if is_local(network, self._switch, host.name))
        known = {pair: held for group in self._groups.values() for pair, held in group.cells.items()}
        groups = by_port(network, self._switch, down)
        self._port_of = {name: port_no for port_no, names in groups.items() for name in names}
        self._down, self._groups = down, {port_no: _Group() for port_no in groups}
        return known

    def _follow(
        self, network: Network, port_no: int, changed: Mapping[Pair, Treatment], gone: set[Rule], come: set[Rule]
    ) -> None:
        """Bring one group to what its pairs are treated as now."""
        group = self._groups[port_no]
        was_dense = group.is_dense
        for pair, treatment in changed.items():
            group.put(pair, treatment)
        if group.is_dense:
            targets = by_port(network, self._switch, self._down or frozenset())[port_no]
            places = places_of(group.cells, self._here, targets)
        elif was_dense:
            places = places_of(group.cells, (), ())
        else:  # each has a place of its own: nothing but what has changed need be looked at
            for pair, treatment in changed.items():
                self._replace(
                    network,
                    port_no,
                    TablePlace(*pair),
                    Standing(treatment, covers=False) if treatment else None,
                    gone,
                    come,
                )
            return
        old = {place for port, place in self._made if port == port_no}
        for place in old - places.keys():
            self._replace(network, port_no, place, None, gone, come)
        for place, held in places.items():
            self._replace(network, port_no, place, held, gone, come)

    def _replace(
        self, network: Network, port_no: int, place: TablePlace, held: Standing | None, gone: set[Rule], come: set[Rule]
    ) -> None:
        known = self._made.get((port_no, place))
        if known is not None and known[0] == held:
            return
        if known is not None:
            gone |= known[1]
            del self._made[port_no, place]
        if held is not None:
            rules = frozenset(place_rules(network, port_no, place, held, self._policy))
            self._made[port_no, place] = held, rules
            come |= rules


def place_rules(network: Network, port_no: int, place: TablePlace, held: Standing, policy: Policy) -> Iterator[Rule]:
    """Yield the rules of one place.

    What has no mark has all that the marked has not, ARP as well; where there is none, what is not marked is unplanned,
    but the hosts still find each other. It must be said to be unplanned where a later place has something else.

    Args:
        network: where.
        port_no: by which what is not planned leaves for those that it is about.
        place: whom it is about.
        held: what becomes of their packets.
        policy: what each class may have.
    """
    numbers = metadata.host_numbers(network)
    about = [metadata.came_by(metadata.HERE)]
    about += [metadata.source(numbers[place.source])] if place.source else []
    about += [metadata.target(numbers[place.target])] if place.target else [metadata.leaves_by(port_no)]
    everything: Fields = {"metadata": metadata.joined(*about)}
    with_mark, without, nothing = PRIORITIES[place.level]
    for treated in held.treatment:
        if treated.mark is None:
            yield _carried(network, without, everything, treated)
        else:
            for fields in marked(network, treated.mark):
                yield _carried(network, with_mark, everything | fields, treated)
    for_both = stands_for(held.treatment, policy) if held.treatment else None
    if for_both is not None and for_both.mark is not None:
        yield _carried(network, without, everything | {"eth_type": ARP}, for_both)
        if len(ip_types(network)) > 1:
            yield _carried(network, without, {"metadata": metadata.joined(*about, metadata.seeks())}, for_both)
    if held.covers and (for_both is None or for_both.mark is not None):
        yield goes_on(FLOW_TABLE, nothing, everything, _UNPLANNED)


def stranger_rule() -> Rule:
    """Return the rule by which nobody known is in a place that is about anybody."""
    nobody: Bits = metadata.joined(metadata.came_by(metadata.HERE), metadata.source(0))
    return goes_on(FLOW_TABLE, STRANGER_PRIORITY, {"metadata": nobody}, _UNPLANNED)


def _carried(network: Network, priority: int, fields: Fields, treated: Treated) -> Rule:
    """Return the rule by which packets have a class and a way."""
    port_no = network.link(*treated.hop).port_no
    way = metadata.joined(metadata.of_class(treated.flow_class), metadata.leaves_by(port_no))
    return goes_on(FLOW_TABLE, priority, fields, way)
