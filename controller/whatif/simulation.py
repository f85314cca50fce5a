"""A scenario run to its end: events on a virtual clock, between which every rate is constant. Pure.

Nothing is stepped through time: a run costs by its events. Two that fall together are worked off in the order in which
they were foreseen, items of the workload by their names, so that a run is the same each time, in whatever order its
parts were said.
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count

from controller.plan.admission import Refused, Request
from controller.plan.transitions import Stage
from controller.whatif.awaited import Awaited
from controller.whatif.continued import continued
from controller.whatif.courses import Courses, QuietStart, Recording
from controller.whatif.deaths import DeadCircuits, drawn_deaths
from controller.whatif.outcomes import RunOutcome, TransferOutcome
from controller.whatif.receivers import Receivers, with_said
from controller.whatif.sendings import US, Sending
from controller.whatif.supposed import CircuitDeath, WhatIf, WorkItem
from controller.whatif.tellings import Tellings
from controller.whatif.traffic import SimulatedTraffic
from controller.whatif.underway import Underway, announced, reserved
from controller.whatif.virtual_site import VirtualSite
from topology.network import Hop

Observer = Callable[[int, Mapping[Hop, int]], None]


@dataclass
class Simulation:
    """One run of a scenario.

    Attributes:
        supposed: the scenario.
        seed: of what is drawn.
        observe: is told the rates on the wire of each link whenever they change.
        tell: is told the virtual time now and then.
        replays: whether what begins in quiet as it did before is done again as it was.
    """

    supposed: WhatIf
    seed: int = 0
    observe: Observer | None = None
    tell: Callable[[int], None] | None = None
    replays: bool = True

    def __post_init__(self) -> None:
        """Foresee what is known from the beginning."""
        supposed = self.supposed
        self._network = supposed.site.network
        self.now_us = supposed.from_us
        begun = with_said(supposed.begun, supposed.stores, self._network)
        self.virtual = VirtualSite(supposed.site, self.now_us, supposed.delays, begun)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._foreseen = self._worked = 0
        receivers = Receivers(self._network, begun.stores)
        self._traffic = SimulatedTraffic(self._network, receivers, supposed.from_us, supposed.until_us)
        self._outcomes: list[tuple[int, str, TransferOutcome]] = []
        self._dead = DeadCircuits(supposed.begun.down, supposed.until_us)
        self._stale, self._went_again = True, False  # the latter: what has begun last went as it did before
        self._ends_us: int | None = None
        self._ticks_us: int | None = None
        self._tellings = Tellings(self.virtual, receivers, self._traffic.transfers, self._foresee)
        self._courses = Courses()
        self._traffic.stands(supposed.site.standing, self.now_us)
        for known in continued(supposed.begun, self.virtual.left_bytes(), self._network, self.now_us):
            self._foresee(known.begun_us, partial(self._goes_on_with, known))
        for item in sorted(supposed.items, key=lambda item: item.name):  # who asks first of two at one instant
            self._foresee_next(item, 0, self.now_us)
        drawn = drawn_deaths(supposed.random_deaths, supposed.from_us, supposed.until_us, self.seed)
        for death in sorted((*supposed.deaths, *drawn), key=lambda d: (d.at_us, d.circuit, d.down_for_us)):
            self._foresee(death.at_us, partial(self._dies, death))

    # Events.

    def _foresee(self, at_us: int, what: Callable[[], None]) -> None:
        if at_us <= self.supposed.until_us:
            self._foreseen += 1
            heapq.heappush(self._events, (max(at_us, self.now_us), self._foreseen, what))

    def run(self) -> RunOutcome:
        """Run it to its end, and return what it has shown."""
        self._follow()
        never_us = self.supposed.until_us + 1
        while True:
            event_us = self._events[0][0] if self._events else never_us
            tick_us = never_us if self._ticks_us is None else max(self.now_us, self._ticks_us)
            look_us = self.virtual.looks_us or never_us
            if min(event_us, tick_us, look_us) >= never_us:
                break
            self._went_again, is_alone = False, True
            if look_us < min(event_us, tick_us):
                self._go_on(look_us)  # the site looks itself what there is to do
            elif tick_us < event_us:
                self._go_on(tick_us)
                self._tick()
            else:
                self._go_on(event_us)
                self._work(*heapq.heappop(self._events)[1:])
                while self._events and self._events[0][0] == event_us:
                    self._work(*heapq.heappop(self._events)[1:])
                    is_alone = False
            if self._stale or not (self._went_again and is_alone):  # else all is as it was before
                self._follow()
            if self.tell is not None and self._worked % 256 == 0:
                self.tell(self.now_us)
        self._go_on(self.supposed.until_us)
        return self._outcome()

    def _work(self, number: int, what: Callable[[], None]) -> None:
        self._courses.worked_off(number)
        what()
        self._worked += 1

    def _go_on(self, at_us: int) -> None:
        """Let all sendings go on until a time."""
        if at_us > self.now_us:
            self._traffic.go_on(self.now_us, at_us)
            self._courses.went_on((self.now_us, at_us, self._traffic.uses_bps))
        self.now_us = self.virtual.now_us = at_us

    def _follow(self) -> None:
        """Take the steps of the site that can be taken, and let all rates follow."""
        for awaited in self.virtual.next_steps():
            self._foresee(awaited.at_us, partial(self._happens, awaited))
        self._rate()
        self._ticks_us = self.virtual.due_us
        if self._courses.under_way is not None:
            self._end_recording(self._courses.under_way)

    def _happens(self, awaited: Awaited) -> None:
        self.virtual.happens(awaited)
        self._stale = self._stale or awaited.step.stage is not Stage.QUEUES  # they change no rate

    def _tick(self) -> None:
        for name in self.virtual.tick():
            if name in self._traffic.transfers:  # it lapsed before all had arrived: its script has given up
                known = self._traffic.transfers[name]
                known.why = known.why or "it lapsed before all had arrived"
                self._close(known, None)
            for known in self._traffic.transfers.values():
                if known.reservation_id == name:
                    known.why = "failed: the circuit has less than it was"
        self._note_late()

    # Rates.

    def _rate(self) -> None:
        """Give every sending its rate, and foresee when the first of them ends, or a store is full or empty."""
        if not self._stale:
            return
        self._stale = False
        loads_bps = self._traffic.rate(self.virtual.turned(), self._dead.names, self.now_us)
        if self.observe is not None:
            self.observe(self.now_us, loads_bps)
        first_us = self._traffic.ends_in_us
        if first_us is not None and self._ends_us != self.now_us + first_us:
            self._ends_us = self.now_us + first_us
            self._foresee(self._ends_us, self._look_at_ends)
        self._tellings.begin()

    def _look_at_ends(self) -> None:
        """Let those that have nothing left step down and be confirmed."""
        self._ends_us, self._stale = None, True
        for one in tuple(self._traffic.sendings.values()):
            if one.left == 0 and one.ended_us is None:
                self._ended(one)

    def _ended(self, one: Sending) -> None:
        one.ended_us = self.now_us
        one.confirmed_us = self.now_us + self._network.path_rtt_us(one.path)
        self._foresee(self.now_us + self.supposed.delays.word_us, lambda: self._says(one, more=False))
        self._foresee(one.confirmed_us, lambda: self._confirmed(one))

    def _says(self, one: Sending, *, more: bool) -> None:
        """Let the controller hear what a host has seen, if it is still so."""
        if self._traffic.sendings.get(one.flow) is one and (one.ended_us is None) is more:
            self.virtual.wants(one.host, one.flow, more=more)
            self._stale = True

    def _confirmed(self, one: Sending) -> None:
        """Take a transfer as done, and out, when the last of its parts is confirmed."""
        known = self._traffic.transfers.get(one.owner)
        if known is None or one.confirmed_us != self.now_us:
            return
        if all(part.confirmed_us is not None and part.confirmed_us <= self.now_us for part in known.sendings):
            self._close(known, self.now_us)

    def _goes_on_with(self, known: Underway) -> None:
        """Go on with a promise that was made before the scenario began, from now or from its time on."""
        self._traffic.transfers[known.name] = known
        for one in known.sendings:
            one.since_us = self.now_us
            self._traffic.sendings[one.flow] = one
        if known.reservation_id:
            self._foresee(known.promised_us, lambda: self._close(known, self.now_us))
        if known.is_watched and known.begun_us <= self.supposed.from_us:  # one that is to come is looked at by its tick
            known.note_carried(self.virtual.obstacles(known.reservation_id))
        self._stale = True

    # The workload.

    def _foresee_next(self, item: WorkItem, number: int, after_us: int) -> None:
        at_us = item.next_us(after_us)
        if at_us is not None and at_us < self.supposed.until_us:
            self._foresee(at_us, lambda: self._begins(item, number))

    def _begins(self, item: WorkItem, number: int) -> None:
        if item.every_us:
            self._foresee_next(item, number + 1, self.now_us + 1)
        start = self._quiet_start(item) if item.every_us and self.replays else None
        if start is not None and self._goes_again(start, number):
            return
        self._courses.begin(None if start is None else self._recording(start))
        names = (f"{item.name}+{k}" if k else item.name for k in count())
        name = next(n for n in names if n not in self._traffic.transfers)
        if item.rate_bps:
            self._reserves(item, number, name)
        else:
            self._announces(item, number, name)
        self._stale = True

    def _announces(self, item: WorkItem, number: int, name: str) -> None:
        answer = self.virtual.announce(item.announced(name))
        if isinstance(answer, Refused):
            self._refused(item, number, answer)
            return
        known = announced(item, number, answer, self.now_us)
        for one in known.sendings:
            waits_us = item.session_us + item.opening.round_trips * self._network.path_rtt_us(one.path)
            self._foresee(self.now_us + waits_us, partial(self._opens, one))
        self._traffic.transfers[name] = known
        known.note_down(self._network, self._dead.names)

    def _opens(self, one: Sending) -> None:
        """Let a sending begin: its connection is open, and its host sees that it wants more than its standby rate."""
        one.since_us = self.now_us
        self._traffic.sendings[one.flow] = one
        self._stale = True
        self._foresee(self.now_us + self.supposed.delays.word_us, lambda: self._says(one, more=True))

    def _reserves(self, item: WorkItem, number: int, name: str) -> None:
        end_us = self.now_us + item.for_us
        request = Request(item.senders[0], item.target, item.flow_class, item.rate_bps, self.now_us, end_us)
        answer = self.virtual.reserve(f"{name}#{number}", request)
        if isinstance(answer, Refused):
            self._refused(item, number, answer)
            return
        known = reserved(item, number, name, answer, self._network.framing_of(answer.path))
        self._traffic.sendings.update((one.flow, one) for one in known.sendings)
        self._traffic.transfers[name] = known
        self._foresee(end_us, lambda: self._close(known, self.now_us))

    def _refused(self, item: WorkItem, number: int, answer: Refused) -> None:
        outcome = TransferOutcome(item.name, number, self.now_us, None, None, 0, 0, str(answer), is_refused=True)
        self._outcomes.append((self.now_us, item.name, outcome))

    def _close(self, known: Underway, done_us: int | None) -> None:
        if self._traffic.transfers.get(known.name) is not known:
            return
        del self._traffic.transfers[known.name]
        for one in known.sendings:
            self._traffic.sendings.pop(one.flow, None)
        self.virtual.release(known.name)
        self._stale = True
        self._outcomes.append((known.begun_us, known.item.name, known.outcome(done_us, self.supposed.until_us)))

    # Courses that come again.

    def _quiet_start(self, item: WorkItem) -> QuietStart | None:
        """Return all that the course of an item follows from where all is quiet; None where it is not."""
        plan = self.virtual.quiet_plan
        if plan is None or self._traffic.transfers or self._traffic.receivers.stores or self.observe is not None:
            return None
        return QuietStart(item, self._dead.names, plan)

    def _goes_again(self, start: QuietStart, number: int) -> bool:
        """Do again what was done from such a beginning, if nothing else happens before that is over."""
        course = self._courses.known(start)
        if course is None:
            return False
        end_us = self.now_us + course.lasts_us
        if end_us > self.supposed.until_us or (self._events and self._events[0][0] <= end_us):
            return False
        self._courses.begin(None)
        course.add_to(self._traffic.use, list(self._traffic.standing.values()), self.now_us)
        self._outcomes += [(one.begun_us, one.item, one) for one in course.shifted(self.now_us, number)]
        self._worked += course.events
        self._went_again = True
        self.now_us = self.virtual.now_us = end_us
        return True

    def _recording(self, start: QuietStart) -> Recording:
        sent = tuple(one.sent for one in self._traffic.standing.values())
        return Recording(start, self.now_us, self._foreseen, self._worked, len(self._outcomes), sent)

    def _end_recording(self, recording: Recording) -> None:
        """Keep what was recorded once all is quiet again, and as it was."""
        if self._traffic.transfers or self.virtual.quiet_plan is None:
            return
        outcomes = [one for _, _, one in self._outcomes[recording.outcomes :]]
        course = recording.ended(self.now_us, self._worked, outcomes, list(self._traffic.standing.values()))
        self._courses.end(self._quiet_start(recording.start.item), course)

    # The circuits.

    def _dies(self, death: CircuitDeath) -> None:
        circuit, end_us = death.circuit, death.at_us + death.down_for_us
        self._dead.dies(death)
        for one in self._traffic.loses(circuit, self.now_us):
            self._foresee(self.now_us + self._network.path_rtt_us(one.path), partial(self._opens, one))
        for known in self._traffic.transfers.values():
            known.note_down(self._network, self._dead.names)
        self._stale = True
        self._foresee(self.now_us + self.supposed.delays.word_us, lambda: self._line(circuit, is_live=False))
        self._foresee(end_us, lambda: self._returns(circuit))

    def _returns(self, circuit: str) -> None:
        if self._dead.returns(circuit):
            self._foresee(self.now_us + self.supposed.delays.word_us, lambda: self._line(circuit, is_live=True))
        self._stale = True

    def _line(self, circuit: str, *, is_live: bool) -> None:
        if (circuit not in self._dead.names) is is_live:
            self.virtual.line(circuit, is_live=is_live)
            self._note_late()

    def _note_late(self) -> None:
        """Note why promises will be late, as the controller says it."""
        down = ", ".join(sorted(self._dead.names))
        for name, late in self.virtual.late().items():
            if name in self._traffic.transfers:
                self._traffic.transfers[name].why = f"{down} down: {late.why}" if down else late.why
        for known in (each for each in self._traffic.transfers.values() if each.is_watched):
            known.note_carried(self.virtual.obstacles(known.reservation_id))

    def _outcome(self) -> RunOutcome:
        for known in tuple(self._traffic.transfers.values()):
            self._outcomes.append((known.begun_us, known.item.name, known.outcome(None, self.supposed.until_us)))
        outcomes = tuple(outcome for _, _, outcome in sorted(self._outcomes, key=lambda o: (*o[:2], o[2].number)))
        standing = {str(name): one.sent // (8 * US) for name, one in self._traffic.standing.items()}
        return RunOutcome(
            self.seed, self.supposed.until_us, outcomes, self._traffic.use, self._dead.deaths, standing, self._worked
        )
