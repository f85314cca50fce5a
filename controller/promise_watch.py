"""Says of each promise, once, that it will be late, is not carried or cannot be kept; and when it is well again."""

from collections.abc import Mapping

from controller.plan.announcements import Announcement
from controller.plan.keeping import NOT_AS_PROMISED, Unkeepable, keepable, unkeepable
from controller.plan.lifecycle import ENDED, ReservationState
from controller.plan.plan import Plan
from controller.state.carried import announcement_obstacles
from controller.state.guard import GuardedState
from controller.state.lateness import Late, lacks_counted, late_promises, overdue_promises
from controller.state.moment import Moment
from controller.state.starting import STARTING_US, yet_to_call
from controller.state.value import Unkept
from topology.units import shown_time


class PromiseWatch:
    """Looks at what is announced, and at what is in the calendar."""

    def __init__(self, state: GuardedState) -> None:
        self._state = state
        self._late: frozenset[str] = frozenset()
        self._overdue: frozenset[str] = frozenset()
        self._not_carried: frozenset[str] = frozenset()
        self._numbers: Mapping[str, int] = {}  # by name, of the announcements that were there at the last look
        self._unkeepable: dict[str, frozenset[int | None]] = {}  # by name, until when each time is that was told of
        self._looked_at: object = None  # how often the ledger had been read, and what was planned, at the last look
        self._seen: Plan | None = None
        self._reasons: dict[str, str] = {}  # by name, why those that cannot be kept last said that they cannot

    @property
    def is_behind(self) -> bool:
        """Whether another plan is desired than when it looked last. Under the lock."""
        return self._state.desired.plan is not self._seen

    def look(self) -> None:
        """Tell what is new."""
        with self._state.changed:
            self._seen = self._state.desired.plan
            self._look_at_announcements()
            self._look_at_calendar()
            self._say_again()
            self._state.put(unkept=Unkept(len(self._late | self._overdue), len(self._unkeepable)))

    def _look_at_announcements(self) -> None:
        """Tell of what is announced and will be late or is not carried; what is late is told of as that."""
        state, now = self._state, self._state.now()
        if state.must_replan():
            return  # the plan has yet to follow, and then it is looked at again
        known = state.wished.ledger.announcements
        self._forget_others_of_a_name(known)
        self._look_at_overdue()
        late = late_promises(state.site, state.value, now)
        if late:
            waited_for = yet_to_call(state.site, state.value, now.elapsed_us)
            machines = {name: {flow.machine for flow in known[name].flows} for name in late}
            late = {name: one for name, one in late.items() if waited_for.isdisjoint(machines[name])}
        for name in sorted(late.keys() - self._late):
            self._tell_late(name, late[name])
        # What has no rate now cannot be seen to have it again.
        still = {n for n in self._late & known.keys() if _waits_for_its_end(known[n], now.calendar_us)}
        for name in sorted((self._late - late.keys() - still) & known.keys()):
            state.events.publish("announcement.resumed", announcement=name)
        self._late = frozenset(late.keys() | still)
        if now.elapsed_us < state.value.started_us + STARTING_US:
            return  # switches and agents are still being found
        moment = Moment(state.site, state.value, now)
        found = {name: announcement_obstacles(moment, one) for name, one in known.items()}
        obstructed = {name for name, why in found.items() if why}
        anew = obstructed - self._late - self._not_carried
        for name in sorted(anew):
            why = "; ".join(found[name])
            state.events.publish("announcement.not_carried", level="error", announcement=name, why=why)
        over = (self._not_carried & found.keys()) - obstructed - self._late
        for name in sorted(over):
            state.events.publish("announcement.carried", announcement=name)
        self._not_carried = frozenset((self._not_carried & found.keys()) - over | anew)

    def _forget_others_of_a_name(self, known: Mapping[str, Announcement]) -> None:
        """Forget what was told of an announcement in whose place, since the last look, another of its name has come."""
        gone = frozenset(name for name, n in self._numbers.items() if name in known and known[name].sequence != n)
        self._late, self._overdue = self._late - gone, self._overdue - gone
        self._not_carried -= gone
        self._numbers = {name: one.sequence for name, one in known.items()}

    def _look_at_overdue(self) -> None:
        """Tell of what is late already, although the plan has its rate, and when all of it has arrived.

        Its sender, its receiver or a loss is why. What was released or has lapsed is told of as that.
        """
        state, now = self._state, self._state.now()
        overdue = overdue_promises(state.value, now)
        for name in sorted(anew := overdue.keys() - self._overdue - self._late):
            self._tell_late(name, overdue[name])
        over = {n: one for n, one in state.wished.ledger.announcements.items() if one.promised_us < now.calendar_us}
        told = self._overdue & over.keys() | anew
        for name in sorted(arrived := {name for name in told if not lacks_counted(state.value, over[name])}):
            state.events.publish("announcement.resumed", announcement=name)
        self._overdue = frozenset(told - arrived)

    def _tell_late(self, name: str, one: Late) -> None:
        expected = "" if one.expected_us is None else shown_time(one.expected_us)
        fields = {"promised": shown_time(one.promised_us), "expected": expected, "why": one.why}
        self._state.events.publish("announcement.late", level="error", announcement=name, **fields)

    def _say_again(self) -> None:
        """Have reservations that cannot be kept say so again where a commit or their start has wiped that out."""
        ledger, before, self._reasons = self._state.wished.ledger, self._reasons, {}
        for known in [ledger.reservations[name] for name in self._unkeepable if name in ledger.reservations]:
            name, is_said = known.reservation_id, known.reason.startswith(NOT_AS_PROMISED)
            self._reasons[name] = known.reason if is_said else before.get(name, "")
            if not known.reason and known.state is not ReservationState.PROVISIONING:
                ledger.note(name, self._reasons[name], self._state.now_us())

    def _look_at_calendar(self) -> None:
        """Tell of reservations that there is no room for any more: capacities change when the controller starts."""
        state, ledger, now_us = self._state, self._state.wished.ledger, self._state.now_us()
        looked_at = state.wished.restored, state.wished.maintenance
        if self._looked_at is None:  # what was told of before this start may have room now, or is told of again
            known = ledger.reservations.items()
            named = (name for name, one in known if one.reason.startswith(NOT_AS_PROMISED))
            self._unkeepable = dict.fromkeys(named, frozenset())
        if self._looked_at != looked_at:
            self._looked_at = looked_at
            for one in unkeepable(ledger, now_us):
                ledger.note(one.reservation_id, one.reason, now_us)
                self._tell_unkeepable(one)
        for name in sorted(keepable(ledger, frozenset(self._unkeepable), now_us)):
            del self._unkeepable[name]
            goes_on = ledger.reservations.get(name)
            if goes_on is not None and goes_on.state not in ENDED and goes_on.end_us > now_us:
                if goes_on.reason.startswith(NOT_AS_PROMISED):  # not what else it may lack now
                    ledger.note(name, "", now_us)
                state.events.publish("reservation.keepable", reservation=name)

    def _tell_unkeepable(self, one: Unkeepable) -> None:
        """Tell of a reservation that has no room any more, unless that was told of with each time that it has none."""
        told, name = self._unkeepable.get(one.reservation_id, frozenset()), one.reservation_id
        if not told.issuperset(one.until_us):
            until = "" if one.goes_on_us is None else shown_time(one.goes_on_us)
            fields = {"reservation": name, "why": one.why, "until": until, "instead": one.instead}
            self._state.events.publish("reservation.unkeepable", level="error", **fields)
        self._unkeepable[name] = told.union(one.until_us)


def _waits_for_its_end(known: Announcement, now_us: int) -> bool:
    """Return whether an announcement is promised no rate at a moment, and has not arrived."""
    return bool(known.awaited) and not known.floor_bps(now_us)
