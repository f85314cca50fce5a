"""What the links of circuits carry over time: a provider may give more or less of a circuit than it is sold with."""

from controller.plan.calendar import Calendar
from controller.plan.policy import Policy
from controller.plan.resources import of_circuit
from controller.plan.steps import Steps
from topology.network import Hop, Network

GUARD_US = 5_000_000  # the plan shrinks this long before a circuit does: a lease, and the steps of a transition


class Schedules:
    """The rates of all links of circuits on the wire, over time; a calendar's capacities follow them."""

    def __init__(self, network: Network, policy: Policy, calendar: Calendar) -> None:
        """Begin with the rates that the network has, at all times."""
        self._policy = policy
        self._calendar = calendar
        self._wire = {Hop(tail, head): Steps(link.rate_bps) for tail, head, link in network.circuit_links}
        self._circuits = {Hop(tail, head): link.circuit or "" for tail, head, link in network.circuit_links}
        self._changing: dict[Hop, Steps] = {}  # of those, the ones with a schedule

    def pieces(self, hop: Hop, start_us: int, end_us: int) -> tuple[tuple[int, int, int], ...]:
        """Return what a link carries over a time, piece by piece: (from, until, bit/s on the wire)."""
        return tuple(self._wire[hop].pieces(start_us, end_us))

    def change(self, hop: Hop, start_us: int, end_us: int, rate_bps: int) -> tuple[int, int, int]:
        """Let a link carry another rate for a time; return when the plan is another by it."""
        self._changing[hop] = self._wire[hop]
        for begin_us, until_us, before_bps in self.pieces(hop, start_us, end_us):
            self._wire[hop].add(begin_us, until_us, rate_bps - before_bps)
            before = of_circuit(hop, before_bps, self._policy)
            for resource, bps in of_circuit(hop, rate_bps, self._policy).items():
                self._calendar.change_capacity(resource, begin_us, until_us, bps - before[resource])
        return start_us - GUARD_US, start_us, end_us

    def least_bps(self, now_us: int) -> dict[Hop, int]:
        """Return, for each link with a schedule, the least it carries from now until a plan made now has shrunk."""
        return {hop: steps.least(now_us, now_us + GUARD_US) for hop, steps in self._changing.items()}

    def closed(self, now_us: int, within_us: int) -> frozenset[str]:
        """Return the circuits that carry nothing at some moment from now until ``within_us`` later."""
        until_us = now_us + within_us
        return frozenset(self._circuits[hop] for hop, s in self._changing.items() if s.least(now_us, until_us) <= 0)
