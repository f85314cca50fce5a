"""What OSCARS 1.2 does with circuits, wrong sums included: the part of the stand-in that knows no HTTP.

Time is a function, in Unix seconds; everything that happens by itself is caught up with whenever somebody asks.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

ALPHABET = "234679CDFGHJKMNPRTWXYZ"


class Bare500(Exception):
    """A refusal as OSCARS gives it: status 500, and the reason in its own log only."""


class Empty400(Exception):
    """Status 400 without a word."""


class NotThere(Exception):
    """Status 404 without a word."""


@dataclass
class Rules:
    """What a server is configured to; seconds and Mbit/s."""

    hold_s: float = 900
    minimum_s: float = 900
    past_s: float = 300
    begin_notice_s: float = 30
    end_notice_s: float = 60
    state_delay_s: float = 3
    deploy_s: float = 20
    start_s: float = 0
    port_mbps: int = 100_000
    ports_mbps: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Fixture:
    """Where a circuit leaves the network."""

    device: str
    port: str
    vlan: int
    strict: bool
    mbps: int


@dataclass
class CircuitRequest:
    """A circuit as somebody asks for it, in either API."""

    name: str
    begin_s: int
    end_s: int
    mtu: int | None
    description: str | None
    junctions: tuple[str, ...]
    fixtures: tuple[Fixture, ...]
    pipes: tuple[tuple[str, str, int], ...]
    mode: str = "AUTOMATIC"
    service_id: str | None = None
    username: str | None = None


@dataclass
class OscarsCircuit:
    """A circuit that is held, reserved or archived; ``at_s`` is when its deployment last moved."""

    asked: CircuitRequest
    phase: str = "HELD"
    state: str = "WAITING"
    deployment: str = "UNDEPLOYED"
    intent: str = "SHOULD_BE_UNDEPLOYED"
    at_s: float = 0
    held_until_s: float = 0
    archived_begin_s: int = 0
    last_modified_s: int = 0
    was_built: bool = False

    @property
    def mbps(self) -> int:
        """The largest rate of its parts."""
        return max([f.mbps for f in self.asked.fixtures] + [mbps for _, _, mbps in self.asked.pipes], default=0)

    @property
    def southbound(self) -> str:
        """Who builds it: inferred from stored router commands, so nobody's before the first."""
        return "NSO" if self.was_built else "RANCID"


