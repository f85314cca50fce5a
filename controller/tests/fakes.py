"""A site without switches and agents: fakes with the real interfaces, and a clock that is set by hand."""

import threading
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import replace

from controller.audit.drift import Compared
from controller.audit.runner import AuditRunner
from controller.audit.switches import Part
from controller.checks import AnnouncementRequest
from controller.database import Database
from controller.plan.clock import Instant
from controller.plan.faults import PlaceFault
from controller.plan.plan import Plan
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, RAW_IMAGES
from controller.plan.wiring import SeenPort, port_links
from controller.reports import Reports
from controller.reserved import Reserved
from controller.site import Site
from controller.state.clock import SiteClock
from controller.state.faults import switch_gone
from controller.state.guard import GuardedState
from controller.state.value import SiteState
from controller.switch_reports import SwitchReports
from controller.use_cases import UseCases
from controller.work.clock_watch import ClockWatch
from controller.work.convergence import Convergence
from controller.work.mending import Mending
from controller.work.timekeeper import prepare
from mininet_tests.testing.networks import chile_illinois
from topology.network import Hop
from topology.protocol import Allocations, Applied, Demand, FlowClass, Hello

START_US = 1_767_225_600_000_000
ELAPSED_US = 500_000_000_000  # at the start; another number than Unix time, so that nobody takes one for the other
LEASE_MS = 300
LS1 = chile_illinois().switches[0]


class Clock:
    """A clock that stands still until it is moved; nobody sets the calendar."""

    def __init__(self):
        self.now_us = START_US

    def __call__(self):
        """Return the time."""
        return self.now_us

    def instant(self):
        """Return the time in both kinds."""
        return Instant(self.now_us, self.now_us - START_US + ELAPSED_US)


def value_of(state: GuardedState) -> SiteState:
    """Return the state as it is now."""
    with state.changed:
        return state.value


class SetClock(Clock):
    """A machine's clocks, of which the wall clock can be set, and the calendar that the real rule makes of them."""

    def __init__(self):
        self.wall_us, self.elapsed_us = START_US, ELAPSED_US
        self.site_clock = SiteClock(lambda: self.elapsed_us, lambda: self.wall_us)

    def __call__(self):
        """Return the calendar's time."""
        return self.instant().calendar_us

    def instant(self):
        """Return the time in both kinds."""
        return self.site_clock.now()

    def passes(self, us):
        """Time passes."""
        self.elapsed_us += us
        self.wall_us += us


class FakeSwitches:
    """Takes every plan at once; refuses while ``gone``."""

    def __init__(self):
        self.log: list[tuple[str, Plan]] = []
        self.gone = False
        self.missing: set[Hop] = set()  # links whose ports are not there
        self.found: dict[str, list[Compared]] = {}  # by switch, what its next audits find
        self.audited_with: list[tuple[str, Plan, Plan]] = []

    def audited(self, switch, meters, queues, _shut):
        """Return what was set to be found; nothing if that is all."""
        self.audited_with.append((switch.name, meters, queues))
        found = self.found.get(switch.name, [])
        return (Part(found.pop(0) if found else Compared()),)

    def put_meters(self, plan, shut, *, no_higher=False):
        """Take rules and meters."""
        self.log.append(("meters not higher" if no_higher else "meters", plan))
        return (switch_gone(LS1),) if self.gone and LS1.name not in shut.switches else ()

    def put_queues(self, plan, shut, *, in_doubt=False):
        """Take queues."""
        self.log.append(("queues", plan))
        why = "there is no such port"
        missing = sorted(self.missing - shut.ports)
        return tuple(PlaceFault(f"port to {h.head} of {h.tail}", why, ports=frozenset({h})) for h in missing)

    def mended(self, fault, _meters, _queues):
        """Take what is in force."""
        return (fault,) if (self.gone and fault.switches) or fault.ports & self.missing else ()


class FakeHosts:
    """Agents that confirm at once, unless told to be silent."""

    def __init__(self, reports: Reports):
        self._reports = reports
        self.silent: set[str] = set()
        self.sent: list[tuple[str, Allocations]] = []

    def send(self, host, allocations):
        """Take a message, and confirm it."""
        self.sent.append((host, allocations))
        if host not in self.silent:
            self._reports.hosts_applied([(host, Applied(allocations.epoch))])


class PatientUseCases(UseCases):
    """Use cases whose clock waits for the disk, so that a test need not."""

    def tick(self):
        """Act, and return once all that was decided before is saved and planned."""
        saved = super().tick()
        wait([saved], 30)
        with self._state.changed:
            self._state.replan()
        return saved


def opened(url):
    """A database that is patient."""
    database = Database(url, save_within_s=30)
    database.open()
    return database


@contextmanager
def closing(monkeypatch):
    """Close at the end what sites have opened meanwhile: a database has threads, and they do not end by themselves."""
    open_now, made = opened, []

    def noted(url):
        made.append(open_now(url))
        return made[-1]

    monkeypatch.setattr(f"{__name__}.opened", noted)
    yield
    for database in made:
        database.close()


