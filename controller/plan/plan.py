"""The plan: who may send how much on each circuit, and what that means at each layer that enforces it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from operator import attrgetter, is_not
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from weakref import ref

from controller.plan.called import Called, called_in
from controller.plan.differences import differing_keys
from controller.plan.keys import ClassShare, FlowId
from controller.plan.policy import Policy
from topology.addresses import Prefix
from topology.network import Hop, Network, hops
from topology.protocol import FlowClass, Tail
from topology.wire import PPM, Framing, Layer, converted_bps

if TYPE_CHECKING:
    from controller.plan.workings import Workings


@dataclass(frozen=True, slots=True)
class Selector:
    """Which connections of a pair of hosts a flow is for; as it stands, the rest: all that no other flow claims.

    Attributes:
        dest_port: the receiver's TCP port; 0 for any.
        local_port: the sender's TCP port; 0 for any.
        own_dscp: the code point that the application itself has set; None for any.
    """

    dest_port: int = 0
    local_port: int = 0
    own_dscp: int | None = None

    @property
    def has_ports(self) -> bool:
        """Whether they are told by a port."""
        return bool(self.dest_port or self.local_port)


THE_REST = Selector()
LEAST_TOLD_BPS = 8  # of payload: a host's kernel counts whole bytes a second, and 0 is none


class Carried(NamedTuple):
    """A flow that another one stands for, and what it is promised, bit/s on the wire."""

    name: FlowId
    floor_bps: int


@dataclass(frozen=True, slots=True)
class Flow:
    """Somebody who wants to send: a standing flow from the configuration, or a part of an announcement.

    Attributes:
        name: unique, e.g. ``background/base23``.
        flow_class: its class.
        host: the sending host.
        target: the receiving host.
        dest: the receiver's address as a prefix.
        path: the nodes it crosses, from host to target.
        wanted_bps: what it can use, bit/s on the wire; None for all it can get.
        floor_bps: what it is promised, bit/s on the wire; served before the rest of its class.
        standby_bps: bit/s on the wire for handshakes and repetitions while nothing else is to be sent; 0: not watched.
        size_bytes: the payload it has announced; 0 if nobody knows.
        selector: which of the pair's connections it is for.
        mark: the code point that its host sets, by which switches tell it from others of the pair; None: not marked.
        also: the receiver's other addresses, of the families that the sender has too.
        interface_of: whose further interface the sending host is; empty for a host. Its agent holds the flow.
        lanes_of: the announcement of which it is one of several lanes; empty if it is none.
        called_by: the host that connects for what comes by its lanes, and deals its connections to them; empty if the
            sender does.
        is_away: its host is absent; it keeps a standby rate, and its class what nobody else wants.
        carries: what it stands for, itself included, where several are for the same connections; empty for itself.
        tail: coded if parities are to follow its transfers, as its host's agent and its receiver's offer it.
    """

    name: FlowId
    flow_class: FlowClass
    host: str
    target: str
    dest: Prefix
    path: tuple[str, ...]
    wanted_bps: int | None = None
    floor_bps: int = 0
    standby_bps: int = 0
    size_bytes: int = 0
    selector: Selector = THE_REST
    mark: int | None = None
    carries: tuple[Carried, ...] = ()
    is_away: bool = False
    also: tuple[Prefix, ...] = ()
    interface_of: str = ""
    lanes_of: str = ""
    called_by: str = ""
    tail: Tail = Tail.PLAIN

    @property
    def machine(self) -> str:
        """The host whose agent holds it."""
        return self.interface_of or self.host

    @property
    def links(self) -> tuple[Hop, ...]:
        """The directed links on its path."""
        return hops(self.path)

    @property
    def names(self) -> tuple[FlowId, ...]:
        """The names of all flows that it stands for."""
        return tuple(known.name for known in self.carries) or (self.name,)


@dataclass(frozen=True, slots=True)
class Entry:
    """One allocation: a flow, its rate and its window.

    Attributes:
        flow: who sends.
        frame_bps: its part of the class's meter, bit/s of Ethernet frames.
        payload_bps: what the host paces at, bit/s of TCP payload.
        window_segments: the fixed congestion window.
        standby: what the host steps down to by itself while the flow has nothing to send; None if it does not.
    """

    flow: Flow
    frame_bps: int
    payload_bps: int
    window_segments: int
    standby: "Standby | None" = None

    def stepped_down(self) -> "Entry":
        """Return it as the host acts on it once it has stepped down."""
        if self.standby is None or self.standby.frame_bps >= self.frame_bps:
            return self
        return replace(self, frame_bps=self.standby.frame_bps, payload_bps=self.standby.payload_bps)


@dataclass(frozen=True, slots=True)
class Standby:
    """The rate of a flow that has nothing to send, at two layers."""

    frame_bps: int
    payload_bps: int


@dataclass(frozen=True, slots=True)
class ClassLimits:
    """What one class has at each layer.

    Attributes:
        wire_bps: its share of the circuit, bit/s on the wire.
        queue_bps: what its queue is guaranteed, bit/s of frames.
        meter_bps: what its meter lets through, bit/s of frames, whole kbit/s (OpenFlow 1.3 ofp_meter_band).
    """

    wire_bps: int
    queue_bps: int
    meter_bps: int


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """One direction of one circuit.

    Attributes:
        wire_bps: the circuit, bit/s on the wire.
        circuit_bps: the same in frames, which is what the switch's port may send.
        classes: every class's limits.
    """

    wire_bps: int
    circuit_bps: int
    classes: dict[FlowClass, ClassLimits]


T = TypeVar("T")
COMPARED = 8  # other plans of which is kept how a plan differs from them
_NAME = attrgetter("flow.name")


def by_host(entries: Sequence[Entry]) -> dict[str, tuple[Entry, ...]]:
    """Return entries by their sending hosts, those of each in their order."""
    hosts = [one.flow.interface_of or one.flow.host for one in entries]  # as ``machine`` is, without a call for each
    alone = [*zip(entries)]
    found: dict[str, tuple[Entry, ...]] = dict(zip(hosts, alone, strict=True))
    if len(found) < len(hosts):  # most hosts have one, and are done
        several = {*compress(hosts, map(is_not, alone, map(found.get, hosts)))}
        lists: dict[str, list[Entry]] = {host: [] for host in several}
        for host, one in compress(zip(hosts, entries, strict=True), map(several.__contains__, hosts)):
            lists[host].append(one)
        found.update((host, tuple(of_host)) for host, of_host in lists.items())
    return found


@dataclass(frozen=True)
class Plan:
    """The bandwidth plan. Even epochs are settled, odd ones are on the way between two.

    Attributes:
        epoch: number of the plan; only grows.
        links: every direction of every circuit.
        entries: the allocations, ordered by name.
        down: circuits that nothing is sent by.
        workings: from which it was made, and another one can be made where that differs; None if they are not kept.
    """

    epoch: int
    links: dict[Hop, LinkPlan]
    entries: tuple[Entry, ...]
    down: frozenset[str] = frozenset()
    workings: "Workings | None" = field(default=None, compare=False, repr=False)

    def of_host(self, host: str) -> tuple[Entry, ...]:
        """Return the entries of one sending host, of all its interfaces."""
        return self._by_host.get(host, ())

    def has(self, entry: Entry) -> bool:
        """Return whether it is the very value that this plan has for its flow, as most stay from plan to plan."""
        return self._own.get(entry.flow.name) is entry

    def apart(self, other: "Plan") -> list[Entry]:
        """Return the entries that another plan does not have as the very same values."""
        return [self.entries[place] for place in self.places_apart(other)]

    def places_apart(self, other: "Plan") -> list[int]:
        """Return where these stand among the entries."""
        return [] if self.entries is other.entries else _kept(self._apart, other, self._places_apart)

    def hops_apart(self, other: "Plan") -> list[Hop]:
        """Return the links for which this plan and another do not have the very same value."""
        return [] if self.links is other.links else _kept(self._hops_apart, other, self._find_hops_apart)

    def _places_apart(self, other: "Plan") -> list[int]:
        is_same_order = bool(other._own) and self._names == other._names  # as mostly
        theirs: Iterable[Entry | None] = other.entries if is_same_order else map(other._own.get, self._names)
        return [*compress(range(len(self.entries)), map(is_not, self.entries, theirs))]

    def _find_hops_apart(self, other: "Plan") -> list[Hop]:
        return differing_keys(self.links, other.links)

    def not_among(self, other: "Plan") -> list[Entry]:
        """Return the same; of two entries of a name the last one alone is among those of a plan."""
        if len(other._latest) == len(other.entries):  # no two of a name there, as mostly: found once for all who ask
            return self.apart(other)
        return [*compress(self.entries, map(is_not, self.entries, map(other._latest.get, self._names)))]

    def named(self, name: FlowId) -> Entry | None:
        """Return the entry of a flow, the last if there are two; None if there is none."""
        return self._latest.get(name)

    def in_order(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """Return entries of this plan in its order."""
        if len(entries) < 2:
            return tuple(entries)
        return tuple(sorted(entries, key=lambda entry: self._places[entry.flow.name]))

    def hosts_apart(self, other: "Plan") -> set[str]:
        """Return the hosts of which this plan and another do not have all entries as the very same values.

        Those whose connections are dealt to such an entry's lane are among them.
        """
        apart = (*self.apart(other), *other.apart(self))
        return {e.flow.machine for e in apart} | {e.flow.called_by for e in apart if e.flow.called_by}

    @cached_property
    def called(self) -> Mapping[str, tuple[Called, ...]]:
        """The lanes that connections are dealt to, by the host that makes these."""
        return called_in(self.entries)

    @cached_property
    def _own(self) -> dict[FlowId, Entry]:
        """The entries by name; none if there are two of a name, where a place with a fault holds one."""
        return self._latest if len(self._latest) == len(self.entries) else {}

    @cached_property
    def _latest(self) -> dict[FlowId, Entry]:
        """The entries by name, of two of a name the last."""
        return dict(zip(self._names, self.entries, strict=True))

    @cached_property
    def _places(self) -> dict[FlowId, int]:
        """Where the first entry of a name stands among the names."""
        return {name: place for place, name in enumerate(self._latest)}

    @cached_property
    def _apart(self) -> list[tuple["ref[Plan]", list[int]]]:
        """What was found of the last other plans: entries, by their places."""
        return []

    @cached_property
    def _hops_apart(self) -> list[tuple["ref[Plan]", list[Hop]]]:
        """The same, of links."""
        return []

    @cached_property
    def _names(self) -> tuple[FlowId, ...]:
        """The entries' names, in their order."""
        return tuple(map(_NAME, self.entries))

    @cached_property
    def _by_host(self) -> dict[str, tuple[Entry, ...]]:
        """The entries by sending host: each asks for its own, and all of them after each change."""
        return by_host(self.entries)


