"""The controller on a virtual clock: it admits, plans and converges by the functions that the real one calls. Pure.

What is here is the shell's part: to whom each step goes, and how long it takes. Times are integers, in microseconds;
elapsed time and calendar time go together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from controller.asker import CONTROLLER
from controller.checks import AnnouncementRequest, check_announcement, check_request
from controller.plan.admission import Refused, Request
from controller.plan.announcement_states import Ending
from controller.plan.announcements import Announcement
from controller.plan.clock import Instant
from controller.plan.ended import EndedAnnouncement
from controller.plan.failover import turned
from controller.plan.keys import FlowId
from controller.plan.ledger import Created
from controller.plan.lifecycle import LifecycleEvent, ReservationState
from controller.plan.overbooked import overbooked
from controller.plan.plan import Entry, Plan
from controller.plan.reservations import Reservation
from controller.plan.transitions import Stage, Step
from controller.site import Site
from controller.state.carried import reservation_obstacles
from controller.state.desired import basis, circuits_down, demand_now, left_bytes
from controller.state.installed import StepDone
from controller.state.lateness import Late, late_promises
from controller.state.layers import acting
from controller.state.moment import Moment
from controller.state.receivers import news, senders_to, stores_after
from controller.state.reported import HostState
from controller.state.value import SiteState, with_lines_noted
from controller.whatif.awaited import Awaited, Delays, Wait
from controller.whatif.beginning import beginning
from controller.whatif.begun import NOTHING_BEGUN, Begun
from controller.whatif.plans import Plans, is_same
from controller.wishes import wish_of
from controller.work.kept import KeptLooks
from controller.work.next_work import Other, Progress, Situation, next_work
from topology.telemetry import EntryTelemetry, StoreTelemetry, Telemetry


@dataclass
class VirtualSite:
    """A site whose hosts and switches do at once, and confirm in time, what they are told.

    Attributes:
        site: what does not change.
        now_us: the virtual time.
        delays: how long what is decided takes.
        begun: the promises that there are already.
    """

    site: Site
    now_us: int
    delays: Delays = field(default_factory=Delays)
    begun: Begun = NOTHING_BEGUN

    def __post_init__(self) -> None:
        """Begin with the first plan in force, and every agent connected."""
        self._zero_us = self.now_us
        self._plans = Plans(self.site)
        self._kept = KeptLooks()
        self._progress = Progress(sure={Stage.METERS: 0, Stage.QUEUES: 0})
        self._waited_for = 0
        self._busy = False  # a step of the switches is under way
        network = self.site.network
        self.metered = dict.fromkeys(network.machine(one.name) for one in network.hosts if not one.has_agent)
        self._is_behind = False  # the plan does not follow yet what has changed at this instant
        self._at_rest: tuple[SiteState, Progress] | None = None  # in which there was nothing to do
        self.looks_us: int | None = None  # when there may be something to do by itself, if nothing happens before
        self.state: SiteState = beginning(self.site, self.begun, self.delays, self._plans, self._instant)
        plan = self.state.desired.plan
        self.held = {name: plan.of_host(name) for name in self.state.reported.hosts}  # what each host's kernel acts on

    def left_bytes(self) -> dict[FlowId, int]:
        """Return what each announced flow has yet to deliver, as the controller counts."""
        return left_bytes(self.state.wished)

    def obstacles(self, reservation_id: str) -> tuple[str, ...]:
        """Return why a reservation is not carried at this moment, as the controller says it; none of them if it is."""
        self._replan()
        known = self.state.wished.ledger.reservations.get(reservation_id)
        if known is None or known.state is ReservationState.FAILED:
            return ("it has failed",)
        state, now = self.state, self._instant
        made_of = basis(self.site, state.wished, state.reported, state.installed, now)
        current = replace(state, desired=replace(state.desired, basis=made_of))
        return reservation_obstacles(Moment(self.site, current, now), known) or ()

    @property
    def _instant(self) -> Instant:
        return Instant(self.now_us, self.now_us - self._zero_us)

    @property
    def plan(self) -> Plan:
        """The plan that is desired."""
        self._replan()
        return self.state.desired.plan

    # What is asked of it.

    def announce(self, asked: AnnouncementRequest) -> Announcement | Refused:
        """Promise bytes that are coming, or refuse them.

        Raises:
            NotAllowed: a class that is not announced, no bytes, or to be stored where nobody knows what that takes.
            NotKnown: a host that is not in the network.
        """
        self._replan()
        check_announcement(self.site, asked)
        wish = wish_of(self.site, self.state, asked, CONTROLLER)
        answer = self.state.wished.ledger.announce(wish, asked.senders, asked.target, self.now_us)
        self._decided()
        return answer

    def reserve(self, name: str, request: Request) -> Reservation | Refused:
        """Hold bandwidth and commit it, or refuse it.

        Raises:
            NotAllowed: a request that makes no sense.
            NotKnown: an end that is neither a host nor a site.
        """
        self._replan()
        ledger = self.state.wished.ledger
        check_request(self.site, ledger, request, self.now_us)
        answer = ledger.hold(request, Created(name, self.now_us))
        if not isinstance(answer, Refused):
            answer = ledger.happened(name, LifecycleEvent.COMMIT, self.now_us)
            self.tick()
        self._decided()
        return answer

    def release(self, announcement_id: str) -> None:
        """Take an announcement out, if it is still there."""
        ledger = self.state.wished.ledger
        known = ledger.announcements.get(announcement_id)
        if known is None:
            return
        ledger.forget(announcement_id, self.now_us, Ending.RELEASED)
        self._forget(known)
        self._decided()

    def wants(self, host: str, name: str, *, more: bool) -> None:
        """Take in that a flow has something to send; or that it has not, and keeps to its standby rate."""
        host = self.site.network.machine(host)
        known = self.state.reported.hosts.get(host)
        if known is None:  # no agent is there that could step down
            return
        leases = known.leases if more else known.leases.stepped_down(known.sent_epoch, name)
        self._put_host(host, known._replace(leases=leases, wants={**known.wants, name: more}))
        if not more:
            self.held[host] = tuple(e.stepped_down() if e.flow.name == name else e for e in self.held[host])
        self._is_behind = True

    def delivered(self, host: str, flow: FlowId, payload_bytes: int, since_us: int) -> None:
        """Take in how much of an announced flow has arrived, as its host has counted since a time."""
        seen = EntryTelemetry(flow, 1, 1, payload_bytes, 0, 0, 0, counted_since_ns=since_us * 1000)
        if self.state.wished.ledger.ended.counted(host, seen, self.now_us, is_last=False):
            self._is_behind = True

    def told(self, host: str, stores: tuple[StoreTelemetry, ...]) -> None:
        """Take in what a host's stores have taken in a second; the plan follows if that says another rate."""
        known = self.state.reported.hosts.get(host)
        if known is None:  # of a site that is not ours nobody tells
            return
        senders = senders_to(host, self.plan, self.site.network)
        told = Telemetry(known.sent_epoch, 0, (), stores=stores)
        after = stores_after(host, known.stores, told, senders, self._instant.elapsed_us)
        before, now = ({name: one.intake for name, one in of.items()} for of in (known.stores, after))
        self._put_host(host, known._replace(stores={**known.stores, **after}))
        if any(news({name: before[name] for name in now if name in before}, now)):
            self._is_behind = True

    def line(self, circuit: str, *, is_live: bool) -> None:
        """Take in that the ports at a circuit's ends are dead, or live again."""
        lines = self.state.reported.lines.said(circuit, (0, 0), self._instant.elapsed_us, is_live=is_live)
        self.state = replace(self.state, reported=replace(self.state.reported, lines=lines))
        self._is_behind = True

    def tick(self) -> tuple[str, ...]:
        """Act on what has become due; return the announcements that lapsed, and reservations that had to fail."""
        self._replan()
        ledger = self.state.wished.ledger
        moved = ledger.tick(self.now_us)
        lapsed = [one.announcement for one in moved if isinstance(one, EndedAnnouncement)]
        for known in lapsed:
            self._forget(known)
        failed = [known.announcement_id for known in lapsed]
        for over in overbooked(ledger, self.now_us):
            ledger.happened(over.reservation_id, LifecycleEvent.FAIL, self.now_us, "the circuit has less than it was")
            failed.append(over.reservation_id)
        self._decided()
        return tuple(failed)

    @property
    def due_us(self) -> int | None:
        """When :meth:`tick` has something to do next; None if never. Clocks are read after a moment, never at it."""
        self._replan()
        lines_us = self.state.reported.lines.due_us(self._instant.elapsed_us)
        in_calendar_us = self.state.wished.ledger.due_us()
        times_us = [in_calendar_us, None if lines_us is None else lines_us + self._zero_us]
        return min((at_us + 1 for at_us in times_us if at_us is not None), default=None)

    def late(self) -> Mapping[str, Late]:
        """Return the announcements that the desired plan does not keep, by name, and why."""
        self._replan()
        return late_promises(self.site, self.state, self._instant)

    def acting(self) -> tuple[Entry, ...]:
        """Return the most that hosts may be acting on now, as the controller has to reckon with."""
        return acting(self.state.reported, self.state.installed, self._instant.elapsed_us)

    def turned(self) -> tuple[Entry, ...]:
        """Return what hosts' kernels act on, each where the rules in force send it; without an agent, the meters."""
        entries = tuple(entry for of_host in self.held.values() for entry in of_host)
        meters = self.state.installed.meters
        if meters is None:
            return entries
        return turned((*entries, *(entry for name in self.metered for entry in meters.of_host(name))), meters)

    @property
    def quiet_plan(self) -> Plan | None:
        """The plan in force, where nothing is promised, changes or is about to; None where something is.

        What becomes due then is of what has ended, and changes nothing.
        """
        self._replan()
        state, ledger = self.state, self.state.wished.ledger
        is_waiting = bool(self._waited_for) or self.looks_us is not None
        is_free = not (is_waiting or self.site.schedules or ledger.announcements or ledger.reservations)
        lines_us = state.reported.lines.due_us(self._instant.elapsed_us)
        is_at_rest = state.installed.is_at_rest(state.desired.plan.epoch)
        return state.desired.plan if is_free and is_at_rest and lines_us is None else None

    # The plan, and the way to it.

    def _decided(self) -> None:
        """Take what was decided as saved, and let the plan follow."""
        ledger = self.state.wished.ledger
        if ledger.has_changed:
            ledger.saved(ledger.changes(decided=True))
        self._is_behind = True

    def _replan(self) -> None:
        """Let the plan follow what has changed at this instant, once for all of it."""
        if not self._is_behind:
            return
        self._is_behind = False
        state, now = self.state, self._instant
        if state.reported.lines.dead_ports:
            state, _ = with_lines_noted(self.site, state, now)
        state.wished.ledger.down = circuits_down(self.site, state.wished, state.reported, now)
        desired = state.desired
        plan = self._plans.plan(demand_now(self.site, state.wished, state.reported, now), desired.next_epoch)
        if not is_same(plan, desired.plan):
            desired = desired.becomes(plan, now.elapsed_us)
        self.state = replace(state, desired=desired)

    def next_steps(self) -> Iterator[Awaited]:
        """Take the steps that can be taken now; yield what is to be waited for, each once."""
        for awaited in self._next_steps():
            self._waited_for += 1
            yield awaited

    def _next_steps(self) -> Iterator[Awaited]:
        self._replan()
        while not (self._busy or self._is_at_rest):
            self.looks_us = None
            situation = self._situation()
            work = next_work(situation)
            if work is Other.NOTE_HOSTS:
                self._progress = replace(self._progress, granted=None)
            elif isinstance(work, Step) and work.stage is Stage.HOSTS:
                yield from self._granted(situation, work)
            elif isinstance(work, Step):
                self._busy = True
                takes_us = self.delays.meters_us if work.stage is Stage.METERS else self.delays.queues_us
                yield Awaited(self.now_us + takes_us, Wait.SWITCHES, work)
            else:
                self._at_rest = self.state, self._progress
                self.looks_us = min((self.now_us + in_us for in_us in situation.due_in_us), default=None)

    @property
    def _is_at_rest(self) -> bool:
        """Whether there was nothing to do, nothing has changed since, and nothing has become due."""
        if self._at_rest is None or (self.looks_us is not None and self.looks_us <= self.now_us):
            return False
        state, progress = self._at_rest
        return state is self.state and progress is self._progress

    def _situation(self) -> Situation:
        state = self.state
        return Situation(
            state.reported,
            state.installed,
            state.desired,
            self._progress,
            self.site.together_us,
            self._instant.elapsed_us,
            self._kept,
        )

    def _granted(self, situation: Situation, step: Step) -> Iterator[Awaited]:
        plan, lease_us, elapsed_us = step.plan, self.site.lease_ms * 1000, self._instant.elapsed_us
        names = situation.to_grant(plan)
        for name in names:
            known = self.state.reported.hosts[name]
            called = plan.called.get(name, ())
            self._put_host(name, known.granted(plan.epoch, plan.of_host(name), elapsed_us, lease_us, called))
        granted = StepDone(plan.epoch, step.stage, self.now_us, self.now_us)
        is_last = plan is self.state.desired.plan
        self._progress = replace(self._progress, granted=None if is_last else granted)
        self.state = replace(self.state, installed=replace(self.state.installed, hosts_epoch=plan.epoch))
        if names:
            yield Awaited(self.now_us + self.delays.hosts_us, Wait.HOSTS, step)

    def happens(self, awaited: Awaited) -> None:
        """Take in that what was waited for has happened."""
        step = awaited.step
        self._waited_for -= 1
        if awaited.due is Wait.HOSTS:
            self._confirmed(step.plan.epoch)
        else:
            self._busy = False
            self.state = replace(self.state, installed=self.state.installed.with_plan(step.stage, step.plan))

    def _confirmed(self, epoch: int) -> None:
        """Let every host that was granted an epoch act on it, and say so."""
        for name, known in self.state.reported.hosts.items():
            grant = next((one for one in known.leases.grants if one.epoch == epoch), None)
            if grant is not None and known.confirmed_epoch < epoch:
                self.held[name] = grant.acting
                self._put_host(name, known._replace(confirmed_epoch=epoch, leases=known.leases.confirmed(epoch)))

    def _forget(self, known: Announcement) -> None:
        """Forget what the flows of an announcement wanted."""
        for flow in (flow for flow in known.flows if flow.machine in self.state.reported.hosts):
            host = self.state.reported.agent_of(flow)
            wants = {name: does for name, does in host.wants.items() if name != flow.name}
            self._put_host(flow.machine, host._replace(wants=wants))

    def _put_host(self, name: str, host: HostState) -> None:
        self.state = replace(self.state, reported=self.state.reported.with_host(name, host))
