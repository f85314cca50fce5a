"""What was reported from below: by hosts, by switches, and by the database."""

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from controller.plan.called import Called
from controller.plan.delays import MeasuredDelays
from controller.plan.intake import Intake
from controller.plan.keys import FlowId
from controller.plan.leases import Leases
from controller.plan.lines import Lines
from controller.plan.plan import Entry, Flow
from controller.plan.wiring import Wiring
from controller.state.progress import EntryProgress, Hindrance, Telling
from controller.state.round_trips import Moving
from topology.telemetry import StoreTelemetry, Telemetry

NEVER_US = 2**63


@dataclass(frozen=True, slots=True)
class KnownStore:
    """A store of a host: what was told of it last, and what it takes."""

    told: StoreTelemetry
    intake: Intake


NOTHING: Mapping[str, Any] = MappingProxyType({})
NO_LEASES = Leases()


class HostState(NamedTuple):
    """What is known of one host's agent. Times are elapsed times.

    A tuple: two of its many members change with each message to a host and each confirmation, and a tuple is made anew
    in a quarter of the time that another value takes.

    Attributes:
        connected: whether its stream is open.
        away_us: if it is not, since when, elapsed time.
        kernel: its kernel's release.
        leases: what it was granted, and may be acting on.
        confirmed_epoch: the epoch its kernel confirmed last.
        wants: by watched flow, whether it has more to send than its standby rate carries.
        confirmed_us: when its kernel confirmed what it was sent last.
        telemetry: its counters.
        telemetry_us: when they came; 0 if that was before its stream was opened.
        unknown_until_us: until when it may be acting on what an earlier controller granted, and nobody here knows what.
        progress: by entry, what is delivered and what is in the way of more.
        since_us: since when its stream is open, or is not, Unix time; 0 if it never was.
        intakes: by entry, what its receiver takes.
        stores: by name, where it puts what it receives.
        moving: by name, its entries that cross a circuit whose delay is not known.
        called: the lanes that it was told to deal its connections to.
        codes_tails: whether it sends parities where it is told to, and rebuilds what those that come are for.
    """

    connected: bool = False
    away_us: int = 0
    kernel: str = ""
    leases: Leases = NO_LEASES
    confirmed_epoch: int = 0
    wants: Mapping[str, bool] = NOTHING
    confirmed_us: int = 0
    telemetry: Telemetry | None = None
    telemetry_us: int = 0
    unknown_until_us: int = 0
    progress: Mapping[str, EntryProgress] = NOTHING
    since_us: int = 0
    intakes: Mapping[str, Intake] = NOTHING
    stores: Mapping[str, KnownStore] = NOTHING
    moving: Mapping[str, Moving] = NOTHING
    called: tuple[Called, ...] = ()
    codes_tails: bool = False

    def granted(
        self, epoch: int, entries: tuple[Entry, ...], now_us: int, lease_us: int, called: tuple[Called, ...] = ()
    ) -> "HostState":
        """Return it after it was sent what it may do."""
        return self._replace(leases=self.leases.sent(epoch, entries, now_us, lease_us), called=called)

    @property
    def sent_epoch(self) -> int:
        """The epoch of what it was granted last; 0 if nothing yet."""
        return self.leases.grants[-1].epoch if self.leases.grants else 0

    @property
    def sent(self) -> tuple[Entry, ...]:
        """What it was granted last, in full."""
        return self.leases.grants[-1].entries if self.leases.grants else ()

    @property
    def acts_as_granted(self) -> tuple[Entry, ...]:
        """What it acts on, or is about to: the last grant, stepped down where it said so."""
        return self.leases.grants[-1].acting if self.leases.grants else ()

    @property
    def holds(self) -> bool:
        """Whether it has a store, or one of its flows a receiver that takes less than it could be sent."""
        return bool(self.stores) or any(one.drain_bps is not None for one in self.intakes.values())

    @property
    def telling(self) -> Telling | None:
        """What it has told of its entries last; None if nothing since its stream was opened."""
        if self.telemetry is None or not self.telemetry_us or not self.connected:
            return None
        entries = {seen.name: seen for seen in self.telemetry.entries}
        has_lease, host_us = self.telemetry.lease_left_ms > 0, self.telemetry.at_us
        return Telling(entries, has_lease, self.telemetry_us, 0, host_us)

    def delivers(self, name: str, started_us: int) -> EntryProgress:
        """Return what an entry of this host delivers; the controller runs since ``started_us``, Unix time."""
        known = self.progress.get(name) or EntryProgress(
            0, 0, False, Hindrance.NOT_APPLIED, self.since_us or started_us
        )
        if self.connected:
            return known
        return replace(known, delivered_bps=0, hindrance=Hindrance.NO_AGENT, since_us=self.since_us or started_us)

    def lacks(self, name: FlowId) -> bool:
        """Return whether it is there, and has not confirmed an entry of this flow."""
        is_sent = any(entry.flow.name == name for entry in self.sent)
        return self.connected and not (is_sent and self.confirmed_epoch == self.sent_epoch)

    def lacks_lanes(self, announcement_id: str) -> bool:
        """Return whether it is there, and has not confirmed that it deals connections to an announcement's lanes."""
        is_told = any(one.lanes_of == announcement_id for one in self.called)
        return self.connected and not (is_told and self.confirmed_epoch == self.sent_epoch)

    def waits(self, flow: Flow) -> bool:
        """Return whether a flow of this host has nothing to send yet, or any more; not known of one that is gone."""
        return bool(flow.standby_bps) and self.connected and not self.wants.get(flow.name, False)


