"""What OSCARS 1.2.37 does with circuits, wrong sums and lost wishes included: the stand-in without its HTTP.

Time is a function, in Unix seconds; everything that happens by itself is caught up with whenever somebody asks. While
the routers are told of a circuit one lock is held: who wants it waits, and nobody sees what is being done.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from controller.providers.tests.oscars_network import PORTS, connected


class Bare500(Exception):
    """A refusal as OSCARS gives it: status 500, and the reason in its own log only."""


class NotThere(Exception):
    """Status 404 without a word."""


class Waiting(Exception):
    """The request waits for the lock, and is carried out after it; whoever asked has given up by then."""


@dataclass
class Rules:
    """What a server is configured to; seconds and Mbit/s."""

    hold_s: float = 900
    minimum_s: float = 900
    past_s: float = 300
    begin_notice_s: float = 30
    end_notice_s: float = 60
    routers_s: float = 20  # up to 5 tries with 30 s between them, in the original
    archive_s: float = 1.3
    start_s: float = 0
    refresh_every_s: float = 0  # 300 in the original: 0 for never
    refresh_s: float = 2
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
    """A circuit as somebody asks for it; a pipe is two devices, a rate, and its path, if somebody gave it one."""

    name: str
    begin_s: float
    end_s: float
    mtu: int | None
    description: str | None
    junctions: tuple[str, ...]
    fixtures: tuple[Fixture, ...]
    pipes: tuple[tuple[str, str, int, tuple[str, ...]], ...]
    mode: str = "AUTOMATIC"
    service_id: str | None = None
    username: str | None = None

    def loads(self) -> Iterator[tuple[str, int]]:
        """Ports and what is asked of them. A pipe without a path asks for nothing."""
        yield from ((f.port, f.mbps) for f in self.fixtures)
        yield from ((urn, mbps) for _, _, mbps, path in self.pipes for urn in path if ":" in urn)


@dataclass
class OscarsCircuit:
    """A circuit that is held, reserved or archived.

    ``routers_mbps`` is what the routers were told last (None: nothing), whatever the rest says; ``at_s`` is when
    somebody last wished it another way.
    """

    asked: CircuitRequest
    phase: str = "HELD"
    state: str = "WAITING"
    deployment: str = "UNDEPLOYED"
    intent: str = "SHOULD_BE_UNDEPLOYED"
    at_s: float = 0
    held_until_s: float = 0
    archived_begin_s: float = 0
    last_modified_s: int = 0
    routers_mbps: int | None = None
    was_built: bool = False

    @property
    def mbps(self) -> int:
        """The largest rate of its parts."""
        return max([f.mbps for f in self.asked.fixtures] + [pipe[2] for pipe in self.asked.pipes], default=0)

    def due(self) -> tuple[float, str] | None:
        """What is to be done with it next, and from when on."""
        over = self.asked.end_s
        if self.phase == "ARCHIVED":
            return (self.at_s, "dismantle") if self.routers_mbps is not None else None
        if self.state in {"ACTIVE", "FAILED"} or self.deployment == "DEPLOYED":
            wished = self.intent == "SHOULD_BE_REDEPLOYED" and self.at_s < over
            return (self.at_s, "rebuild") if wished else (over, "dismantle")
        return (self.asked.begin_s, "build") if self.routers_mbps is None and not self.was_built else (over, "archive")


@dataclass
class _Job:
    """The routers are told of a circuit."""

    circuit: OscarsCircuit
    what: str
    until_s: float
    mbps: int


class Oscars:
    """The reservations of one server.

    ``fail_deployment``, ``fail_commit`` and ``lie`` make it do what nobody wants to see.
    """

    def __init__(self, now_s: Callable[[], float], rules: Rules):
        self._now_s = now_s
        self.rules = rules
        self.held: dict[str, OscarsCircuit] = {}  # in memory: a restart loses it
        self.rows: list[OscarsCircuit] = []
        self.job: _Job | None = None
        self.waiting: list[CircuitRequest | str] = []  # what to create, or the name to archive
        self.free_s = 0.0  # when the lock was given back last
        self.starting_until_s = 0.0
        self.fail_deployment = self.fail_commit = self.lie = False
        self.created: list[str] = []

    def now_s(self) -> float:
        """The time, with everything done that happens by itself until then."""
        now_s = self._now_s()
        while self._next_step(now_s):
            pass
        if self.job is None:
            self.held = {name: c for name, c in self.held.items() if c.held_until_s > now_s}
        return now_s

    def restart(self) -> None:
        """Start again: what was only held, or waited, is gone, and nobody is served for a while."""
        self.held.clear()
        self.waiting.clear()
        self.starting_until_s = self._now_s() + self.rules.start_s

    def reserved(self, name: str) -> list[OscarsCircuit]:
        """Rows of a name that are in force."""
        return [c for c in self.rows if c.asked.name == name and c.phase == "RESERVED"]

    def _next_step(self, now_s: float) -> bool:
        if self.job is not None:
            if self.job.until_s > now_s:
                return False
            self._done(self.job)
            return True
        # A name that is there twice breaks the loop for everybody, once one of the two has begun.
        if any(len(self.reserved(c.asked.name)) > 1 and c.asked.begin_s <= now_s for c in self.rows):
            return False
        due = [(*step, n) for n, c in enumerate(self.rows) if c.phase != "HELD" and (step := c.due()) is not None]
        at_s, what, number = min((d for d in due if self._is_auto(d)), default=(now_s + 1, "", 0))
        if what == "archive":
            at_s = max(at_s, self.free_s) + self.rules.archive_s
        if at_s > now_s:
            return False
        circuit = self.rows[number]
        if what == "archive":
            circuit.phase = "ARCHIVED"
        else:
            begun_s = max(at_s, self.free_s)
            if begun_s > now_s:
                return False
            self.job = _Job(circuit, what, begun_s + self.rules.routers_s, circuit.mbps)
        return True

    def _is_auto(self, due: tuple[float, str, int]) -> bool:
        return self.rows[due[2]].asked.mode == "AUTOMATIC" or due[1] == "archive"

    def _done(self, job: _Job) -> None:
        """End the transaction of a job: now everybody sees what it has done, and who has waited goes on."""
        circuit, self.job, self.free_s = job.circuit, None, job.until_s
        circuit.was_built = True
        if job.what == "dismantle":
            circuit.routers_mbps, circuit.state = None, "WAITING"
            circuit.deployment, circuit.intent = "UNDEPLOYED", "SHOULD_BE_UNDEPLOYED"
        elif self.fail_deployment:
            circuit.state = "FAILED"
            circuit.deployment = "DEPLOY_FAILED" if job.what == "build" else "REDEPLOY_FAILED"
            circuit.intent = "SHOULD_BE_DEPLOYED"
        else:
            circuit.routers_mbps = job.mbps  # as it was when the job began: a later wish is lost
            circuit.state, circuit.deployment, circuit.intent = "ACTIVE", "DEPLOYED", "SHOULD_BE_DEPLOYED"
        waiting, self.waiting = self.waiting, []
        seen: set[str] = set()
        for what in waiting:
            if isinstance(what, str):
                self._archive(what)
                continue
            self.hold(what)
            with suppress(Bare500):
                self._commit(what.name, job.until_s, twice=what.name in seen)
                seen.add(what.name)

    def find(self, name: str) -> OscarsCircuit:
        """The circuit of a name: what is held hides what is reserved, and two rows are an error for ever."""
        self.now_s()
        if name in self.held:
            return self.held[name]
        rows = [c for c in self.rows if c.asked.name == name]
        if len(rows) > 1:
            raise Bare500
        if not rows:
            raise NotThere
        return rows[0]

    def available_mbps(self, port: str, begin_s: float, end_s: float, own: str) -> int:
        """What OSCARS believes to be free: not what is free.

        What begins or ends together at the same rate counts once; what only touches counts; holds count at any time.
        """
        deltas: dict[float, set[int]] = defaultdict(set)
        for circuit in self._others(own):
            if circuit.asked.end_s >= begin_s and circuit.asked.begin_s <= end_s:
                for urn, mbps in circuit.asked.loads():
                    if urn == port:
                        deltas[circuit.asked.begin_s].add(mbps)
                        deltas[circuit.asked.end_s].add(-mbps)
        used = peak = 0
        for at_s in sorted(deltas):
            used += sum(deltas[at_s])
            peak = max(peak, used)
        others = [c for c in self.held.values() if c.asked.name != own]
        kept = sum(mbps for c in others for urn, mbps in c.asked.loads() if urn == port)
        return self.baseline_mbps(port) - peak - kept

    def baseline_mbps(self, port: str) -> int:
        """What a port has."""
        return self.rules.ports_mbps.get(port, PORTS[port].mbps)

    def _others(self, own: str) -> list[OscarsCircuit]:
        return [c for c in self.rows if c.phase == "RESERVED" and c.asked.name != own]

    def problems(self, asked: CircuitRequest, *, modify: bool, at_s: float | None = None) -> list[str]:
        """What is wrong with a request. Moves its begin without a word."""
        now_s = self.now_s() if at_s is None else at_s
        if asked.mtu is None:
            raise Bare500
        begin_s, minimum_s = asked.begin_s, self.rules.minimum_s
        asked.begin_s = max(begin_s, int(now_s + self.rules.begin_notice_s))
        wrong = {
            "connection id too short": len(asked.name) < 4,
            "connection id too long": len(asked.name) > 12,
            "connection id invalid format": not re.fullmatch("[a-zA-Z][a-zA-Z0-9_-]+", asked.name),
            "MTU must be between 1500 and 9000 (inclusive)": not 1500 <= asked.mtu <= 9000,
            "null description": asked.description is None,
            "begin time is more than 5 minutes in the past": begin_s < now_s - self.rules.past_s and not modify,
            "end date is in the past": asked.end_s <= now_s,
            "end date not past begin()": asked.end_s <= asked.begin_s,
            "duration is too short (less than 15 min)": asked.end_s < asked.begin_s + minimum_s,
        }
        first = [text for text, is_so in wrong.items() if is_so][:1]
        return first or self._conflicts(asked)

    def _conflicts(self, asked: CircuitRequest) -> list[str]:
        """What a request asks for and others have, each cause said again and again."""
        span = (asked.begin_s, asked.end_s, asked.name)
        loads: dict[str, int] = defaultdict(int)
        for urn, mbps in asked.loads():
            loads[urn] += mbps
        short = {urn: free for urn in loads if urn in PORTS and (free := self.available_mbps(urn, *span)) < loads[urn]}
        found = [f"{urn} (Validity of urnInBw) is not valid" for urn in short if PORTS[urn].kind == "edge"]
        found += [f"{urn} (Validity of inBwValid) is not valid" for urn in short if PORTS[urn].kind == "backbone"]
        taken = {
            (f.port, f.vlan)
            for c in (*self._others(asked.name), *(h for h in self.held.values() if h.asked.name != asked.name))
            if c.phase == "HELD" or (c.asked.end_s >= asked.begin_s and c.asked.begin_s <= asked.end_s)
            for f in c.asked.fixtures
        }
        places = [(f.port, f.vlan) for f in asked.fixtures]
        for port, vlan in places:
            if port not in PORTS:
                found.append(f"{port} not in topology")
            elif vlan and (vlan not in PORTS[port].vlans or (port, vlan) in taken):
                found.append(f"{port} : vlan {vlan} not available")
            if places.count((port, vlan)) > 1:
                found.append(f"{vlan} requested twice on {port}")
        for _ in range(2):
            for urn, mbps in loads.items():
                if urn not in PORTS:
                    found.append(f"{urn} is not present anymore")
                elif urn in short:
                    sums = f"{urn} {mbps}(req) / {short[urn]} (avail)"
                    found += [f"total port {way} bw exceeds available: {sums}" for way in ("ingress", "egress")]
        return found

    def hold(self, asked: CircuitRequest) -> OscarsCircuit:
        """Keep a circuit in memory for a while; the same name again replaces it."""
        circuit = self.held[asked.name] = OscarsCircuit(asked, held_until_s=self._now_s() + self.rules.hold_s)
        return circuit

    def _commit(self, name: str, at_s: float, *, twice: bool = False) -> OscarsCircuit:
        """Make a reservation of what is held; the hold stays if it is not valid."""
        asked = self.held[name].asked
        wrong = (
            self.problems(asked, modify=False, at_s=at_s)
            or len(asked.fixtures) < 2
            or not connected(asked.junctions, {f.device for f in asked.fixtures}, asked.pipes)
        )
        if self.fail_commit or wrong:
            raise Bare500
        before = [] if twice else [c for c in self.rows if c.asked.name == name]
        circuit = OscarsCircuit(asked, "RESERVED", at_s=at_s, archived_begin_s=asked.begin_s)
        if before and before[0].deployment == "DEPLOYED":
            circuit.deployment, circuit.intent = "DEPLOYED", "SHOULD_BE_REDEPLOYED"
            circuit.state, circuit.was_built, circuit.routers_mbps = before[0].state, True, before[0].routers_mbps
        del self.held[name]
        self.rows = [*(c for c in self.rows if c not in before), circuit]
        if not before:
            self.created.append(name)
        return circuit

    def create_or_replace(self, asked: CircuitRequest) -> OscarsCircuit:
        """Do what both ``new`` and ``replace`` do: a name in use is replaced, and a refused commit stays held."""
        if self.problems(asked, modify=True):
            raise Bare500
        if self.lie:
            return OscarsCircuit(asked, "RESERVED")
        if self.job is not None:
            self.waiting.append(asked)
            raise Waiting
        self.hold(asked)
        return self._commit(asked.name, self._now_s())

    def release(self, name: str) -> None:
        """Give back: deleted before its begin, archived and dismantled after, and then the lock is wanted."""
        circuit = self.find(name)
        if self.lie or circuit.phase == "ARCHIVED":
            return
        if self.held.pop(name, None) is not None:
            rows = self.reserved(name)
            if not rows:
                return
            circuit = rows[0]
        if circuit.asked.begin_s > self._now_s():
            self.rows = [c for c in self.rows if c is not circuit]
        elif self.job is not None:
            self.waiting.append(name)
            raise Waiting
        else:
            self._archive(name)

    def _archive(self, name: str) -> None:
        for circuit in self.reserved(name):
            circuit.phase, circuit.intent, circuit.at_s = "ARCHIVED", "SHOULD_BE_UNDEPLOYED", self._now_s()

    def modify_schedule(self, name: str, ending_s: int) -> tuple[OscarsCircuit, str]:
        """Move an end: written before it is validated, and kept whatever that says."""
        circuit = self.find(name)
        if not circuit.was_built:
            raise Bare500  # nobody has built it yet, so nobody is found who could
        if circuit.phase != "RESERVED":
            return circuit, "Schedule modification failed: May only change schedule when RESERVED"
        soonest_s = self._now_s() + self.rules.end_notice_s
        asked = replace(circuit.asked, end_s=float(ending_s) if ending_s >= soonest_s else soonest_s + 0.831936)
        if not self.lie:
            circuit.asked = asked
            if not self.problems(replace(asked), modify=True):
                circuit.archived_begin_s = asked.end_s  # and so are the archived times of what was modified
        return replace(circuit, asked=asked), ""

    def modify_bandwidth(self, name: str, mbps: int) -> tuple[OscarsCircuit, str]:
        """Set one rate on all parts, in both directions; the routers are told if they are not being told just now."""
        circuit = self.find(name)
        if circuit.phase != "RESERVED":
            return circuit, f"connection {name} not in RESERVED phase"
        span = (circuit.asked.begin_s, circuit.asked.end_s, name)
        if mbps > min(self.available_mbps(urn, *span) for urn, _ in circuit.asked.loads()):
            return circuit, "Modification failedNew bandwidth above available"
        fixtures = tuple(replace(f, mbps=mbps) for f in circuit.asked.fixtures)
        pipes = tuple((a, z, mbps, path) for a, z, _, path in circuit.asked.pipes)
        asked = replace(circuit.asked, fixtures=fixtures, pipes=pipes)
        if not self.lie:
            circuit.asked = asked
            if circuit.state == "ACTIVE" and circuit.deployment == "DEPLOYED":
                circuit.intent, circuit.at_s = "SHOULD_BE_REDEPLOYED", self._now_s()
        return replace(circuit, asked=asked), ""
