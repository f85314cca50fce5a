"""The ledger: reservations and announcements, the calendar they are written in, and what of them the plan must carry.

No I/O and no clock: the time is an argument, every answer is a value, and what has to be saved is taken out of a
:class:`~controller.plan.kept_ledger.KeptLedger`. Whoever owns it holds a lock around it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

from controller.plan.admission import Reason, Refused, Request, reserved_fields, round_dead
from controller.plan.announcement_states import Ending
from controller.plan.announcements import Announcement, Wish, led_by
from controller.plan.beside import Admission
from controller.plan.booking_lead import Market, lapsing_in_time
from controller.plan.calendar import Booking, Calendar
from controller.plan.due import Due
from controller.plan.ended import Ended, EndedAnnouncement
from controller.plan.keys import FlowId, Pool
from controller.plan.lifecycle import ENDED, IN_PLAN, LifecycleEvent, ReservationState, after
from controller.plan.paths import Path
from controller.plan.plan import Flow, PlanInput
from controller.plan.policy import Policy
from controller.plan.pools import fit, opened
from controller.plan.promised_flows import PromisedFlows
from controller.plan.promising import Promising
from controller.plan.reservations import MAX_TIME_US, NO_CONSTRAINTS, Constraints, Reservation, due_event
from controller.plan.resources import capacities, need
from controller.plan.schedules import GUARD_US, Schedules
from controller.plan.unsaved import Unsaved, with_saved
from controller.plan.unwritten import Unwritten
from topology.network import Hop, Network
from topology.protocol import Tail

HOLD_US = 60_000_000


@dataclass(frozen=True, slots=True)
class Created:
    """What a new reservation is made of beside the request; attributes as in :class:`Reservation`."""

    reservation_id: str
    now_us: int
    key: str = ""
    fingerprint: str = ""
    hold_us: int = HOLD_US
    creator: str = ""


class Ledger:
    """All promises, and the calendar.

    ``lead_us`` has, by circuit, how long before its use it must be bought; a circuit without one is leased.
    """

    def __init__(self, network: Network, policy: Policy, lead_us: Mapping[str, int] | None = None) -> None:
        self.network = network
        self.policy = policy
        self.lead_us = dict(lead_us or {})
        self.calendar = Calendar(capacities(network, policy))
        self._admission = Admission(Market(network, policy, self.calendar, self.lead_us))
        self.reservations: dict[str, Reservation] = {}
        self.announcements: dict[str, Announcement] = {}
        self.down: frozenset[str] = frozenset()  # circuits that nothing which begins now can use
        self.moves = 0  # grows whenever :meth:`demand` may have changed
        self._running: dict[str, Reservation] = {}
        self._by_key: dict[str, str] = {}
        self.schedules = Schedules(network, policy, self.calendar)
        self._flows = PromisedFlows(network, policy, self.schedules)
        self._due = Due()
        self._sequence = 0
        self._unsaved: Unsaved[str, Reservation] = Unsaved()
        self._unsaved_announcements: Unsaved[str, Announcement] = Unsaved()
        self.ended = Ended(self.announcements, self._unsaved_announcements, Unwritten(self.calendar))

    def go_by(self, network: Network) -> None:
        """Go by other delays of the same network; what was promised stays as it is."""
        self.network = network
        self._flows.go_by(network)
        self._admission.go_by(network)

    # What is asked of it.

    @property
    def last_sequence(self) -> int:
        """The number of the promise that was made last; 0 before the first."""
        return self._sequence

    def by_key(self, key: str) -> Reservation | None:
        """Return the reservation that was created with an idempotency key."""
        return self.reservations.get(self._by_key.get(key, ""))

    def hold(self, request: Request, created: Created) -> Reservation | Refused:
        """Hold bandwidth until it is committed, or the hold lapses: while what it needs can still be bought."""
        way_round = round_dead(request, self.down, created.now_us)
        answer = self._admission.decided(created.reservation_id, way_round, created.now_us)
        if isinstance(answer, Refused) and way_round is not request:
            answer = self._admission.decided(created.reservation_id, request, created.now_us)
        if isinstance(answer, Refused):
            return answer
        self._sequence += 1
        new = Reservation(
            reservation_id=created.reservation_id,
            sequence=self._sequence,
            version=0,
            state=ReservationState.HELD,
            **reserved_fields(request, answer),
            hold_until_us=created.now_us + created.hold_us,
            created_us=created.now_us,
            changed_us=created.now_us,
            key=created.key,
            fingerprint=created.fingerprint,
            creator=created.creator,
        )
        return self._write(self._lapsing(new), created.now_us)

    def happened(self, reservation_id: str, event: LifecycleEvent, now_us: int, reason: str = "") -> Reservation:
        """Take a reservation to its next state.

        Raises:
            Illegal: the table does not allow the event now.
        """
        known = self.reservations[reservation_id]
        state = after(reservation_id, known.state, event)
        kept_until = known.hold_until_us if state is ReservationState.HELD else None
        return self._write(replace(known, state=state, hold_until_us=kept_until, reason=reason), now_us)

    def renew(self, reservation_id: str, now_us: int, hold_us: int = HOLD_US) -> Reservation:
        """Keep a hold for longer, as long as what it needs can still be bought.

        Raises:
            Illegal: it is not held any more.
        """
        known = self.reservations[reservation_id]
        after(reservation_id, known.state, LifecycleEvent.RENEW)
        return self._write(self._lapsing(replace(known, hold_until_us=now_us + hold_us)), now_us)

    def change(self, reservation_id: str, request: Request, now_us: int) -> Reservation | Refused:
        """Change what is reserved; its own share counts as free. Refused: all stays as it was.

        Raises:
            Illegal: it has ended.
        """
        known = self.reservations[reservation_id]
        state = after(reservation_id, known.state, LifecycleEvent.CHANGE)
        own = self.calendar.cancel(reservation_id)
        answer = self._admission.decided(reservation_id, request, now_us, known)
        self.calendar.book(reservation_id, own)
        if isinstance(answer, Refused):
            return answer
        return self._write(self._lapsing(replace(known, state=state, **reserved_fields(request, answer))), now_us)

    def _lapsing(self, known: Reservation) -> Reservation:
        return lapsing_in_time(known, self.network, self.lead_us)

    def announce(self, wish: Wish, senders: tuple[str, ...], target: str, now_us: int) -> Announcement | Refused:
        """Promise bytes that are coming."""
        if self.policy.classes[wish.flow_class].tail is Tail.CODED:
            wish = replace(wish, tail=Tail.CODED)
        answer = self._promising(now_us).answer(wish, senders, target)
        if isinstance(answer, Refused) and answer.reason is Reason.NOT_TOLD_APART and self.down:
            answer = self._beside_those_led_round(wish, senders, target, now_us) or answer
        if isinstance(answer, Refused):
            return answer
        self._sequence += 1
        begun = self.ended.begun(answer, self._sequence)
        self._enter(begun)
        self._unsaved_announcements.put(begun.announcement_id, None, begun)
        return begun

    def _beside_those_led_round(
        self, wish: Wish, senders: tuple[str, ...], target: str, now_us: int
    ) -> Announcement | Refused | None:
        """Return the answer beside promises of the same hosts whose way is dead, booked by the way that they take now.

        They stay booked as they were if nothing can be promised beside them; None if they have no room there.
        """
        promising, pairs = self._promising(now_us), {(sender, target) for sender in senders}
        of_pairs = (a for a in self.announcements.values() if any((f.host, f.target) in pairs for f in a.flows))
        before = [known for known in of_pairs if promising.is_stranded(known)]
        if not before:
            return None
        led = [promising.led_round(known) for known in before]
        stand = self._exchange(before, led, now_us)
        answer = promising.answer(wish, senders, target) if stand else None
        if not isinstance(answer, Announcement):
            self._exchange(led, before, now_us)
            return answer
        for known, instead in zip(before, led, strict=True):
            self._unsaved_announcements.put(known.announcement_id, known, instead)
        return answer

    def _exchange(self, before: Iterable[Announcement], after: Iterable[Announcement], now_us: int) -> bool:
        """Have announcements in place of others; return whether these have room from now on, and are told apart."""
        for known in before:
            self._cancel(known)
        stand = True
        for known in after:
            stand = stand and not self._is_in_the_way(known, now_us)
            self._enter(known)
        return stand

    def _is_in_the_way(self, known: Announcement, from_us: int = 0) -> bool:
        """Return whether an announcement has no room beside other promises, or cannot be told from one of them.

        What its store has for it is the same by every way.
        """
        booked = () if known.pool else (booking for _, booking in replace(known, store=None).bookings())
        to_come = [replace(one, start_us=max(from_us, one.start_us)) for one in booked if one.end_us > from_us]
        return not self.calendar.has_room(to_come) or self._admission.confused(known) is not None

    def _promising(self, now_us: int) -> Promising:
        admission, closed = self._admission, self.closed(now_us)
        return Promising(admission.market, admission, self.in_plan(), self.down, closed, now_us)

    def forget(self, announcement_id: str, now_us: int, ending: Ending = Ending.RELEASED) -> EndedAnnouncement:
        """Take an announcement out, and keep what became of it.

        Raises:
            KeyError: there is none of this name.
        """
        known = self.announcements.pop(announcement_id)
        self._cancel(known)
        self.moves += 1
        self._unsaved_announcements.put(announcement_id, known, None)
        return self.ended.add(known, ending, now_us)

    # What the clock and the layers below do to it.

    def due_us(self) -> int | None:
        """Return when :meth:`tick` has something to do next; None if never."""
        return self._due.next_us()

    def free_until_us(self) -> int | None:
        """Return until when nothing is under way nor to be bought, Unix time; None if something is under way now."""
        is_held = any(known.state is ReservationState.HELD for known in self.reservations.values())
        if is_held or self._running or self.announcements:
            return None
        due_us = self.due_us()
        return MAX_TIME_US if due_us is None else due_us - max(self.lead_us.values(), default=0)

    def tick(self, now_us: int) -> tuple[Reservation | EndedAnnouncement, ...]:
        """Act on all that has become due; return what that has changed, as it is now, and announcements that lapsed."""
        self.ended.forget_old(now_us)
        moved: list[Reservation | EndedAnnouncement] = []
        for name in self._due.until(now_us):
            self.moves += name not in self.reservations  # a promised rate begins or ends, or a capacity changes
            if name in self.reservations:
                due = due_event(self.reservations[name], now_us)
                if due is not None:
                    moved.append(self.happened(name, due.event, now_us, due.reason))
            elif name in self.announcements and self.announcements[name].lapses_us <= now_us:
                moved.append(self.forget(name, now_us, Ending.LAPSED))
        return tuple(moved)

    def note(self, reservation_id: str, reason: str, now_us: int) -> None:
        """Write down why a reservation is where it is."""
        known = self.reservations[reservation_id]
        if known.reason != reason:
            self._write(replace(known, reason=reason), now_us)

    def set_schedule(self, hop: Hop, periods: Iterable[tuple[int, int, int]]) -> None:
        """Let a circuit's link carry another rate, (from, until, bit/s on the wire), whatever it was to carry then."""
        changed = tuple(periods)
        for period in changed:
            for at_us in self.schedules.change(hop, *period):
                self._due.add(at_us, "")
        circuit = self.network.link(*hop).circuit
        for known in self.reservations.values():
            is_then = any(known.start_us < end and start - GUARD_US < known.end_us for start, end, _ in changed)
            ways = known.paths if is_then and known.state not in ENDED else ()
            if any(circuit in self.network.circuits_along(path) for path in ways):
                fit(self.calendar, self.schedules, self.network, known)

    def closed(self, now_us: int) -> frozenset[str]:
        """Return the circuits that are to carry nothing now, or before a plan made now has shrunk."""
        return self.schedules.closed(now_us)

    # What the plan must carry.

    def in_plan(self) -> tuple[Reservation, ...]:
        """Return the reservations whose time it is."""
        return tuple(self._running.values())

    def carried(self) -> tuple[Reservation, ...]:
        """Return those of them that the plan carries: as they are saved, and as the clock has made them."""
        return tuple(r for r in with_saved(self._running, self._unsaved).values() if r.state in IN_PLAN)

    def demand(
        self,
        standing: Iterable[Flow],
        now_us: int,
        flow_of: Callable[[Reservation], Flow | None],
        path_of: Callable[[Reservation], Path] = attrgetter("path"),
    ) -> PlanInput:
        """Return what the plan is made of at an instant: of what is saved, and what the clock has made of that.

        See :meth:`PromisedFlows.demand`.
        """
        announced = with_saved(self.announcements, self._unsaved_announcements)
        return self._flows.demand(standing, self.carried(), announced, now_us, flow_of, path_of)

    def asked_of_ways(self) -> dict[FlowId, Constraints]:
        """Return by flow what its reservation, or the one it draws on, asks of any way that it is led, if anything."""
        asked = [(one, one.constraints.of_another_path) for one in self.carried()]
        asked = [(one, wanted) for one, wanted in asked if wanted != NO_CONSTRAINTS]
        found = {one.flow_name: wanted for one, wanted in asked}
        by_pool = {one.reservation_id: wanted for one, wanted in asked}
        announced = with_saved(self.announcements, self._unsaved_announcements).values() if asked else ()
        drawing = (known for known in announced if known.pool in by_pool)
        return found | {flow.name: by_pool[known.pool] for known in drawing for flow in known.flows}

    # Writing it down.

    def _booking(self, known: Reservation) -> Booking:
        return Booking(need(self.network, known.paths, known.flow_class), known.rate_bps, known.start_us, known.end_us)

    def _write(self, reservation: Reservation, now_us: int) -> Reservation:
        written = replace(reservation, version=reservation.version + 1, changed_us=now_us)
        before = self.reservations.get(written.reservation_id)
        self._place(written)
        self._unsaved.put(written.reservation_id, before, written)
        return written

    def _place(self, new: Reservation) -> None:
        """Put a reservation into the calendar (or out of it), and on the list of what becomes due."""
        name, old = new.reservation_id, self.reservations.get(new.reservation_id)
        self.reservations[name] = new
        if new.key:
            self._by_key[new.key] = name
        before = self._running.pop(name, None)
        if new.state in IN_PLAN:
            self._running[name] = new
        self.moves += before is not self._running.get(name)
        kept = new.state not in ENDED
        self._admission.reserves(new, kept=kept)
        if not (old and kept and name in self.calendar and self._booking(old) == self._booking(new)):
            self._book_anew(name, new if kept else None)
        if kept:
            for at_us in filter(None, (new.hold_until_us, new.start_us, new.end_us)):
                self._due.add(at_us, name)

    def _book_anew(self, name: str, new: Reservation | None) -> None:
        """Book a reservation in place of what it had; announcements that draw on it move along, if there is room."""
        drawing = [a for a in self.announcements.values() if a.pool == name]
        for announcement in drawing:
            self._cancel(announcement)
        if name in self.calendar:
            self.calendar.cancel(name)
            self.calendar.remove_resource(Pool(name))
        if new is not None:
            self.calendar.book(name, self._booking(new))
            self.calendar.add_resource(Pool(name))
            fit(self.calendar, self.schedules, self.network, new)
        for announcement in drawing:
            led = led_by(self.network, announcement, new) if new is not None else announcement
            still = led if new is not None and not self._admission.confused(led) else replace(led, rates=(), pool="")
            self._unsaved_announcements.put(still.announcement_id, announcement, still)
            self._enter(still)

    def _enter(self, announcement: Announcement) -> None:
        """Book an announcement.

        One that draws on a reservation which has no room for it any more, or is of another class, keeps no promise.
        """
        if announcement.pool and not self._still_draws(announcement):
            before, announcement = announcement, replace(announcement, rates=(), pool="")
            self._unsaved_announcements.put(announcement.announcement_id, before, announcement)
        for name, booking in announcement.bookings():
            self.calendar.book(name, booking)
        self.announcements[announcement.announcement_id] = announcement
        self._admission.announces(announcement)
        self.ended.entered(announcement)
        self.moves += 1
        times = {at for _, booked in announcement.bookings() for at in (booked.start_us, booked.end_us)}
        for at_us in (*sorted(times), announcement.lapses_us):
            self._due.add(at_us, announcement.announcement_id)

    def _still_draws(self, announcement: Announcement) -> bool:
        """Return whether the reservation that an announcement draws on has room for it, and is of its class.

        What is closed since it was promised is no want of room: then it is late.
        What its store has for it is the same whatever it draws on, and is not known again yet after a start.
        """
        drawn_on = self.reservations.get(announcement.pool)
        is_of_class = drawn_on is not None and drawn_on.flow_class is announcement.flows[0].flow_class
        drawn = [booking for _, booking in replace(announcement, store=None).bookings()]
        if drawn_on is None or not is_of_class or not self.calendar.has_resource(Pool(announcement.pool)):
            return False
        with opened(self.calendar, self.schedules, self.network, drawn_on):
            return self.calendar.has_room(drawn)

    def _cancel(self, announcement: Announcement) -> None:
        self._admission.forgets(announcement.announcement_id)
        self.ended.left(announcement)
        for name, _ in announcement.bookings():
            if name in self.calendar:
                self.calendar.cancel(name)