class AbsentHosts(NamedTuple):
    """The hosts that have been away for a lease, from one elapsed time until another."""

    names: frozenset[str]
    lease_us: int
    from_us: int
    until_us: int


class Hosts(Mapping[str, HostState]):
    """The state of every host, by name; it knows, without a look at all of them, which need one.

    Attributes:
        away: those that are not connected.
        unknown: those that may be acting on what nobody here knows of, or were until lately.
        wanting: those of which it is known whether a flow has something to send.
        holding: those that have a store, or send to a receiver that takes less than it could be sent.
    """

    __slots__ = ("_absent", "_states", "away", "holding", "unknown", "wanting")

    def __init__(self, states: Mapping[str, HostState]) -> None:
        self._states = dict(states)
        self._absent: AbsentHosts | None = None
        self.away = frozenset(name for name, state in states.items() if not state.connected)
        self.unknown = frozenset(name for name, state in states.items() if state.unknown_until_us)
        self.wanting = frozenset(name for name, state in states.items() if state.wants)
        self.holding = frozenset(name for name, state in states.items() if state.holds)

    def put(self, states: Mapping[str, HostState]) -> "Hosts":
        """Return them with other states of some."""
        found = Hosts.__new__(Hosts)
        found._states = {**self._states, **states}
        found._absent = None
        found.away, found.unknown, found.wanting, found.holding = self.away, self.unknown, self.wanting, self.holding
        for name, state in states.items():
            found.away = _with(found.away, name, is_in=not state.connected)
            found.unknown = _with(found.unknown, name, is_in=bool(state.unknown_until_us))
            found.wanting = _with(found.wanting, name, is_in=bool(state.wants))
            found.holding = _with(found.holding, name, is_in=state.holds)
        return found

    def absent(self, elapsed_us: int, lease_us: int) -> "AbsentHosts":
        """Return who has been away for a lease; looked for again only when another one has been."""
        known = self._absent
        if known is None or known.lease_us != lease_us or not known.from_us <= elapsed_us < known.until_us:
            ends_us = {name: self._states[name].away_us + lease_us for name in self.away}
            names = frozenset(name for name, at_us in ends_us.items() if at_us <= elapsed_us)
            until_us = min((at_us for at_us in ends_us.values() if at_us > elapsed_us), default=NEVER_US)
            self._absent = known = AbsentHosts(names, lease_us, elapsed_us, until_us)
        return known

    def __getitem__(self, name: str) -> HostState:
        """Return the state of one."""
        return self._states[name]

    def __contains__(self, name: object) -> bool:
        """Return whether there is a host of this name."""
        return name in self._states

    def __iter__(self) -> Iterator[str]:
        """Return their names, one after the other."""
        return iter(self._states)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._states)

    def keys(self) -> KeysView[str]:
        """Return their names."""
        return self._states.keys()

    def values(self) -> ValuesView[HostState]:
        """Return their states."""
        return self._states.values()

    def items(self) -> ItemsView[str, HostState]:
        """Return both."""
        return self._states.items()


