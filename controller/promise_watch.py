"""Says of each promise, at once and once, that it is not carried or cannot be kept; and when it is again."""

from controller.plan.keeping import fits, unkeepable
from controller.state.carried import STARTING_US, announcement_obstacles
from controller.state.guard import GuardedState
from controller.state.lateness import late_promises


class PromiseWatch:
    """Looks at what is announced, and at what is in the calendar."""

    def __init__(self, state: GuardedState) -> None:
        self._state = state
        self._not_carried: frozenset[str] = frozenset()
        self._unkeepable: frozenset[str] = frozenset()
        self._looked_at: int | None = None  # how often the ledger had been read when it was looked at

    def look(self) -> None:
        """Tell what is new."""
        with self._state.changed:
            self._look_at_announcements()
            self._look_at_calendar()

    def _look_at_announcements(self) -> None:
        """Tell of what is announced and not carried; not while switches and agents are still being found."""
        state, now = self._state, self._state.now()
        if now.elapsed_us < state.value.started_us + STARTING_US:
            return
        known = state.wished.ledger.announcements.values()
        found = {a.announcement_id: announcement_obstacles(state.site, state.value, a, now) for a in known}
        late = late_promises(state.site, state.value, now)  # which are told of as that
        not_carried = frozenset(name for name, why in found.items() if why and name not in late)
        for name in sorted(not_carried - self._not_carried):
            why = "; ".join(found[name])
            state.events.publish("announcement.not_carried", level="error", announcement=name, why=why)
        for name in sorted((self._not_carried - not_carried) & found.keys()):
            state.events.publish("announcement.carried", announcement=name)
        self._not_carried = not_carried

    def _look_at_calendar(self) -> None:
        """Tell of reservations that there is no room for any more: capacities change when the controller starts."""
        state, ledger, now_us = self._state, self._state.wished.ledger, self._state.now_us()
        if state.site.schedules and self._looked_at != state.wished.restored:
            self._looked_at = state.wished.restored
            for one in unkeepable(ledger, now_us):
                why = f"cannot be kept: {one.why}" + (f"; instead: {one.instead}" if one.instead else "")
                ledger.note(one.reservation_id, why, now_us)
                fields = {"reservation": one.reservation_id, "why": one.why, "instead": one.instead}
                state.events.publish("reservation.unkeepable", level="error", **fields)
                self._unkeepable |= {one.reservation_id}
        for name in sorted(name for name in self._unkeepable if fits(ledger, name, now_us)):
            self._unkeepable -= {name}
            if name in ledger.reservations and ledger.reservations[name].reason.startswith("cannot be kept"):
                ledger.note(name, "", now_us)
                state.events.publish("reservation.keepable", reservation=name)