class Oscars:
    """The reservations of one server.

    ``fail_deployment``, ``fail_commit`` and ``lie`` make it do what nobody wants to see.
    """

    def __init__(self, now_s: Callable[[], float], rules: Rules):
        self._now_s = now_s
        self.rules = rules
        self.held: dict[str, OscarsCircuit] = {}  # in memory: a restart loses it
        self.kept: dict[str, OscarsCircuit] = {}
        self.starting_until_s = 0.0
        self.fail_deployment = False
        self.fail_commit = False
        self.lie = False
        self.created = 0

    def now_s(self) -> float:
        """The time, with everything done that happens by itself until then."""
        now_s = self._now_s()
        self.held = {name: c for name, c in self.held.items() if c.held_until_s > now_s}
        for circuit in self.kept.values():
            while (step := self._next(circuit)) is not None and step[0] <= now_s:
                circuit.at_s, (circuit.deployment, changes) = step
                for name, value in changes.items():
                    setattr(circuit, name, value)
        return now_s

    def restart(self) -> None:
        """Start again: what was only held is gone, and nobody is served for a while."""
        self.held.clear()
        self.starting_until_s = self._now_s() + self.rules.start_s

    def _next(self, c: OscarsCircuit) -> tuple[float, tuple[str, dict[str, Any]]] | None:
        """What happens next by itself to a circuit, and when."""
        delay_s, work_s = self.rules.state_delay_s, self.rules.deploy_s
        down = {"intent": "SHOULD_BE_UNDEPLOYED"}
        over = {"state": "FINISHED", "phase": "ARCHIVED"}
        failed = {"state": "FAILED", "was_built": True}
        built = {"state": "ACTIVE", "intent": "SHOULD_BE_DEPLOYED", "was_built": True}
        step: tuple[float, tuple[str, dict[str, Any]]] | None = None
        match c.deployment:
            case "UNDEPLOYED" if c.phase == "RESERVED" and c.asked.mode == "AUTOMATIC" and c.state == "WAITING":
                step = c.asked.begin_s, ("WAITING_TO_BE_DEPLOYED", {"intent": "SHOULD_BE_DEPLOYED"})
            case "WAITING_TO_BE_DEPLOYED" | "WAITING_TO_BE_REDEPLOYED" | "WAITING_TO_BE_UNDEPLOYED":
                step = c.at_s + delay_s, (c.deployment.replace("WAITING_TO_BE", "BEING"), {})
            case "BEING_DEPLOYED":
                step = c.at_s + work_s, ("DEPLOY_FAILED", failed) if self.fail_deployment else ("DEPLOYED", built)
            case "BEING_REDEPLOYED":
                step = c.at_s + work_s, ("REDEPLOY_FAILED", failed) if self.fail_deployment else ("DEPLOYED", built)
            case "BEING_UNDEPLOYED":
                step = c.at_s + work_s, ("UNDEPLOYED", over)
            case "DEPLOYED" if c.phase == "ARCHIVED":
                step = c.at_s, ("WAITING_TO_BE_UNDEPLOYED", down)
            case "DEPLOYED" if c.intent == "SHOULD_BE_REDEPLOYED":
                step = c.at_s + delay_s, ("WAITING_TO_BE_REDEPLOYED", {})
            case "DEPLOYED" | "DEPLOY_FAILED" | "REDEPLOY_FAILED" if c.phase == "RESERVED":
                step = c.asked.end_s, ("WAITING_TO_BE_UNDEPLOYED", down)
        return step

    def find(self, name: str) -> OscarsCircuit:
        """The circuit of a name: what is held hides what is reserved."""
        self.now_s()
        circuit = self.held.get(name) or self.kept.get(name)
        if circuit is None:
            raise NotThere
        return circuit

    def new_name(self) -> str:
        """A name that nobody has."""
        for symbols in itertools.product(ALPHABET[6:], ALPHABET, ALPHABET, ALPHABET):
            name = "".join(symbols)
            if name not in self.held and name not in self.kept:
                return name
        raise Bare500

    def available_mbps(self, port: str, begin_s: float, end_s: float, own: str) -> int:
        """What OSCARS believes to be free: not what is free.

        What begins or ends together at the same rate counts once; what only touches counts; holds count at any time.
        """
        deltas: dict[float, set[int]] = defaultdict(set)
        for circuit, fixture in self._meeting(port, begin_s, end_s, own):
            deltas[circuit.asked.begin_s].add(fixture.mbps)
            deltas[circuit.asked.end_s].add(-fixture.mbps)
        used = peak = 0
        for at_s in sorted(deltas):
            used += sum(deltas[at_s])
            peak = max(peak, used)
        held = sum(fixture.mbps for _, fixture in self._holding(port, own))
        return self.rules.ports_mbps.get(port, self.rules.port_mbps) - peak - held

    def _meeting(self, port: str, begin_s: float, end_s: float, own: str) -> Iterator[tuple[OscarsCircuit, Fixture]]:
        """Others' reserved fixtures on a port, by comparison of closed intervals."""
        for circuit in self.kept.values():
            meets = circuit.asked.end_s >= begin_s and circuit.asked.begin_s <= end_s
            if circuit.phase == "RESERVED" and circuit.asked.name != own and meets:
                yield from ((circuit, f) for f in circuit.asked.fixtures if f.port == port)

    def _holding(self, port: str, own: str) -> Iterator[tuple[OscarsCircuit, Fixture]]:
        """Others' held fixtures on a port, whatever their time."""
        for circuit in self.held.values():
            if circuit.asked.name != own:
                yield from ((circuit, f) for f in circuit.asked.fixtures if f.port == port)

    def problems(self, asked: CircuitRequest, *, modify: bool) -> list[str]:
        """What is wrong with a request. Moves its begin without a word."""
        now_s = self.now_s()
        if asked.mtu is None:
            raise Bare500
        found = []
        if not 4 <= len(asked.name) <= 12:
            found.append(f"connection id too {'short' if len(asked.name) < 4 else 'long'}")
        elif not re.fullmatch("[a-zA-Z][a-zA-Z0-9_-]+", asked.name):
            found.append("connection id invalid format")
        if not 1500 <= asked.mtu <= 9000:
            found.append("MTU must be between 1500 and 9000 (inclusive)")
        if asked.description is None:
            found.append("null description")
        if asked.begin_s < now_s - self.rules.past_s and not modify:
            found.append("begin time is more than 5 minutes in the past")
        elif asked.begin_s <= now_s + self.rules.begin_notice_s:
            asked.begin_s = int(now_s + self.rules.begin_notice_s)
        if asked.end_s <= now_s:
            found.append("end date is in the past")
        elif asked.end_s <= asked.begin_s:
            found.append("end date not past begin()")
        elif asked.end_s < asked.begin_s + self.rules.minimum_s:
            found.append("duration is too short (less than 15 min)")
        return found + self._conflicts(asked)

    def _conflicts(self, asked: CircuitRequest) -> list[str]:
        """What a request asks for and others have."""
        found = []
        span = (asked.begin_s, asked.end_s, asked.name)
        for f in asked.fixtures:
            others = [*self._meeting(f.port, *span), *self._holding(f.port, asked.name)]
            if f.vlan in {fixture.vlan for _, fixture in others}:
                found.append(f"{f.port}: vlan {f.vlan} not available")
            if sum((g.port, g.vlan) == (f.port, f.vlan) for g in asked.fixtures) > 1:
                found.append(f"{f.port}: vlan {f.vlan} requested twice")
            if f.mbps > (free := self.available_mbps(f.port, *span)):
                found.append(f"{f.port}: bandwidth {f.mbps} not available, {max(free, 0)} is")
        return found

    def hold(self, asked: CircuitRequest) -> OscarsCircuit:
        """Keep a circuit in memory for a while; the same name again replaces it."""
        circuit = OscarsCircuit(asked, held_until_s=self.now_s() + self.rules.hold_s)
        self.held[asked.name] = circuit
        return circuit

    def commit(self, name: str) -> OscarsCircuit:
        """Make a reservation of what is held; raises Empty400 with the hold in place if it is not valid."""
        self.now_s()
        if name not in self.held:
            raise NotThere
        asked = self.held[name].asked
        if self.problems(asked, modify=False) or len(asked.fixtures) < 2 or not _connected(asked):
            raise Empty400
        before = self.kept.get(name)
        now_s = self.now_s()
        circuit = OscarsCircuit(
            asked, "RESERVED", at_s=now_s, archived_begin_s=asked.begin_s, last_modified_s=int(now_s)
        )
        if before is not None and before.deployment == "DEPLOYED":
            circuit.deployment, circuit.intent = "DEPLOYED", "SHOULD_BE_REDEPLOYED"
            circuit.state, circuit.was_built = before.state, before.was_built
        del self.held[name]
        self.kept[name] = circuit
        self.created += before is None
        return circuit

    def create_or_replace(self, asked: CircuitRequest) -> OscarsCircuit:
        """Do what both ``new`` and ``replace`` do: a name in use is replaced, and a refused commit stays held."""
        if self.problems(asked, modify=True):
            raise Bare500
        if self.lie:
            return OscarsCircuit(asked, "RESERVED")
        self.hold(asked)
        if self.fail_commit:
            raise Bare500
        try:
            return self.commit(asked.name)
        except Empty400:
            raise Bare500 from None

    def release(self, name: str) -> str:
        """Give back: deleted before its begin, archived and dismantled after."""
        circuit = self.find(name)
        if self.lie or circuit.phase == "ARCHIVED":
            return "ARCHIVED"
        if self.held.pop(name, None) is not None and name not in self.kept:
            return "DELETED"
        circuit = self.kept[name]
        if circuit.asked.begin_s > self.now_s():
            del self.kept[name]
            return "DELETED"
        circuit.phase, circuit.intent, circuit.at_s = "ARCHIVED", "SHOULD_BE_UNDEPLOYED", self.now_s()
        return "ARCHIVED"

    def modify_schedule(self, name: str, ending_s: int) -> tuple[OscarsCircuit, str]:
        """Move an end, or say so and do not: what it answers with is what was asked for, in force or not."""
        circuit = self.find(name)
        if circuit.southbound != "NSO":
            raise Bare500
        if circuit.phase != "RESERVED":
            return circuit, "Schedule modification failed: May only change schedule when RESERVED"
        ending_s = max(ending_s, int(self.now_s() + self.rules.end_notice_s))
        asked = replace(circuit.asked, end_s=ending_s)
        short = ending_s < asked.begin_s + self.rules.minimum_s
        if not (short or self._conflicts(asked) or self.lie):
            circuit.asked = asked
            circuit.archived_begin_s = ending_s  # and so are the archived times of what was modified
        return replace(circuit, asked=asked), ""

    def modify_bandwidth(self, name: str, mbps: int) -> tuple[OscarsCircuit, str]:
        """Set one rate on all parts, in both directions."""
        circuit = self.find(name)
        if circuit.phase != "RESERVED":
            return circuit, f"connection {name} not in RESERVED phase"
        span = (circuit.asked.begin_s, circuit.asked.end_s, name)
        if mbps > min(self.available_mbps(f.port, *span) for f in circuit.asked.fixtures):
            return circuit, "Modification failedNew bandwidth above available"
        fixtures = tuple(replace(f, mbps=mbps) for f in circuit.asked.fixtures)
        asked = replace(circuit.asked, fixtures=fixtures, pipes=tuple((a, z, mbps) for a, z, _ in circuit.asked.pipes))
        if not self.lie:
            circuit.asked = asked
            if circuit.state == "ACTIVE" and circuit.deployment == "DEPLOYED":
                circuit.intent, circuit.at_s = "SHOULD_BE_REDEPLOYED", self.now_s()
        return replace(circuit, asked=asked), ""


def _connected(asked: CircuitRequest) -> bool:
    """Whether junctions and pipes are one graph that has all the fixtures."""
    if not asked.junctions or not {f.device for f in asked.fixtures} <= set(asked.junctions):
        return False
    reached, wider = set(), {asked.junctions[0]}
    while wider != reached:
        reached = wider
        wider = reached | {n for a, z, _ in asked.pipes if {a, z} & reached for n in (a, z)}
    return set(asked.junctions) <= reached