def _with(names: frozenset[str], name: str, *, is_in: bool) -> frozenset[str]:
    """Return names with one, or without it; mostly the same."""
    return names if (name in names) is is_in else names ^ {name}


NO_AGENT = HostState()


@dataclass(frozen=True, slots=True)
class PlaceAlarm:
    """What an audit has found and cannot repair, or why it could not look.

    Attributes:
        what: in words.
        port_name: the interface of the port that it is at; empty if it is at none.
        is_silent: the switch, or its database, does not answer.
    """

    what: str
    port_name: str = ""
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class ProviderTrouble:
    """What is wrong between us and a circuit's provider.

    Attributes:
        what: in words.
        is_denied: it does not accept our credentials.
    """

    what: str
    is_denied: bool


@dataclass(frozen=True, slots=True)
class Reported:
    """All that came from below.

    Attributes:
        hosts: every host's agent.
        demands: how often a host has come or gone, or has said what it wants to send or takes.
        lines: how the circuits' lines are.
        wiring: which switches are there, and by which ports.
        alarms: by place, what its latest audit has left for a person.
        doubts: how often it was learnt that the switches may not hold what was installed.
        switches_back: dpids of those to be audited at once.
        calendar_off_us: the wall clock less the calendar's time, while somebody has set it to another one.
        database_error: why the database does not save: nothing is promised until it was read anew.
        providers: by circuit that is bought at need, what is wrong with its provider; nothing of those that do well.
        delays: what was measured of circuits whose delay is not known.
    """

    hosts: Hosts
    demands: int = 0
    lines: Lines = field(default_factory=Lines)
    wiring: Wiring = field(default_factory=Wiring)
    alarms: Mapping[str, tuple[PlaceAlarm, ...]] = field(default_factory=dict)
    doubts: int = 0
    switches_back: frozenset[int] = frozenset()
    database_error: str = ""
    calendar_off_us: int = 0
    providers: Mapping[str, ProviderTrouble] = field(default_factory=dict)
    delays: MeasuredDelays = field(default_factory=MeasuredDelays)

    def agent_of(self, flow: Flow) -> HostState:
        """Return the agent that holds a flow; one that is never there if its host has none."""
        return self.hosts.get(flow.machine, NO_AGENT)

    @property
    def connected(self) -> frozenset[str]:
        """The hosts whose agents are connected."""
        return frozenset(name for name, state in self.hosts.items() if state.connected)

    def unknown_until_us(self, elapsed_us: int) -> int | None:
        """Return until when some host may be acting on what nobody here knows of; None if none does any more."""
        until_us = (self.hosts[name].unknown_until_us for name in self.hosts.unknown)
        return max((at_us for at_us in until_us if elapsed_us < at_us), default=None)

    def with_host(self, name: str, state: HostState) -> "Reported":
        """Return it with another state of a host."""
        return self.with_hosts({name: state})

    def with_hosts(self, states: Mapping[str, HostState]) -> "Reported":
        """Return it with other states of some hosts."""
        return replace(self, hosts=self.hosts.put(states))

    def with_watched(self, watched: Iterable[tuple[str, str]]) -> "Reported":
        """Return it with the demand of (host, flow) alone that a plan still watches."""
        by_host: dict[str, set[str]] = {}
        for host, flow in watched:
            by_host.setdefault(host, set()).add(flow)
        after = self
        for name in self.hosts.wanting:
            wants, kept = self.hosts[name].wants, by_host.get(name, set())
            if not wants.keys() <= kept:
                left = {flow: has for flow, has in wants.items() if flow in kept}
                after = after.with_host(name, self.hosts[name]._replace(wants=left))
        return after
