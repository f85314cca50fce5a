"""Which agents call: their port is listened at for a while, and each is asked nothing but what it says first."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from controller.security.tls import ServerTls
from controller.southbound.agents.hosts import HostSessions
from topology.file_values import is_name
from topology.protocol import Allocations, Applied, Declined, Demand, Hello, Repaired
from topology.telemetry import Telemetry

LEASE_MS = 3000  # nothing is granted, so nothing is renewed
MOST = 1024  # callers: without TLS anybody can call, by any name


class Callers:
    """Hears who calls, and lets nobody in: no agent has a plan from here."""

    def __init__(self, heard: Callable[[Hello], None]) -> None:
        self._heard = heard
        self.hellos: dict[str, Hello] = {}

    def host_up(self, hello: Hello) -> Allocations | None:
        """Keep what an agent says of its host; refuse it. What is no name is not kept, of an interface neither."""
        is_new = hello.host not in self.hellos
        if is_name(hello.host) and (not is_new or len(self.hellos) < MOST):
            named = tuple(one for one in hello.interfaces if is_name(one.name))
            self.hellos[hello.host] = kept = replace(hello, interfaces=named)
            if is_new:
                self._heard(kept)
        return None

    def host_again(self, hello: Hello) -> None:
        """Nothing: nobody was let in."""

    def host_down(self, host: str) -> None:
        """Nothing: nobody was let in."""

    def hosts_applied(self, said: Sequence[tuple[str, Applied]]) -> None:
        """Nothing: nobody was let in."""

    def host_telemetry(self, host: str, telemetry: Telemetry) -> None:
        """Nothing: nobody was let in."""

    def host_declined(self, host: str, declined: Declined) -> None:
        """Nothing: nobody was let in."""

    def host_demand(self, host: str, demand: Demand) -> None:
        """Nothing: nobody was let in."""

    def host_repaired(self, host: str, repaired: Repaired) -> None:
        """Nothing: nobody was let in."""


def agents_calling(
    address: str, tls: ServerTls | None, wait_s: float, heard: Callable[[Hello], None] = lambda _: None
) -> tuple[Hello, ...]:
    """Return what the agents that call within a time say first, by their hosts' names; Ctrl-C ends the wait.

    An agent that is refused dials again every few seconds; one that is served by a controller does not call.

    Args:
        address: where to listen, ``host:port``.
        tls: what agents are shown, and who signs what they show; None for plain text.
        wait_s: how long.
        heard: is told of each, once.

    Raises:
        OSError: the port is taken, the address is not ours, or a file of ``tls`` is wrong.
    """
    callers = Callers(heard)
    sessions = HostSessions(callers, LEASE_MS, tls)
    sessions.start(address)
    try:
        time.sleep(wait_s)
    except KeyboardInterrupt:
        pass
    finally:
        sessions.stop()
    return tuple(callers.hellos[host] for host in sorted(callers.hellos))
