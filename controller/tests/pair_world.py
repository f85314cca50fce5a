"""A world around two real controllers of one site: their leader's row, one fenced database, switches that keep roles.

Hosts keep to the rules of an agent: a stream to each controller, and the highest epoch is obeyed. Everything is drawn
from one seed. Between any two things that a controller does it may be stopped, for as long as the other one needs to
take over, or die; it may be cut from the database, and its clocks may be wrong.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from controller.plan.invariant import Layers, violations
from controller.plan.leading import VOUCHED_US
from controller.plan.plan import Entry, Flow
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.purchases import Period
from controller.plan.tests.factories import DATABASE, IMAGE, RAW_IMAGES
from controller.tests.fakes import START_US
from controller.tests.ground import Ground
from controller.tests.pair_controller import BOUGHT, LEASE_MS, Killed, OneSite, PairController
from controller.tests.pair_parts import (
    RoleSwitch,
    S,
    SharedDatabase,
)
from mininet_tests.testing.networks import chile_illinois_2
from topology.network import Hop
from topology.protocol import Allocations, Applied, Declined, Hello

LEASE_US = LEASE_MS * 1000
NETWORK = chile_illinois_2()
FLOWS = tuple(replace(f, path=NETWORK.path(f.host, f.target)) for f in (DATABASE, RAW_IMAGES, *IMAGE))
REPEATED_EVERY_US = 250_000  # at most so long passes between two messages to a host
SKEW_US = 600 * S  # the clocks of a controller are wrong by so much at most


@dataclass(slots=True)
class PairHost:
    """A host as it is.

    Attributes:
        told: the message that it obeys.
        entries: what it may do by that.
        until_us: when that lease ends.
        inbox: by controller, what is on its way to it, with the time it was sent.
        outbox: by controller, what is on its way there.
        said: by controller that it has a stream to, what it has said on it last of what it does.
    """

    told: Allocations = field(default_factory=lambda: Allocations(0, LEASE_MS, ()))
    entries: tuple[Entry, ...] = ()
    until_us: int = 0
    inbox: dict[str, deque[tuple[int, Allocations, tuple[Entry, ...]]]] = field(default_factory=dict)
    outbox: dict[str, deque[Applied | Declined | Hello]] = field(default_factory=dict)
    said: dict[str, Hello] = field(default_factory=dict)

    def acting(self, now_us: int) -> tuple[Entry, ...]:
        """Return what it really may send."""
        return self.entries if now_us < self.until_us else ()


class PairWorld(Ground):
    """The two, what is below them, and what became of it.

    Args:
        seed: of all that is drawn.
        path: of the database: a file with an empty schema.
    """

    def __init__(self, seed: int, path: Path) -> None:
        self.drawn = random.Random(seed)  # noqa: S311 (draws what happens, guards nothing)
        self.now_us = START_US
        self.flows: tuple[Flow, ...] = ()
        self.site = OneSite(NETWORK, DEFAULT_POLICY, (), LEASE_MS, together_us=0, lead_us={BOUGHT: 0})
        object.__setattr__(self.site, "flows", lambda: self.flows)
        self.shared = SharedDatabase(path, lambda: self.now_us)
        self.sold: dict[str, Period] = {}
        self.switches = {s.name: RoleSwitch(s.dpid) for s in NETWORK.switches}
        self.queue_term = self.led_term = self.led_us = 0
        self.hosts = {host.name: PairHost() for host in NETWORK.hosts}
        self.inherited_bps: dict[Hop, int] = {}
        self.pending: set[str] = set()  # requests that nobody has answered
        self.given_back: set[str] = set()  # reservations
        self.answered: dict[str, str] = {}
        self.apart: set[tuple[str, str]] = set()  # hosts, and controllers that they do not reach
        self._depth = 0
        self.controllers = [PairController(self, name, self.drawn.randint(-SKEW_US, SKEW_US)) for name in "ab"]
        super().__init__(NETWORK, self.controllers[0].value.desired.plan)

    def play(self, steps: int) -> None:
        """Let so many things happen, and check each; in the end, check that all is well."""
        for _ in range(steps):
            self.happens(self.controllers)
            self.check()
        self.settles()

    def happens(self, controllers: list[PairController]) -> None:
        """Let something happen at any of some controllers, or below."""
        one, host = self.drawn.choice(controllers), self.drawn.choice([*self.hosts])
        acts: list[tuple[int, Callable[[], object]]] = [
            (8, lambda: one.acts(one.looks)),
            (8, lambda: one.acts(one.works)),
            (6, lambda: self.reads(host, one)),
            (6, lambda: self.heard(host, one)),
            (5, lambda: self.calls(host, one)),
            (4, lambda: self.passes(self.drawn.choice([20_000, 100_000, 300_000, 600_000, LEASE_US]))),
            (3, self.asks),
            (3, self.gives_back),
            (2, self.wants),
            (1, lambda: setattr(one, "is_cut", True)),
            (4, lambda: setattr(one, "is_cut", False)),
            (1, lambda: self.breaks(host, one)),
            (1, lambda: self.parts(host, one)),
            (2, self.apart.clear),
            (1, lambda: one.loses(self.drawn.choice([*self.switches]))),
            (4, lambda: one.connects(self.drawn.choice([*self.switches]))),
            (1, lambda: self.restarts(self.drawn.choice([*self.switches]))),
            (3, lambda: one.begins() if not one.is_there else None),
        ]
        self.drawn.choices([act for _, act in acts], [often for often, _ in acts])[0]()

    def moment(self, one: PairController) -> None:
        """Let a controller die between two things that it does, or be stopped while the other does what it can."""
        if self._depth or self.drawn.random() > 0.08:
            return
        if self.drawn.random() < 0.3:
            raise Killed
        others = [other for other in self.controllers if other is not one]
        self._depth, one.is_stopped = 1, True
        try:
            if self.drawn.random() < 0.5:  # as long as it takes
                self.passes(600_000)
                for other in others:
                    for act in (other.looks, other.looks, other.works):
                        other.acts(act)
            for _ in range(self.drawn.randint(0, 6)):
                self.happens(others)
        finally:
            self._depth, one.is_stopped = 0, False

    # What happens.

    def led(self, term: int) -> None:
        """Note who leads, and what hosts may do then."""
        if term > self.led_term:
            self.led_term, self.led_us = term, self.now_us
        self.inherited_bps = self._sockets_bps()

    def wants(self) -> None:
        """Other flows are wanted."""
        self.flows = tuple(flow for flow in FLOWS if self.drawn.random() < 0.6)
        for one in self.controllers:
            if one.is_there and not one.is_stopped:
                with one.state.changed:
                    one.state.demand_changed()

    def asks(self) -> None:
        """Somebody asks for a reservation, or again for one that nobody has answered for."""
        if not self.pending and len(self.answered) <= len(self.given_back) + 1:
            self.pending.add(f"k{len(self.pending) + len(self.answered)}")
        if not self.pending:
            return
        key = self.drawn.choice(sorted(self.pending))
        for one in self.drawn.sample(self.controllers, len(self.controllers)):
            name = one.answers(key)
            if name is not None:
                assert self.answered.setdefault(key, name) == name, f"{key} was done twice"
                self.pending.discard(key)
                return

    def gives_back(self) -> None:
        """Somebody gives a reservation back."""
        kept = sorted({*self.answered.values()} - self.given_back)
        if kept:
            name = self.drawn.choice(kept)
            self.given_back |= {name} if any(one.gives_back(name) for one in self.controllers) else set()

    def restarts(self, switch: str) -> None:
        """A switch's ovs-vswitchd begins anew: it forgets the generation, and keeps its rules here.

        It calls those first who lead: one of an older term that is first is obeyed for a moment, and nothing can help.
        """
        for one in self.controllers:
            one.loses(switch)
        self.switches[switch].restarts()
        for one in sorted(self.controllers, key=lambda one: one.is_there and -one.leadership.term):
            if not one.is_stopped:
                one.connects(switch)

    def calls(self, name: str, one: PairController) -> None:
        """A host dials a controller."""
        host = self.hosts[name]
        is_reached = one.is_there and not one.is_stopped and (name, one.name) not in self.apart
        if is_reached and one.name not in host.said:
            host.inbox[one.name], host.outbox[one.name] = deque(), deque()
            host.said[one.name] = self._hello(name)
            one.hears(name, host.said[one.name])

    def breaks(self, name: str, one: PairController) -> None:
        """A stream breaks, with what is in it."""
        host = self.hosts[name]
        if one.name in host.said:
            for streams in (host.inbox, host.outbox, host.said):
                streams.pop(one.name)
            if not one.is_stopped:
                one.reports.host_down(name)

    def parts(self, name: str, one: PairController) -> None:
        """A host reaches a controller no more."""
        self.breaks(name, one)
        self.apart.add((name, one.name))

    def reads(self, name: str, one: PairController) -> None:
        """A host reads what has arrived of one controller."""
        host = self.hosts[name]
        inbox = host.inbox.get(one.name)
        if not inbox:
            return
        sent_us, told, entries = inbox[-1]
        inbox.clear()
        if told.epoch < host.told.epoch:
            host.outbox[one.name].append(Declined(told.epoch, host.told.epoch, "older"))
            return
        is_news = told.epoch != host.told.epoch
        host.told, host.entries, host.until_us = told, entries, min(self.now_us, sent_us) + LEASE_US
        host.outbox[one.name].append(Applied(told.epoch))
        for other in host.said.keys() - {one.name} if is_news else ():
            host.outbox[other].append(self._hello(name))
        self.check()

    def heard(self, name: str, one: PairController) -> None:
        """A controller hears what a host has said first."""
        host = self.hosts[name]
        if one.is_stopped or not host.outbox.get(one.name):
            return
        said = host.outbox[one.name].popleft()
        if isinstance(said, Hello):
            host.said[one.name] = said
        one.hears(name, said)
        if isinstance(said, Declined):
            self.breaks(name, one)

    def _hello(self, name: str) -> Hello:
        host = self.hosts[name]
        left_ms = max(0, host.until_us - self.now_us) // 1000
        told = host.told if left_ms else Allocations(0, LEASE_MS, ())
        return Hello(name, "0", "6.12", told.epoch, left_ms, told.entries)

    def passes(self, us: int) -> None:
        """Time passes; who may repeat what a host obeys renews its lease meanwhile."""
        end_us = self.now_us + us
        while self.now_us < end_us:
            self.now_us = min(self.now_us + REPEATED_EVERY_US, end_us)
            for one in self.controllers:
                if one.is_there and not one.is_stopped:
                    one.repeating.look()
                    self._repeats(one)
        if hasattr(self, "meters"):
            self.check()

    def _repeats(self, one: PairController) -> None:
        """One tells each host again what it was told last, if it may."""
        for name, host in self.hosts.items():
            is_read = not host.inbox.get(one.name, True) and host.told.epoch
            if is_read and one.value.reported.hosts[name].sent_epoch == host.told.epoch and one.repeating.may(name):
                host.until_us = self.now_us + LEASE_US

    # What must hold.

    def check(self) -> None:
        """Fail if a layer lets through more than the next, or who does not lead may write to a switch."""
        entries = [e for host in self.hosts.values() for e in host.acting(self.now_us)]
        found = violations({n: self._with_unheard(n, seen) for n, seen in self.layers(entries).items()})
        assert not found, "; ".join(map(str, found))
        for one in self.controllers:
            for name, datapath in one.datapaths.items():
                if one.is_there and not one.leadership.term and datapath.asked_role is not None:
                    assert datapath.is_slave, f"{one.name} stands by, and may write to {name}"

    def _with_unheard(self, link: Hop, now: Layers) -> Layers:
        """Return layers with what switches let through, while a host acts on what an earlier leader has granted it.

        It may do so for one lease; from then on all sockets together fit the circuit again.
        """
        unheard = [h for h in self.hosts.values() if h.acting(self.now_us) and h.told.epoch < 2 * self.led_term - 1]
        if not unheard and self._is_granted():
            return now
        is_over = self.now_us >= self.led_us + LEASE_US + VOUCHED_US and self._is_granted()
        inherited_bps = 0 if is_over else self.inherited_bps.get(link, 0)
        sockets_bps, most_bps = self._sockets_bps()[link], max(inherited_bps, now.circuit_bps)
        assert sockets_bps <= most_bps, f"{link}: sockets of {sockets_bps:,} bit/s > {most_bps:,}"
        return replace(now, hosts_bps={c: min(bps, now.meters_bps[c]) for c, bps in now.hosts_bps.items()})

    def _is_granted(self) -> bool:
        """Return whether the plan of who leads last is granted; until then hosts may do what they did."""
        leading = [one for one in self.controllers if one.leads and one.leadership.term == self.led_term]
        return any(one.value.installed.hosts_epoch for one in leading)

    def _sockets_bps(self) -> dict[Hop, int]:
        entries = [e for host in self.hosts.values() for e in host.acting(self.now_us)]
        return {n: sum(e.frame_bps for e in entries if n in e.flow.links) for n in self.meters}

    def settles(self) -> None:
        """Let everybody do what he has to, and check what must be so in the end."""
        self._depth = 1  # nobody dies any more
        self.apart.clear()
        for one in self.controllers:
            one.is_cut = False
        for us in (*[100_000] * 25, *[31 * S] * 6, *[100_000] * 25):
            self.round(us)
        leading = [one for one in self.controllers if one.pair.view().takes]
        assert len(leading) == 1, "two lead" if leading else "nobody leads"
        (leader,) = leading
        assert self.is_as_planned(leader.value.desired.plan), "switches and queues are not as is planned"
        for name, host in self.hosts.items():
            assert host.acting(self.now_us) == leader.value.desired.plan.of_host(name), f"{name} does something else"
        assert sorted(set(self.shared.takes)) == self.shared.takes, "a term was given twice"
        self._check_promises(leader)

    def round(self, us: int) -> None:
        """Let everybody do what he can, and so much time pass."""
        for one in self.controllers:
            if not one.is_there:
                one.begins()
            for switch in self.switches:
                one.connects(switch)
            for act in (one.looks, one.works):
                one.acts(act)
            for name in self.hosts:
                self.calls(name, one)
                self.reads(name, one)
                while self.hosts[name].outbox.get(one.name):
                    self.heard(name, one)
        if self.pending:
            self.asks()
        self.passes(us)

    def _check_promises(self, leader: PairController) -> None:
        """Fail if an answer was lost or a request done twice, or what is bought is not what is needed."""
        while self.pending:
            before = len(self.pending)
            self.asks()
            assert len(self.pending) < before, "who leads does not answer"
        for key, name in self.answered.items():
            again = leader.answers(key)
            assert again in {name, None}, f"{key} was answered with {name}, and is {again} now"
        known = {r.key: r.reservation_id for r in leader.value.wished.ledger.reservations.values()}
        for key, name in known.items():
            assert self.answered.get(key) == name, f"{key} was done as {name}, answered as {self.answered.get(key)}"
        assert not {*known.values()} & self.given_back, "what was given back is there"
        live = {p.name for p in leader.value.wished.purchases[BOUGHT].values() if p.state in {"up", "reserved"}}
        assert self.sold.keys() == live, f"sold are {[*self.sold]}, needed {live}"
