"""The use cases of maintenance: plan it, look what it would break first, take it back.

A window counts once it is saved: until then nobody is told of it, and neither calendar nor plan have it.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace

from controller.asker import present_asker
from controller.checks import check_times
from controller.database import Noted
from controller.errors import NotAllowed, NotKnown
from controller.plan.keeping import Unkeepable
from controller.plan.maintenance import (
    WITHDRAWN_US,
    Maintenance,
    beside,
    broken_by,
    broken_meanwhile,
    impose,
    lift,
)
from controller.plan.purchases import Period
from controller.saves import Saved, Saves
from controller.state.guard import GuardedState

LONGEST_US = 366 * 86_400_000_000
KEPT_US = 2 * 86_400_000_000  # so long it can be seen what is over, all of yesterday, and be asked for again


@dataclass(frozen=True, slots=True)
class Planned:
    """What became of a wish for maintenance.

    Attributes:
        maintenance: it.
        breaks: the reservations that it breaks, or would.
        beside: those of the same circuit that are planned for some of its time already.
        is_planned: whether it is; not if it was only asked what it would break, or if it would and was not forced, or
            if it was asked for before and is over.
    """

    maintenance: Maintenance
    breaks: tuple[Unkeepable, ...]
    beside: tuple[Maintenance, ...]
    is_planned: bool


@dataclass(frozen=True, slots=True)
class _HandedOver:
    """What was handed to the database last, which may not be in what was wished yet.

    Attributes:
        restored: of which reading of the database it was.
        maintenance: it.
        told: done once it is saved, and counts.
    """

    restored: int
    maintenance: tuple[Maintenance, ...]
    told: Future[None]


class Maintaining:
    """The use cases over one state."""

    def __init__(self, state: GuardedState, saves: Saves) -> None:
        self._state = state
        self._saves = saves
        self._handed_over: _HandedOver | None = None

    def all(self, ends_after_us: int | None = None) -> tuple[Maintenance, ...]:
        """Return those that are not over, or end after a moment, in the order of their start.

        What has been over for ``KEPT_US`` may be forgotten.
        """
        with self._state.changed:
            after_us = self._state.now_us() if ends_after_us is None else ends_after_us
            every = self._state.wished.maintenance
            known = (one for one in every if one.end_us > after_us and not one.is_withdrawn)
            return tuple(sorted(known, key=lambda one: (one.start_us, one.name)))

    @property
    def schedules(self) -> Mapping[str, tuple[Period, ...]]:
        """By circuit, when it has another rate than its own by the configuration."""
        return self._state.site.schedules

    def plan(self, asked: Callable[[int], Maintenance], *, only_look: bool, force: bool) -> Saved[Planned]:
        """Plan a maintenance; if it would break reservations, only where that is forced. By a key it is planned once.

        Args:
            asked: from the time to what is asked.
            only_look: only say what it would break.
            force: though it breaks some.

        Raises:
            NotKnown: there is no such circuit.
            NotAllowed: a time that makes no sense, or a key that was used for another one.
            DatabaseFailed: nothing can be saved now.
        """
        state, site = self._state, self._state.site
        with state.changed:
            self._saves.check()
            now_us, ledger = state.now_us(), state.wished.ledger
            one, known = replace(asked(now_us), creator=present_asker().who, created_us=now_us), self._last_word()
            earlier = next((each for each in known if one.key and each.key == one.key and not only_look), None)
            if earlier is not None:
                return self._repeated(earlier, one, known)
            circuits = tuple(circuit.name for circuit in site.network.circuits)
            if one.circuit not in circuits:
                raise NotKnown("circuit", one.circuit, circuits)
            one = replace(one, start_us=max(one.start_us, now_us))
            check_times(one.start_us, one.end_us, now_us)
            if one.end_us - one.start_us > LONGEST_US:
                raise NotAllowed("end", "a maintenance takes a year at most: take the circuit out of the network")
            others = beside(one, known)
            breaks = broken_by(ledger, one, now_us)
            if only_look or (breaks and not force):
                return Saved(Planned(one, breaks, others, is_planned=False), _done())
            noted = Noted("maintenance.planned", one.name, None, _noted(one))
            saved = self._saved((*known, one), noted, one, lambda: self._begins(one))
            return Saved(Planned(one, breaks, others, is_planned=True), saved)

    def _repeated(self, earlier: Maintenance, asked: Maintenance, known: tuple[Maintenance, ...]) -> Saved[Planned]:
        """Return what became of a wish whose key comes again; under the lock."""
        if earlier.fingerprint != asked.fingerprint:
            raise NotAllowed("Idempotency-Key", f'"{earlier.key}" was used for another maintenance')
        now_us, wished = self._state.now_us(), self._state.wished
        if earlier.end_us <= now_us:
            return Saved(Planned(earlier, (), (), is_planned=False), self._saved_last(), is_repeated=True)
        if earlier.name in {one.name for one in wished.maintenance}:
            left = _without(wished.maintenance, earlier, now_us)
            periods = self._state.site.schedules.get(earlier.circuit, ())
            breaks = broken_meanwhile(wished.ledger, earlier, left, periods, now_us)
        else:  # it is being saved
            breaks = broken_by(wished.ledger, earlier, now_us)
        others = beside(earlier, (one for one in known if one is not earlier))
        return Saved(Planned(earlier, breaks, others, is_planned=True), self._saved_last(), is_repeated=True)

    def cancel(self, name: str) -> Saved[Maintenance]:
        """Take a maintenance back; what of it is over stays over, and one that is taken back stays so.

        Raises:
            NotKnown: there is none of this name.
            DatabaseFailed: nothing can be saved now.
        """
        state = self._state
        with state.changed:
            self._saves.check()
            now_us = state.now_us()
            last_word, counts = self._last_word(), {one.name for one in state.wished.maintenance}
            known = {one.name: one for one in last_word if one.end_us <= now_us or one.name in counts}
            if name not in known:
                raise NotKnown("maintenance", name, tuple(one.name for one in known.values() if one.end_us > now_us))
            one = known[name]
            if one.end_us <= now_us:
                return Saved(one, self._saved_last(), is_repeated=True)
            noted = Noted("maintenance.cancelled", name, _noted(one), None)
            left = _without(last_word, one, now_us)
            return Saved(one, self._saved(left, noted, one, lambda: self._ends(one)))

    def _last_word(self) -> tuple[Maintenance, ...]:
        """Return all that there will be once all that was handed over is saved; under the lock."""
        last = self._waiting()
        return self._state.wished.maintenance if last is None else last.maintenance

    def _saved_last(self) -> Future[None]:
        """Return what is done once all that was handed over is saved; under the lock."""
        last = self._waiting()
        return _done() if last is None else last.told

    def _waiting(self) -> _HandedOver | None:
        """Return what was handed over last, if it is of what was restored last; under the lock."""
        last = self._handed_over
        return None if last is None or last.restored != self._state.wished.restored else last

    def _saved(
        self, left: tuple[Maintenance, ...], noted: Noted, one: Maintenance, then: Callable[[], None]
    ) -> Future[None]:
        """Save all that there are, then let one begin or end to count; under the lock."""
        now_us, told = self._state.now_us(), Future[None]()
        kept = tuple(each for each in left if each.end_us > now_us - KEPT_US)
        self._handed_over = _HandedOver(self._state.wished.restored, kept, told)
        saved = self._saves.save_maintenance(kept, noted)

        def heard(done: Future[None]) -> None:
            failure = done.exception()
            with self._state.changed:
                if failure is None:
                    then()
                    fields = {"circuit": one.circuit, "maintenance": one.name}
                    self._state.events.publish(noted.kind, level="info", **fields)
                else:
                    self._handed_over = None
            if failure is None:
                told.set_result(None)
            else:
                told.set_exception(failure)

        saved.add_done_callback(heard)
        return told

    def _begins(self, one: Maintenance) -> None:
        wished = self._state.wished
        if one.name not in {known.name for known in wished.maintenance}:  # else it was read from the database meanwhile
            impose(wished.ledger, one)
            self._put((*wished.maintenance, one))

    def _ends(self, one: Maintenance) -> None:
        wished = self._state.wished
        if one.name in {known.name for known in wished.maintenance}:
            left = _without(wished.maintenance, one, self._state.now_us())
            periods = self._state.site.schedules.get(one.circuit, ())
            lift(wished.ledger, one, left, periods, self._state.now_us())
            self._put(left)

    def _put(self, maintenance: tuple[Maintenance, ...]) -> None:
        """Let the plan follow."""
        self._state.wished.ledger.moves += 1
        self._state.put(wished=replace(self._state.wished, maintenance=maintenance))
        self._state.changed.notify_all()


def _without(known: tuple[Maintenance, ...], one: Maintenance, now_us: int) -> tuple[Maintenance, ...]:
    """Return those that are known when one is taken back: of that, what is over, or that it was."""
    was = replace(one, start_us=min(one.start_us, now_us - WITHDRAWN_US), end_us=now_us)
    return (*(each for each in known if each.name != one.name), was)


def _done() -> Future[None]:
    done: Future[None] = Future()
    done.set_result(None)
    return done


def _noted(one: Maintenance) -> dict[str, object]:
    untold = {"name", "creator", "created_us", "key", "fingerprint"}
    return {name: value for name, value in asdict(one).items() if name not in untold}
