"""What each promise claims of a pair of hosts, and which claims cannot stand side by side (decision 19). Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controller.plan.plan import THE_REST, Selector
from topology.network import hops
from topology.protocol import FlowClass


@dataclass(frozen=True, slots=True)
class PairClaim:
    """What a promise claims of a pair of hosts.

    Attributes:
        owner: the reservation's or announcement's name, for people.
        ends: the sending and the receiving host.
        flow_class: its class.
        selector: its ports; the rest if it names none.
        path: the nodes it crosses.
        start_us: Unix time, microseconds.
        end_us: Unix time, microseconds; not in it any more.
    """

    owner: str
    ends: tuple[str, str]
    flow_class: FlowClass
    selector: Selector
    path: tuple[str, ...]
    start_us: int
    end_us: int

    def confused_with(self, other: "PairClaim") -> bool:
        """Return whether nobody could tell the packets of both apart, although they go in other classes or ways.

        Those for the rest in other classes are told apart by the mark of the application.

        >>> from dataclasses import replace
        >>> def urgent(owner, selector, *path):
        ...     return PairClaim(owner, ("a", "z"), FlowClass.URGENT, selector, path, 0, 10)
        >>> north, south = urgent("n", THE_REST, "a", "s", "n", "z"), urgent("s", THE_REST, "a", "s", "m", "z")
        >>> north.confused_with(south), north.confused_with(replace(south, selector=Selector(dest_port=873)))
        (True, False)
        """
        if self.ends != other.ends or not self.meets(other):
            return False
        if self.flow_class is not other.flow_class:
            return self.selector == other.selector != THE_REST
        return self.path != other.path and (self.selector == other.selector or part_later(self.path, other.path))

    def meets(self, other: "PairClaim") -> bool:
        """Return whether both have some time in common."""
        return self.start_us < other.end_us and other.start_us < self.end_us


def part_later(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether two ways part after the first switch: a switch between would see one class's mark on both."""
    shared = next(i for i, (a, b) in enumerate(zip(hops(one), hops(other), strict=False)) if a != b)
    return shared > 1


class Claims:
    """All claims, by the pair of hosts they are of."""

    def __init__(self) -> None:
        self._by_owner: dict[str, tuple[PairClaim, ...]] = {}
        self._by_ends: dict[tuple[str, str], dict[str, PairClaim]] = {}

    def put(self, owner: str, claims: Iterable[PairClaim]) -> None:
        """Replace what an owner claims: at most one claim for each pair of hosts; none takes it out."""
        for old in self._by_owner.pop(owner, ()):
            of_pair = self._by_ends[old.ends]
            del of_pair[owner]
            if not of_pair:
                del self._by_ends[old.ends]
        new = tuple(claims)
        if new:
            self._by_owner[owner] = new
        for claim in new:
            self._by_ends.setdefault(claim.ends, {})[owner] = claim

    def confused_with(self, claim: PairClaim) -> Iterator[PairClaim]:
        """Yield the claims of others that one could not be told apart from."""
        for owner, other in self._by_ends.get(claim.ends, {}).items():
            if owner != claim.owner and claim.confused_with(other):
                yield other

    def choices_beside(self, claim: PairClaim) -> int:
        """Return how many other choices of ports others of a claim's pair have, the most at a time of it."""
        others = (other for owner, other in self._by_ends.get(claim.ends, {}).items() if owner != claim.owner)
        beside = [
            one for one in others if one.selector.has_ports and one.selector != claim.selector and one.meets(claim)
        ]
        begin = [(max(one.start_us, claim.start_us), 1, one.selector) for one in beside]
        changes = begin + [(one.end_us, -1, one.selector) for one in beside]
        now, most = Counter[Selector](), 0
        for _, change, selector in sorted(changes, key=lambda c: c[:2]):  # at one instant what ends comes first
            now[selector] += change
            now += Counter()  # without those that nobody has any more
            most = max(most, len(now))
        return most
