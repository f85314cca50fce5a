"""What the links of circuits carry over time: a provider may give more or less of a circuit than it is sold with."""

from collections.abc import Collection, Iterator
from itertools import pairwise

from controller.plan.calendar import Calendar
from controller.plan.policy import Policy
from controller.plan.reservations import MAX_TIME_US
from controller.plan.resources import of_circuit
from controller.plan.steps import Steps
from topology.network import Hop, Network

GUARD_US = 5_000_000  # the plan shrinks this long before a circuit does: a lease, and the steps of a transition


class Schedules:
    """The rates of all links of circuits on the wire, over time, and what of them plan and calendar go by.

    Those go by the least that a link carries from an instant until ``GUARD_US`` later: the plan has shrunk when the
    link does, and nobody is promised what the plan does not have any more.
    """

    def __init__(self, network: Network, policy: Policy, calendar: Calendar) -> None:
        """Begin with the rates that the network has, at all times."""
        self._policy = policy
        self._calendar = calendar
        self._wire = {Hop(tail, head): Steps(link.rate_bps) for tail, head, link in network.circuit_links}
        self._usable = {Hop(tail, head): Steps(link.rate_bps) for tail, head, link in network.circuit_links}
        self._circuits = {Hop(tail, head): link.circuit or "" for tail, head, link in network.circuit_links}
        self._changing: dict[Hop, Steps] = {}  # of those that are usable, the ones with a schedule

    def pieces(self, hop: Hop, start_us: int, end_us: int) -> tuple[tuple[int, int, int], ...]:
        """Return what a link carries over a time, piece by piece: (from, until, bit/s on the wire)."""
        return tuple(self._wire[hop].pieces(start_us, end_us))

    def usable(self, hop: Hop, start_us: int, end_us: int) -> tuple[tuple[int, int, int], ...]:
        """Return what plan and calendar have of a link over a time, in such pieces."""
        return tuple(self._usable[hop].pieces(start_us, end_us))

    def change(self, hop: Hop, start_us: int, end_us: int, rate_bps: int) -> tuple[int, ...]:
        """Let a link carry another rate for a time; return when the plan may be another by it, and when it begins."""
        self._changing[hop] = self._usable[hop]
        for begin_us, until_us, before_bps in self.pieces(hop, start_us, end_us):
            self._wire[hop].add(begin_us, until_us, rate_bps - before_bps)
        from_us = start_us - GUARD_US
        begins_us = {begin_us for begin_us, _, _ in self.pieces(hop, from_us, end_us + GUARD_US)}
        at_us = {from_us, end_us, *begins_us, *(begin_us - GUARD_US for begin_us in begins_us)}
        for begin_us, until_us in pairwise(sorted(us for us in at_us if from_us <= us <= end_us)):
            self._use(hop, begin_us, until_us, self._wire[hop].least(begin_us, begin_us + GUARD_US + 1))
        return start_us, *(begin_us for begin_us, _, _ in self.usable(hop, from_us, end_us + 1))

    def _use(self, hop: Hop, start_us: int, end_us: int, rate_bps: int) -> None:
        """Let plan and calendar have another rate of a link for a time."""
        for begin_us, until_us, before_bps in self.usable(hop, start_us, end_us):
            self._usable[hop].add(begin_us, until_us, rate_bps - before_bps)
            before = of_circuit(hop, before_bps, self._policy)
            for resource, bps in of_circuit(hop, rate_bps, self._policy).items():
                self._calendar.change_capacity(resource, begin_us, until_us, bps - before[resource])

    def usable_bps(self, now_us: int) -> dict[Hop, int]:
        """Return, for each link with a schedule, what the plan has of it now."""
        return {hop: steps.value(now_us) for hop, steps in self._changing.items()}

    def closed(self, now_us: int) -> frozenset[str]:
        """Return the circuits of which the plan has nothing now."""
        return frozenset(self._circuits[hop] for hop, steps in self._changing.items() if steps.value(now_us) <= 0)

    def closings(self, start_us: int, end_us: int) -> Iterator[tuple[int, int, frozenset[str]]]:
        """Yield (from, until, the circuits of which the plan has nothing), piece by piece of a time."""
        changes_us = (us for steps in self._changing.values() for us, _, _ in steps.pieces(start_us, end_us))
        for begin_us, until_us in pairwise(sorted({start_us, end_us, *changes_us})):
            yield begin_us, until_us, self.closed(begin_us)

    def opens_us(self, circuits: Collection[str], from_us: int) -> int:
        """Return from when on, at a moment or after it, the plan has something of each of some circuits, Unix time.

        ``MAX_TIME_US`` if there is no end of what closes one of them.
        """
        changing = [steps for hop, steps in self._changing.items() if self._circuits[hop] in circuits]
        at_us, before_us = from_us, -1
        while before_us < at_us < MAX_TIME_US:
            found = [steps.first_reaching(1, at_us, MAX_TIME_US) for steps in changing]
            at_us, before_us = max((MAX_TIME_US if us is None else us for us in found), default=at_us), at_us
        return at_us
