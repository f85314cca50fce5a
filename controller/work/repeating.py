"""Whether a leader that the database does not confirm goes on telling hosts what they have.

It cannot know whether the database is away, or it alone is cut off and another leads. Who leads becomes the master of
each switch that it reaches. So a host is told again while every switch on its ways says that we are its master still:
then nobody else has changed what those switches let through. Any other host's lease runs out, and it falls back.
"""

from collections.abc import Callable, Collection
from typing import Protocol

import structlog

from controller.plan.leading import VOUCHED_US, PairStanding
from controller.state.guard import GuardedState
from controller.state.reported import HostState
from topology.printable import shown_names

LOOK_S = 0.25  # between two questions to the switches
ANSWERED_S = 0.5  # so long they are waited for; with LOOK_S less than VOUCHED_US

_log = structlog.get_logger()


class AskedSwitches(Protocol):
    """What is needed of the switches."""

    def still_obeying(self, timeout_s: float) -> frozenset[int]:
        """Return those that say, asked now, that we are their one master; who is late is not among them."""

    def ask_waiting(self) -> None:
        """Ask those to obey us that called while we were not sure to lead."""


class Repeating:
    """Asks the switches while it is not known whether we lead. Only agents' thread asks :meth:`may`, without a lock."""

    def __init__(self, state: GuardedState, switches: AskedSwitches, standing: Callable[[], PairStanding]) -> None:
        self._state = state
        self._switches = switches
        self._standing = standing
        self._vouched: tuple[frozenset[str], int] = frozenset(), 0  # hosts, and until when, elapsed time
        self._withheld: frozenset[str] = frozenset()

    def may(self, host: str) -> bool:
        """Return whether a host may be told now what it was told before."""
        standing = self._standing()
        if standing is PairStanding.UNSURE:
            hosts, until_us = self._vouched
            return host in hosts and self._state.elapsed_us() < until_us
        return standing is not PairStanding.DEPOSED

    def run(self) -> None:
        """Work until the state says stop."""
        while True:
            self.look()
            with self._state.changed:
                if self._state.halted.wait_for(lambda: self._state.stopping, LOOK_S):
                    return

    def look(self) -> None:
        """Ask the switches, if we are not sure to lead; and once we are, those that called meanwhile."""
        standing = self._standing()
        if standing is PairStanding.LEADER:
            self._switches.ask_waiting()
        if standing is not PairStanding.UNSURE:
            self._say(frozenset())
            return
        state, asked_us = self._state, self._state.elapsed_us()
        obeying = self._switches.still_obeying(ANSWERED_S)
        others = {switch.name for switch in state.site.network.switches if switch.dpid not in obeying}
        with state.changed:
            hosts = state.reported.hosts
        crossing = frozenset(name for name, host in hosts.items() if crosses(host, others))
        self._vouched = frozenset(hosts) - crossing, asked_us + VOUCHED_US
        self._say(crossing)

    def _say(self, withheld: frozenset[str]) -> None:
        """Say of which hosts the leases run out, whenever they are others."""
        if withheld != self._withheld:
            self._withheld = withheld
            _log.warning("leader.withholds", hosts=shown_names(sorted(withheld)))


def crosses(host: HostState, switches: Collection[str]) -> bool:
    """Return whether anything that a host was granted, and may act on, leads over one of some switches."""
    entries = (entry for grant in host.leases.grants for entry in grant.entries)
    return any(not {*entry.flow.path}.isdisjoint(switches) for entry in entries)