def _kept(known: list[tuple["ref[Plan]", list[T]]], other: Plan, find: Callable[[Plan], list[T]]) -> list[T]:
    """Return how a plan differs from another; what was found is kept, as the same two are compared in each look."""
    for plan, found in known:
        if plan() is other:
            return found
    found = find(other)
    known.append((ref(other), found))
    del known[:-COMPARED]
    return found


@dataclass(frozen=True, slots=True)
class PlanInput:
    """What a plan is made for.

    Attributes:
        flows: who wants to send now; those of one pair of hosts differ in their selectors.
        capacity_bps: by link, what a circuit carries now, on the wire; one that is absent carries its link's rate.
        reserved_bps: what promises keep of a class on a link above the class's guarantee, on the wire.
        down: circuits that nothing is sent by; no flow crosses them.
    """

    flows: tuple[Flow, ...]
    capacity_bps: Mapping[Hop, int] = field(default_factory=dict)
    reserved_bps: Mapping[ClassShare, int] = field(default_factory=dict)
    down: frozenset[str] = frozenset()


def standing_in(flow: Flow, network: Network, policy: Policy) -> Flow:
    """Return a flow as others have to make room for it: of an absent host's, what any flow keeps to stand by."""
    if not flow.is_away:
        return flow
    standby_bps = flow.standby_bps or network.narrowest_bps(flow.path) * policy.standby_ppm // PPM
    return replace(flow, wanted_bps=standby_bps if flow.wanted_bps is None else min(standby_bps, flow.wanted_bps))


def entry(flow: Flow, frame_bps: int, network: Network, policy: Policy) -> Entry:
    """Return the allocation that fills ``frame_bps`` of a meter, with the window its rate needs."""
    framing = network.framing_of(flow.path)
    payload_bps = converted_bps(frame_bps, Layer.FRAME, Layer.PAYLOAD, framing)
    rtt_us = network.path_rtt_us(flow.path)
    window_segments = policy.window_segments(max(1, payload_bps), rtt_us, framing.mss_bytes)
    return Entry(flow, frame_bps, payload_bps, window_segments, _standby(flow, frame_bps, framing))


def _standby(flow: Flow, frame_bps: int, framing: Framing) -> Standby | None:
    """Return what a flow steps down to: whole kbit/s, like a meter, so that those of a class fit into theirs."""
    if not flow.standby_bps:
        return None
    standby_bps = min(frame_bps, converted_bps(flow.standby_bps, Layer.WIRE, Layer.FRAME, framing)) // 1000 * 1000
    payload_bps = converted_bps(standby_bps, Layer.FRAME, Layer.PAYLOAD, framing)
    return Standby(standby_bps, payload_bps) if payload_bps else None
