"""What is planned of many pairs of hosts, in few places: what most of them have in common, and what differs from it.

A switch looks for a packet of two hosts in the first of these places that has something: the pair itself, the one that
sends, the one that it is for, all. So sixty hosts that send to sixty others alike are one place, and one pair among
them that is treated otherwise is one more. Where hosts have nothing in common each pair has its place. Pure.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from topology.network import Hop
from topology.protocol import FlowClass


class Treated(NamedTuple):
    """What becomes of some packets of a pair: those with a mark, None for the rest; their class; the link they take."""

    mark: int | None
    flow_class: FlowClass
    hop: Hop


Treatment = frozenset[Treated]
NOTHING: Treatment = frozenset()
Pair = tuple[str, str]  # the host here, and the one beyond
Level = Literal["pair", "source", "target", "all"]


class TablePlace(NamedTuple):
    """Where a switch looks: by whom packets are sent, whom they are for, "" for anybody of those it is about."""

    source: str
    target: str

    @property
    def level(self) -> Level:
        """Which of the four it is."""
        if self.source:
            return "pair" if self.target else "source"
        return "target" if self.target else "all"


class Standing(NamedTuple):
    """What stands in a place, and whether a place that is looked at later has something for the same packets."""

    treatment: Treatment
    covers: bool


@dataclass(slots=True)
class _Shared:
    """What is common to all, to rows and to columns of the table of pairs."""

    of_all: Treatment = NOTHING
    of_source: dict[str, Treatment] = field(default_factory=dict)
    of_target: dict[str, Treatment] = field(default_factory=dict)

    def below(self, pair: Pair) -> Treatment:
        """Return what becomes of a pair that has no place of its own."""
        known = self.of_source.get(pair[0])
        return self.of_target.get(pair[1], self.of_all) if known is None else known

    def places(self, cells: Mapping[Pair, Treatment], sources: Collection[str], targets: Collection[str]) -> int:
        """Return how many places it takes, those of the pairs that differ among them."""
        differ = sum(self.below(pair) != treatment for pair, treatment in cells.items())
        planned = sum(self.below(pair) != NOTHING for pair in cells)
        free = len(sources) - len(self.of_source)
        given = sum(treatment != NOTHING for treatment in self.of_target.values())
        something = free * (len(targets) - len(self.of_target) + given if self.of_all else given)
        something += len(targets) * sum(treatment != NOTHING for treatment in self.of_source.values())
        return len(self.of_source) + len(self.of_target) + bool(self.of_all) + differ + something - planned


def places_of(
    cells: Mapping[Pair, Treatment], sources: Collection[str], targets: Collection[str]
) -> dict[TablePlace, Standing]:
    """Return what stands in which place, so that each pair has its treatment, and who is in no cell has nothing.

    The same for the same cells, whatever came before.

    Args:
        cells: the pairs of which something is planned.
        sources: all hosts here.
        targets: all hosts beyond that these pairs are about.
    """
    if not is_dense(len(cells), len({s for s, _ in cells}), len({t for _, t in cells})):
        return {TablePlace(*pair): Standing(treatment, covers=False) for pair, treatment in cells.items()}
    found = [_by_majority(cells, sources, targets), _by_target(cells, sources, targets)]
    shared = min(found, key=lambda one: one.places(cells, sources, targets))
    return _placed(shared, cells, sources, targets)


def is_dense(cells: int, sources: int, targets: int) -> bool:
    """Return whether pairs are so many for their hosts that it is worth looking for what they have in common."""
    return cells > sources + targets


def _placed(
    shared: _Shared, cells: Mapping[Pair, Treatment], sources: Collection[str], targets: Collection[str]
) -> dict[TablePlace, Standing]:
    is_any = shared.of_all != NOTHING
    places = {TablePlace("", ""): Standing(shared.of_all, covers=False)} if is_any else {}
    places |= {TablePlace("", target): Standing(known, covers=is_any) for target, known in shared.of_target.items()}
    covers = is_any or bool(shared.of_target)
    places |= {TablePlace(source, ""): Standing(known, covers=covers) for source, known in shared.of_source.items()}
    for pair, treatment in cells.items():
        if (below := shared.below(pair)) != treatment:
            places[TablePlace(*pair)] = Standing(treatment, covers=below != NOTHING)
    for source in sources:
        of_source = shared.of_source.get(source)
        if of_source == NOTHING:
            continue
        some = targets if of_source or is_any else shared.of_target
        for target in some:
            if (source, target) not in cells and shared.below((source, target)) != NOTHING:
                places[TablePlace(source, target)] = Standing(NOTHING, covers=True)
    return places


def _by_majority(cells: Mapping[Pair, Treatment], sources: Collection[str], targets: Collection[str]) -> _Shared:
    """Return what most pairs have in common, then most of a source's, then most of a target's."""
    shared = _Shared(_most(Counter(cells.values()), len(sources) * len(targets), NOTHING))
    some = sources if shared.of_all else {source for source, _ in cells}
    of_source = _counted(cells, lambda pair: pair[0])
    for source in some:
        most = _most(of_source.get(source, Counter()), len(targets), shared.of_all)
        if most != shared.of_all:
            shared.of_source[source] = most
    _add_targets(shared, cells, sources, targets)
    return shared


def _by_target(cells: Mapping[Pair, Treatment], sources: Collection[str], targets: Collection[str]) -> _Shared:
    """Return that who sends nothing has nothing, and what most pairs of a target have in common."""
    sending = {source for source, _ in cells}
    shared = _Shared(of_source={source: NOTHING for source in sources if source not in sending})
    _add_targets(shared, cells, sources, targets)
    return shared


def _add_targets(
    shared: _Shared, cells: Mapping[Pair, Treatment], sources: Collection[str], targets: Collection[str]
) -> None:
    """Add what most pairs of a target have in common that nothing of their source's is said of."""
    others = len(sources) - len(shared.of_source)
    left = {pair: treatment for pair, treatment in cells.items() if pair[0] not in shared.of_source}
    of_target = _counted(left, lambda pair: pair[1])
    for target in targets if shared.of_all else of_target:
        most = _most(of_target.get(target, Counter()), others, shared.of_all)
        if most != shared.of_all:
            shared.of_target[target] = most


def _counted(cells: Mapping[Pair, Treatment], of: Callable[[Pair], str]) -> dict[str, Counter[Treatment]]:
    found: dict[str, Counter[Treatment]] = {}
    for pair, treatment in cells.items():
        found.setdefault(of(pair), Counter())[treatment] += 1
    return found


def _most(counts: Counter[Treatment], pairs: int, before: Treatment) -> Treatment:
    """Return what most of some pairs have, if a place of its own saves more than it takes; else what was before.

    Args:
        counts: the planned ones among them, by what becomes of them.
        pairs: how many they are in all.
        before: what they would have without such a place.
    """
    of_each = {**counts, NOTHING: pairs - counts.total()}
    most = max(of_each, key=lambda treatment: (of_each[treatment], _order(treatment)))
    return most if of_each[most] > of_each.get(before, 0) + 1 else before


@lru_cache(maxsize=4096)
def _order(treatment: Treatment) -> str:
    return repr(sorted(map(repr, treatment)))
