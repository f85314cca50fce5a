"""One change in a whole controller: from the use case to the last message to a switch and a host, in process.

State, ledger, database (SQLite in memory), clock, convergence and the switches' side are the real ones. Switches and
hosts are stood in for where the wire would begin: a switch takes what it is told, a host confirms at once.
"""

import threading
from collections.abc import Callable, Collection, Mapping

from controller.checks import AnnouncementRequest
from controller.database import Database
from controller.plan.clock import Instant
from controller.plan.plan import Flow
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.wiring import SeenPort, SeenPorts, port_links
from controller.reports import Reports
from controller.site import Site
from controller.southbound.openflow.connection import Confirmed
from controller.southbound.openflow.messages import Message, messages
from controller.southbound.openflow.state import SwitchState
from controller.southbound.ovsdb.queues import PortQueues
from controller.southbound.site_switches import SiteSwitches
from controller.state.clock import SiteClock
from controller.state.guard import GuardedState
from controller.use_cases import UseCases
from controller.work.clock_watch import ClockWatch
from controller.work.convergence import Convergence
from controller.work.timekeeper import Timekeeper
from topology.network import Network
from topology.protocol import Allocations, Applied, Demand, FlowClass, Hello

S = 1_000_000
LEASE_MS = 10_000


class TakenSwitches:
    """Switches that hold what they are told, at once."""

    def __init__(self, network: Network) -> None:
        self._held: dict[int, SwitchState] = {switch.dpid: SwitchState() for switch in network.switches}
        self._ports = {s.dpid: _ports_of(network, s.name) for s in network.switches}
        self.sent: list[Message] = []

    def ports(self, dpid: int, _timeout_s: float = 0.0) -> SeenPorts:
        """Return its ports as they should be."""
        return self._ports[dpid]

    def installed(self, dpid: int, _timeout_s: float = 0.0) -> SwitchState:
        """Return what it holds."""
        return self._held[dpid]

    def unlike(self, known: Mapping[str, Confirmed]) -> set[str]:
        """Return those that hold another state."""
        return {name for name, one in known.items() if self._held[one.dpid] is not one.state}

    def apply(self, dpid: int, desired: SwitchState, _timeout_s: float) -> int:
        """Take what it is told; return how many messages that would be."""
        told = messages(desired, self._held[dpid])
        self._held[dpid] = desired
        self.sent += told
        return len(told)


class TakenQueues:
    """A database that holds what it is told, at once."""

    remote = "taken"

    def apply_each(self, _ports: Mapping[str, PortQueues], _timeout_s: float) -> Mapping[str, Exception]:
        """Take it; nothing fails."""
        return {}

    def take_off_others(self, _port_names: Collection[str], _dpids: Collection[int], _timeout_s: float) -> None:
        """Have none anywhere else."""


def _ports_of(network: Network, switch: str) -> SeenPorts:
    return {link.port_no: SeenPort(link.port_name, is_live=True) for _, link in port_links(network, switch)}


class WholeController:
    """A controller of a site whose first plan is in force."""

    def __init__(self, network: Network, standing: tuple[Flow, ...]) -> None:
        now = Instant(1_800_000_000 * S, 1_000 * S)
        database = Database("sqlite://", save_within_s=30)
        database.open()
        self.state = GuardedState(Site(network, DEFAULT_POLICY, standing, LEASE_MS, together_us=0), lambda: now, 1)
        self.reports, self.pushes = Reports(self.state), 0
        self.use_cases = UseCases(self.state, database)
        clock = ClockWatch(self.state, database, SiteClock(lambda: now.elapsed_us, lambda: now.calendar_us))
        self._clock = Timekeeper(self.state, self.use_cases, clock)
        self.switches = TakenSwitches(network)
        writers = {switch.name: TakenQueues() for switch in network.switches}
        taken = SiteSwitches(self.state.site, self.switches, writers)  # type: ignore[arg-type]
        self._convergence = Convergence(self.state, taken, self, threading.Lock())
        for host in network.hosts:
            self.reports.host_up(Hello(host.name, "0", "6.12", epoch=0))
        self.settle()
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):  # what switches hold when a circuit dies is worked out once, and
                thread.join()  # is no part of a change

    def send(self, host: str, allocations: Allocations) -> None:
        """Let a host confirm what it is sent."""
        self.pushes += 1
        self.reports.hosts_applied([(host, Applied(allocations.epoch))])

    def settle(self) -> None:
        """Let the clock and the convergence act until all layers hold the plan."""
        for _ in range(3):
            self._clock.step()
            self._convergence.step()
        with self.state.changed:
            if not self.state.installed.is_at_rest(self.state.desired.plan.epoch):
                raise AssertionError("the plan is not in force")

    def announce(self, name: str, host: str, target: str) -> None:
        """Announce an image, and put its whole rate into force: its host has it to send at once."""
        asked = AnnouncementRequest(name, FlowClass.URGENT, 10**12, (host,), target)
        self.use_cases.announce(asked).saved.result()
        self.settle()
        with self.state.changed:
            epoch = self.state.desired.plan.epoch
            (flow,) = (e.flow for e in self.state.desired.plan.of_host(host) if e.standby)
        self.reports.host_demand(host, Demand(epoch, flow.name, wants=True, standing_by=False))
        self.settle()


def announcements(network: Network, standing: tuple[Flow, ...]) -> Callable[[], object]:
    """Return an announcement by a host that had none, all steps of both its plans."""
    controller, hosts = WholeController(network, standing), iter(network.hosts[1:])

    def announce() -> object:
        host = next(hosts).name
        controller.announce(f"image-{host}", host, network.hosts[0].name)
        return controller

    return announce
