"""Who hears of host agents."""

from collections.abc import Sequence
from typing import Protocol

from topology.protocol import Allocations, Applied, Declined, Demand, Hello, Repaired
from topology.telemetry import Telemetry


class HostListener(Protocol):
    """Who hears of agents: the service. Called by one thread, which must not be kept waiting."""

    def host_up(self, hello: Hello) -> Allocations | None:
        """An agent has said hello; return what it may do now, or None if there is no such host."""

    def host_again(self, hello: Hello) -> None:
        """An agent has said hello again: it acts on another controller's plan, or has other addresses."""

    def host_down(self, host: str) -> None:
        """The agent's stream has ended."""

    def hosts_applied(self, said: Sequence[tuple[str, Applied]]) -> None:
        """Agents' kernels hold epochs: what hosts have confirmed since the last call, in that order."""

    def host_telemetry(self, host: str, telemetry: Telemetry) -> None:
        """The agent's counters."""

    def host_declined(self, host: str, declined: Declined) -> None:
        """The agent does not act on what it was sent."""

    def host_demand(self, host: str, demand: Demand) -> None:
        """An entry that is watched begins or ends to want its rate."""

    def host_repaired(self, host: str, repaired: Repaired) -> None:
        """The agent has put something right in its kernel."""