class FakeSite:
    """All of it, wired as the controller's process does."""

    def __init__(
        self,
        network=None,
        standing=(DATABASE, RAW_IMAGES),
        database="sqlite://",
        clock=None,
        together_us=0,
        switches=None,
        **more,
    ):
        self.clock = clock or Clock()
        network = network or chile_illinois()
        there = (flow for flow in standing if {flow.host, flow.target} <= network.host_names)
        standing = tuple(replace(flow, path=network.path(flow.host, flow.target)) for flow in there)
        site = Site(network, more.pop("policy", DEFAULT_POLICY), standing, LEASE_MS, together_us=together_us, **more)
        self.database = database if isinstance(database, Database) else opened(database)
        self.state = GuardedState(site, self.clock.instant, self.database.term)
        self.reports = Reports(self.state)
        self.switch_reports = SwitchReports(self.state)
        self.use_cases = PatientUseCases(self.state, self.database)
        self.switches = switches or FakeSwitches()
        self.hosts = FakeHosts(self.reports)
        writing = threading.Lock()
        self.audits = AuditRunner(self.state, self.switches, self.hosts, writing, now_s=lambda: self.clock() / 1e6)
        self.convergence = Convergence(self.state, self.switches, self.hosts, writing)
        self.mending = Mending(self.state, self.switches, spawn=lambda work: work())

    @property
    def value(self) -> SiteState:
        """The state as it is now."""
        return value_of(self.state)

    def attach(self, *hosts, codes_tails=False):
        """Let agents say hello and confirm what they are told."""
        for host in hosts:
            told = self.reports.host_up(Hello(host, "0", "6.12", epoch=0, codes_tails=codes_tails))
            self.reports.hosts_applied([(host, Applied(told.epoch))])

    def attach_all(self):
        """Let every agent of the network say hello."""
        self.attach(*self.state.site.network.agents)

    def ports(self, dpid):
        """Return the ports of a switch as they should be."""
        network = self.state.site.network
        (name,) = (s.name for s in network.switches if s.dpid == dpid)
        return {link.port_no: SeenPort(link.port_name, is_live=True) for _, link in port_links(network, name)}

    def switch_up(self, dpid, ports=None):
        """Let a switch connect, with all its ports as they should be, or with others."""
        self.switch_reports.switch_up(dpid, "192.0.2.1:50000", self.ports(dpid) if ports is None else ports)

    def wire(self):
        """Let every switch connect."""
        for switch in self.state.site.network.switches:
            self.switch_up(switch.dpid)
        self.converge()

    def port_said(self, dpid, port_no, *, is_live):
        """Let a switch say that a port of it is live, or is not; one that has not called yet calls first."""
        if dpid not in self.value.reported.wiring.ports:
            self.switch_up(dpid)
        port = self.ports(dpid).get(port_no, SeenPort("spare", is_live=True))
        self.switch_reports.port_said(dpid, port_no, SeenPort(port.name, is_live))

    def converge(self):
        """Let the clock act, audit, carry out what is to do, and let the clock take note of it."""
        self.use_cases.tick()
        prepare(self.state)
        self.mending.look()
        self.audits.next()
        while self._waits_for_an_audit():
            self.audits.next()
        self.convergence.step()
        self.use_cases.tick()
        prepare(self.state)

    def _waits_for_an_audit(self):
        with self.state.changed:
            return bool(self.state.value.reported.switches_back) and self.audits.is_due()

    def reservation(self, name):
        """Return a reservation, from memory or from the database."""
        return Reserved(self.use_cases, self.database).one(name)

    def demand(self, *hosts, wants=True):
        """Let hosts see that their announced flows can send, or that their flights have ended."""
        for host in hosts:
            told = self.value.reported.hosts[host].leases.grants[-1]
            for entry in told.entries:
                if entry.standby:
                    self.reports.host_demand(host, Demand(told.epoch, entry.flow.name, wants, not wants))

    def announce(self, asked):
        """Announce, and put the answer into force."""
        kept = self.use_cases.announce(asked)
        kept.saved.result()
        self.use_cases.tick()
        prepare(self.state)
        return kept.value


def watch_of(site):
    """Return what looks at a site's clocks."""
    clock = site.clock
    read = clock.site_clock if isinstance(clock, SetClock) else SiteClock(lambda: clock.instant().elapsed_us, clock)
    return ClockWatch(site.state, site.database, read)


def ready_site(**more):
    """A site whose first plan is in force, every agent attached."""
    site = FakeSite(**more)
    site.attach_all()
    site.converge()
    return site


def image(name="image", **changes):
    """An announcement of the LSST image."""
    fields = {
        "announcement_id": name,
        "flow_class": FlowClass.URGENT,
        "size_bytes": 2_688_024_580,
        "senders": ("base20", "base21"),
        "target": "arch",
    }
    return AnnouncementRequest(**(fields | changes))


def sending_image(site, name="image"):
    """Announce the LSST image and let its senders see that they can send; the plan then gives them its rate."""
    site.announce(image(name))
    site.converge()
    site.demand("base20", "base21")
    site.converge()
