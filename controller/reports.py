"""What agents and switches report, and a look at the plan. The use cases are in :mod:`controller.use_cases`."""

from dataclasses import replace

from controller.book import Book, StepDone, View
from controller.plan.failover import late
from controller.plan.ports import PortBurst
from controller.start_bursts import start_bursts
from topology.protocol import Allocations, Applied, Declined, Demand, Hello, Repaired, Telemetry
from topology.units import shown_time


class Reports:
    """What comes from below, written into one book."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._declined: dict[str, Declined] = {}  # by host, what was said of it last
        dpids = {switch.name: switch.dpid for switch in book.site.network.switches}
        self._circuits = {
            (dpids[tail], link.port_no): link.circuit for tail, _, link in book.site.network.circuit_links
        }

    def view(self) -> View:
        """Return the plan at every layer, now."""
        book = self._book
        with book.changed:
            last = book.installed.steps[-1] if book.installed.steps else None
            hosts = {name: replace(state) for name, state in book.hosts.items()}
            error = book.store_error or (last.error if last else "")
            now_us = book.now_us()
            lines = {c.name: book.lines.state(c.name, now_us) for c in book.site.network.circuits}
            return View(book.desired, book.installed.meters, book.layers(), hosts, error, lines, dict(book.prepared))

    def steps(self) -> tuple[StepDone, ...]:
        """Return the latest steps of transitions, oldest first."""
        with self._book.changed:
            return tuple(self._book.installed.steps)

    def bursts(self) -> tuple[PortBurst, ...]:
        """Return what a start of all senders at one instant needs at each port, and what they do about it."""
        return start_bursts(self._book)

    def host_up(self, hello: Hello) -> Allocations | None:
        """Return what a host may do now that its agent is here; None if there is no such host.

        In the middle of a transition that is what it was sent last, if anything: it takes part in the next step. A host
        that was sent nothing yet is told so by epoch 0, and goes on with what it has until its lease ends.
        """
        book = self._book
        with book.changed:
            state = book.hosts.get(hello.host)
            if state is None:
                return None
            plan = book.installed.meters
            state.connected, state.kernel = True, hello.kernel
            for flow in book.flows():  # what was under way goes on until the host says what it knows of it
                if flow.host == hello.host and flow.standby_bps:
                    state.wants.setdefault(flow.name, True)
            book.demanded()
            # Never less than it was sent before: an agent takes an older epoch for an older controller's.
            if plan is not None and plan.epoch == book.installed.hosts_epoch >= state.sent_epoch:
                return book.sending(hello.host, plan.epoch, plan.of_host(hello.host))
            told = state.leases.grants[-1].entries if state.leases.grants else ()
            return book.sending(hello.host, state.sent_epoch, told)

    def host_down(self, host: str) -> None:
        """Note that a host's stream has ended; what it was allowed counts until its lease is over."""
        with self._book.changed:
            state = self._book.hosts[host]
            state.connected = False
            state.leases = state.leases.lost(self._book.now_us(), self._book.site.lease_ms * 1000)
            self._book.demanded()
            self._book.changed.notify_all()

    def host_applied(self, host: str, applied: Applied) -> None:
        """Note that a host's kernel holds an epoch."""
        with self._book.changed:
            state = self._book.hosts[host]
            if any(told.epoch == applied.epoch for told in state.leases.grants):
                state.confirmed_epoch = max(state.confirmed_epoch, applied.epoch)
                state.leases = state.leases.confirmed(applied.epoch)
                if applied.epoch == state.sent_epoch:
                    state.confirmed_us = self._book.now_us()
                self._book.changed.notify_all()

    def host_demand(self, host: str, demand: Demand) -> None:
        """Take in that a flow has more to send than its standby rate carries; or that it has not, and keeps to that."""
        with self._book.changed:
            self._demanded(host, demand)

    def _demanded(self, host: str, demand: Demand) -> None:
        book, state = self._book, self._book.hosts[host]
        if demand.standing_by:
            state.leases = state.leases.stepped_down(demand.epoch, demand.name)
        if state.wants.get(demand.name) is not demand.wants:
            state.wants[demand.name] = demand.wants
            book.events.publish("host.demand", host=host, flow=demand.name, epoch=demand.epoch, wants=demand.wants)
            book.demanded()
        # Its flight has ended and another has begun before we heard of it.
        needs_newer = demand.wants and demand.standing_by and demand.epoch == state.sent_epoch == book.desired.epoch
        if needs_newer and state.acts_as_told != book.desired.of_host(host):
            book.grant_anew()
        book.changed.notify_all()

    def host_declined(self, host: str, declined: Declined) -> None:
        """Say that a host does not act on what it was sent, and why; once, although it is sent again and again."""
        if self._declined.get(host) == declined:
            return
        self._declined[host] = declined
        self._book.events.publish(
            "host.declined",
            level="error",
            host=host,
            epoch=declined.epoch,
            in_force=declined.in_force,
            why=declined.why,
        )

    def host_repaired(self, host: str, repaired: Repaired) -> None:
        """Say what a host's agent has put right in its kernel."""
        self._book.events.publish(
            "host.repaired",
            level="warning",
            host=host,
            epoch=repaired.epoch,
            entry=repaired.name,
            fault=repaired.fault.value,
            what=repaired.what,
        )

    def host_telemetry(self, host: str, telemetry: Telemetry) -> None:
        """Keep a host's counters; they also say what a message about demand that was lost would have said."""
        with self._book.changed:
            state = self._book.hosts[host]
            state.telemetry, state.telemetry_us = telemetry, self._book.now_us()
            for seen in telemetry.entries:
                if seen.wants is not None:
                    self._demanded(host, Demand(telemetry.epoch, seen.name, seen.wants, seen.standing_by))

    def switch_up(self, dpid: int) -> None:
        """Note that a switch came: what it holds must be compared again, and what it has lost is drift."""
        with self._book.changed:
            self._book.switches_back.add(dpid)
        self._suspect()

    def rule_gone(self, dpid: int) -> None:
        """Note that somebody has deleted a rule of ours: that switch is audited at once."""
        with self._book.changed:
            self._book.switches_back.add(dpid)
            self._book.changed.notify_all()

    def switch_down(self, _dpid: int) -> None:
        """Note that a switch went: what it holds must be compared again."""
        self._suspect()

    def _suspect(self) -> None:
        with self._book.changed:
            self._book.suspicions += 1
            self._book.changed.notify_all()

    def port_said(self, dpid: int, port_no: int, is_live: bool) -> None:
        """Note whether a switch's port is live; a circuit whose line ends there lives and dies with it."""
        book = self._book
        with book.changed:
            circuit = self._circuits.get((dpid, port_no))
            if circuit is None:
                return
            before = book.desired
            book.lines.said(circuit, (dpid, port_no), book.now_us(), is_live=is_live)
            book.note_lines()
            book.changed.notify_all()
            if book.desired is not before:
                self._say_late()

    def _say_late(self) -> None:
        """Say of the promises that are not kept any more, and when they will be done now; under the lock."""
        book = self._book
        announcements, framing = book.ledger.announcements.values(), book.site.network.framing
        for name, promised_us, expected_us in late(announcements, book.desired, framing, book.now_us()):
            book.events.publish(
                "announcement.late",
                level="error",
                announcement=name,
                promised=shown_time(promised_us),
                expected="" if expected_us is None else shown_time(expected_us),
            )
