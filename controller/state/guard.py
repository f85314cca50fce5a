"""The lock, its condition, and the one state they guard."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from controller.events import Events
from controller.plan.clock import Instant
from controller.plan.delays import MeasuredDelays
from controller.plan.lines import LineState
from controller.plan.plan import Entry
from controller.site import Site
from controller.state.desired import Desired, circuits_down
from controller.state.grants import grant
from controller.state.installed import Installed
from controller.state.reported import HostState, Reported
from controller.state.value import (
    SiteState,
    Unkept,
    due_us,
    first_state,
    leading,
    must_replan,
    replanned,
    with_lines_noted,
)
from controller.state.wished import Wished
from topology.protocol import Allocations


class NotHeld(Exception):
    """The state was touched by a thread that does not hold its lock: a mistake in the program."""

    def __init__(self) -> None:
        super().__init__(f"thread {threading.current_thread().name} touches the state without holding its lock")


class GuardedState:
    """All that changes. Whoever reads or replaces it holds ``changed``; who does not is stopped by :class:`NotHeld`.

    ``halted`` is of the same lock, for threads that wait for the end or for the database to fail, for nothing else:
    what agents say does not wake them. None of its methods blocks. ``site``, the clocks and ``events`` need no lock;
    ``site`` is replaced, by another that differs in measured delays alone.
    """

    def __init__(self, site: Site, now: Callable[[], Instant], term: int, *, stands_by: bool = False) -> None:
        self.site = site
        self.now = now
        self.events = Events(self.now_us)
        lock = threading.RLock()
        self.changed, self.halted = threading.Condition(lock), threading.Condition(lock)
        self._value = first_state(site, now(), term, stands_by=stands_by)

    def now_us(self) -> int:
        """Return the calendar's time, Unix time."""
        return self.now().calendar_us

    def elapsed_us(self) -> int:
        """Return the elapsed time, which nobody can set."""
        return self.now().elapsed_us

    @property
    def value(self) -> SiteState:
        """The state as it is now.

        Raises:
            NotHeld: this thread does not hold the lock.
        """
        try:
            self.changed.notify(0)  # wakes nobody; raises in a thread that has not acquired the lock
        except RuntimeError:
            raise NotHeld from None
        return self._value

    @property
    def wished(self) -> Wished:
        """What was wished."""
        return self.value.wished

    @property
    def reported(self) -> Reported:
        """What was reported."""
        return self.value.reported

    @property
    def installed(self) -> Installed:
        """What is in force."""
        return self.value.installed

    @property
    def desired(self) -> Desired:
        """The plan that the layers are brought to."""
        return self.value.desired

    def put(
        self,
        *,
        wished: Wished | None = None,
        reported: Reported | None = None,
        installed: Installed | None = None,
        desired: Desired | None = None,
        unkept: Unkept | None = None,
    ) -> None:
        """Replace some parts of the state.

        Raises:
            NotHeld: this thread does not hold the lock.
        """
        now = self.value
        self._value = replace(
            now,
            wished=wished or now.wished,
            reported=reported or now.reported,
            installed=installed or now.installed,
            desired=desired or now.desired,
            unkept=unkept or now.unkept,
        )

    def put_host(self, name: str, host: HostState) -> None:
        """Replace what is known of a host."""
        self.put_hosts({name: host})

    def put_hosts(self, hosts: Mapping[str, HostState]) -> None:
        """Replace what is known of some hosts."""
        self.put(reported=self.reported.with_hosts(hosts))

    def go_by(self, delays: MeasuredDelays) -> None:
        """Go by measured delays from now on, if they are others; the clock's thread plans for them."""
        if delays is self.reported.delays:
            return
        self.put(reported=replace(self.reported, delays=delays))
        if delays.measured_us != self.site.network.measured_us:
            self.site = replace(self.site, network=self.site.network.with_measured(delays.measured_us))
            self.wished.ledger.go_by(self.site.network)
            self.changed.notify_all()

    # The plan.

    def must_replan(self) -> bool:
        """Return whether anything has changed that the plan is made of."""
        return must_replan(self.site, self.value, self.now())

    def must_replan_at_once(self) -> bool:
        """Return whether anything has changed that the plan is made of, beside hosts that have come or gone."""
        return must_replan(self.site, self.value, self.now(), beside_hosts=True)

    def is_behind_wishes(self) -> bool:
        """Return whether something of what was wished may have changed since the plan was made; much is not asked."""
        return self.wished.version != self.desired.basis.wished

    def note_lines(self) -> None:
        """Act on lines that have died since the last call, and say of those that are used again.

        What is promised from now on goes round them, and round circuits that are to carry nothing.
        """
        before = self.desired
        self._value, news = with_lines_noted(self.site, self.value, self.now())
        self.wished.ledger.down = circuits_down(self.site, self.wished, self.reported, self.now())
        for circuit, line in news:
            level = "info" if line is LineState.UP else "error"
            self.events.publish(f"circuit.{line}", level=level, circuit=circuit)
        self._tell_of(before)

    def replan(self) -> None:
        """Make the plan for what there is now the desired one, if it is another."""
        self.note_lines()
        before = self.desired
        self._value = replanned(self.site, self.value, self.now())
        if self.desired.basis.demands != before.basis.demands:  # of all these hosts only the first has woken anybody
            self.changed.notify_all()
        self._tell_of(before)

    def demand_changed(self) -> None:
        """Note that what hosts want to send has changed, and let the plan follow at once."""
        self.put(reported=replace(self.reported, demands=self.reported.demands + 1))
        self.replan()

    def hosts_changed(self) -> None:
        """Note that a host has come or gone. The clock's thread plans once for all that come together."""
        is_first = self.reported.demands == self.desired.basis.demands
        self.put(reported=replace(self.reported, demands=self.reported.demands + 1))
        if is_first:
            self.changed.notify_all()

    def grant_anew(self) -> None:
        """Give the desired plan another epoch, for a host that acts on it only once it is newer."""
        before = self.desired
        plan = replace(before.plan, epoch=before.next_epoch)
        self.put(desired=before.becomes(plan, self.elapsed_us()))
        self._tell_of(before)

    def grant(self, host: str, epoch: int, entries: tuple[Entry, ...]) -> Allocations:
        """Note that a host is being sent what it may do, and return the message."""
        return self.grants(epoch, {host: entries})[host]

    def grants(self, epoch: int, by_host: Mapping[str, tuple[Entry, ...]]) -> dict[str, Allocations]:
        """Note that hosts are being sent what they may do under an epoch, and return the message to each."""
        hosts, now_us, lease_us = self.reported.hosts, self.elapsed_us(), self.site.lease_ms * 1000
        plan, after = self.desired.plan, dict[str, HostState]()
        for name, entries in by_host.items():
            called = plan.called.get(name, ()) if epoch else ()
            after[name] = hosts[name].granted(epoch, entries, now_us, lease_us, called)
        self.put_hosts(after)
        return {
            name: grant(self.site, plan, name, epoch, entries, codes_tails=hosts[name].codes_tails)
            for name, entries in by_host.items()
        }

    def _tell_of(self, before: Desired) -> None:
        """Wake all threads if another plan is desired than before."""
        if self._value.desired.plan is not before.plan:
            self.changed.notify_all()

    def lead(self, term: int) -> None:
        """Lead from now on, under a term; takes the lock itself."""
        with self.changed:
            self._value = leading(self.site, self.value, self.now(), term)
            self.replan()
            self.changed.notify_all()

    # The process.

    def due_us(self) -> int:
        """Return when the clock has something to do next, elapsed time."""
        return due_us(self.site, self.value, self.now())

    def sleep_until(self, at_us: int) -> None:
        """Note when the clock is looked at next without being woken."""
        self._value = replace(self.value, sleeping_until_us=at_us)

    @property
    def stopping(self) -> bool:
        """Whether the threads are to end."""
        return self.value.stopping

    def stop(self) -> None:
        """Let all threads end; takes the lock itself."""
        with self.changed:
            self._value = replace(self.value, stopping=True)
            self.changed.notify_all()
            self.halted.notify_all()
