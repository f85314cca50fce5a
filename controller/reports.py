"""What agents report, and a look at the plan. What switches report: :mod:`controller.switch_reports`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller.delay_watch import measure_delays
from controller.intake_watch import say_intakes
from controller.live_site import KnownPromises, LiveSite, live_site
from controller.plan.keys import FlowId
from controller.plan.ports import PortBurst
from controller.start_bursts import start_bursts
from controller.state.desired import circuits_down
from controller.state.grants import grant, taken_over
from controller.state.guard import GuardedState
from controller.state.health import Trouble, troubles
from controller.state.installed import StepDone
from controller.state.lateness import Late, overdue_promises
from controller.state.layers import layers
from controller.state.progress import fallen_back, moved_bytes, progress
from controller.state.receiver_view import ReceiversView, receivers_view, unheld_demand
from controller.state.receivers import intakes_after, senders_to, stores_after
from controller.state.reported import HostState
from controller.state.starting import yet_to_call
from controller.state.value import Unkept, flows
from controller.view import View
from topology.addresses import shown_address
from topology.protocol import Allocations, Applied, Declined, Demand, Hello, Repaired
from topology.telemetry import Telemetry


class Reports:
    """What comes from below, written into the state."""

    def __init__(self, state: GuardedState) -> None:
        self._state = state
        self._began_us = state.now_us()
        self._declined: dict[str, Declined] = {}  # by host, what was said of it last
        self._is_followed = False  # hosts obey another controller, and it has been said
        self._watched_of: tuple[object, ...] | None = None  # what decides which flows are watched, as it was then
        self._watched: Mapping[str, tuple[FlowId, ...]] = {}

    def view(self) -> View:
        """Return the plan at every layer, now."""
        with self._state.changed:
            now, elapsed_us = self._state.value, self._state.elapsed_us()
        site, reported = self._state.site, now.reported
        return View(
            now.desired.plan,
            now.installed.meters,
            layers(site, now, elapsed_us),
            reported.hosts,
            f"the database: {reported.database_error}" if reported.database_error else now.installed.error,
            {c.name: reported.lines.state(c.name, elapsed_us) for c in site.network.circuits},
            now.desired.prepared,
            reported.calendar_off_us,
            self._began_us,
            yet_to_call(site, now, elapsed_us),
            reported.delays.measured,
        )

    def troubles(self, connected: frozenset[int]) -> tuple[Trouble, ...]:
        """Return what is not well, beside the last step, while some switches are connected, by their dpids."""
        with self._state.changed:
            return troubles(self._state.site, self._state.value, connected, self._state.now())

    def overdue(self) -> Mapping[str, Late]:
        """Return the announcements that are late already, by name."""
        with self._state.changed:
            return overdue_promises(self._state.value, self._state.now())

    def unkept(self) -> Unkept:
        """Return how many promises are said not to be kept now."""
        with self._state.changed:
            return self._state.value.unkept

    def steps(self) -> tuple[StepDone, ...]:
        """Return the latest steps of transitions, oldest first."""
        with self._state.changed:
            return self._state.installed.steps

    def bursts(self) -> tuple[PortBurst, ...]:
        """Return what a start of all senders at one instant needs at each port, and what they do about it."""
        return start_bursts(self._state)

    def receivers(self) -> ReceiversView:
        """Return what receivers take, which flows they hold, and who has what these do not use."""
        with self._state.changed:
            site, state, now = self._state.site, self._state.value, self._state.now()
            unheld = unheld_demand(site, state, now)
        return receivers_view(site, state, now, unheld)

    def live_site(self) -> LiveSite:
        """Return the site as it is, for a what-if to go on from; its promises alone are taken under the lock."""
        with self._state.changed:
            state, now, ledger = self._state.value, self._state.now(), self._state.wished.ledger
            known = KnownPromises(tuple(ledger.reservations.values()), tuple(ledger.shown_announcements().values()))
        return live_site(self._state.site, state, known, now)

    def host_up(self, hello: Hello) -> Allocations | None:
        """Return what a host may do now that its agent is here; None if there is no such host.

        In the middle of a transition that is what it was sent last, if anything: it takes part in the next step. A host
        that was sent nothing yet is told so by epoch 0, and goes on with what it has until its lease ends.
        """
        state, name = self._state, hello.host
        with state.changed:
            host = state.reported.hosts.get(name)
            if host is None:
                return None
            self._compare_addresses(hello)
            # What was under way goes on until the host says what it knows of it.
            wants: dict[str, bool] = dict.fromkeys(self._watched_flows().get(name, ()), True)
            wants |= host.wants
            up = host._replace(connected=True, kernel=hello.kernel, codes_tails=hello.codes_tails, wants=wants)
            up = up._replace(since_us=state.now_us(), telemetry_us=0)
            up = up._replace(progress={}, intakes={}, stores={}, moving={})
            before = None if state.value.stands_by or host.leases.grants else hello.epoch
            if before is not None:
                up = self._taken_over(up, hello, before)
            state.put_host(name, up)
            if host.connected:  # it calls again before it was seen to go
                say_intakes(state, host, up)
            plan = state.installed.meters
            state.hosts_changed()
            if state.value.stands_by:  # whoever leads grants; what the host acts on is asked of it again when we do
                return grant(state.site, state.desired.plan, name, 0, ())
            if before is not None and before >= state.desired.plan.epoch:  # it will decline ours: another is at work
                return state.grant(name, 0, ())
            # Never less than it was sent before: an agent takes an older epoch for an older controller's.
            if plan is not None and plan.epoch == state.installed.hosts_epoch >= up.sent_epoch:
                return state.grant(name, plan.epoch, plan.of_host(name))
            return state.grant(name, max(up.sent_epoch, state.value.own_epoch), up.sent)

    def host_again(self, hello: Hello) -> None:
        """Take in that the agent of a host that is up says what it acts on, or has, anew."""
        with self._state.changed:
            self._compare_addresses(hello)

    def _compare_addresses(self, hello: Hello) -> None:
        """Say which addresses the network gives a host that it does not have: what it sends would not be the plan's."""
        if not hello.interfaces:  # an agent that does not say
            return
        has = {one for interface in hello.interfaces for one in interface.addresses if not one.is_link_local}
        given = self._state.site.network.interfaces_of(hello.host)
        single = (prefix for one in given for prefix in one.prefixes if prefix.num_addresses == 1)
        lacks = " ".join(shown_address(prefix) for prefix in single if prefix.network_address not in has)
        if lacks:
            others = " ".join(sorted(map(str, has)))
            publish = self._state.events.publish
            publish("host.other_address", level="warning", host=hello.host, lacks=lacks, has=others)

    def _watched_flows(self) -> Mapping[str, tuple[FlowId, ...]]:
        """Return, by host, its flows that are asked whether they send; under the lock.

        They are found once for all hosts that call before another flow comes or takes another way.
        """
        site, now, at = self._state.site, self._state.value, self._state.now()
        wished, due_us = now.wished, now.wished.ledger.due_us()
        bought_bps = tuple(wished.bought_bps(circuit, at.calendar_us) for circuit in wished.purchases)
        made_of = wished.version, bought_bps, circuits_down(site, wished, now.reported, at)
        is_due = due_us is not None and due_us <= at.calendar_us
        if is_due or made_of != self._watched_of:
            watched: dict[str, tuple[FlowId, ...]] = {}
            for flow in flows(site, now, at):
                if flow.standby_bps:
                    watched[flow.machine] = (*watched.get(flow.machine, ()), flow.name)
            self._watched_of, self._watched = None if is_due else made_of, watched
        return self._watched

    def _taken_over(self, host: HostState, hello: Hello, epoch: int) -> HostState:
        """Return a host with what it still acts on from before this controller began; under the lock.

        It is granted that again, under the same epoch, until the first plan is in force: whoever is connected keeps its
        lease while the switches are looked for.
        """
        state = self._state
        held = (taken_over(state.site, state.desired.plan, hello.host, entry) for entry in hello.entries)
        entries = tuple(entry for entry in held if entry is not None)
        known = host._replace(unknown_until_us=0)
        if hello.lease_left_ms and entries:
            until_us = state.elapsed_us() + hello.lease_left_ms * 1000
            known = known._replace(leases=known.leases.taken_over(epoch, entries, until_us))
        return known

    def host_down(self, host: str) -> None:
        """Note that a host's stream has ended; what it was allowed counts until its lease is over."""
        state = self._state
        with state.changed:
            known = state.reported.hosts[host]
            leases = known.leases.lost(state.elapsed_us(), state.site.lease_ms * 1000)
            down = known._replace(connected=False, away_us=state.elapsed_us(), leases=leases, since_us=state.now_us())
            down = down._replace(intakes={})  # its stores hold until the lease is over
            state.put_host(host, down)
            say_intakes(state, known, down._replace(stores={}))
            state.hosts_changed()

    def hosts_applied(self, said: Iterable[tuple[str, Applied]]) -> None:
        """Note that hosts' kernels hold epochs; those who say so together wake the others once."""
        state = self._state
        with state.changed:
            hosts, elapsed_us, after = state.reported.hosts, state.elapsed_us(), dict[str, HostState]()
            for host, applied in said:
                known, epoch = after.get(host, hosts[host]), applied.epoch
                if any(grant.epoch == epoch for grant in known.leases.grants):
                    after[host] = known._replace(
                        confirmed_epoch=max(known.confirmed_epoch, epoch),
                        leases=known.leases.confirmed(epoch),
                        unknown_until_us=0 if epoch else known.unknown_until_us,
                        confirmed_us=elapsed_us if epoch == known.sent_epoch else known.confirmed_us,
                    )
            if after:
                self._is_followed = False
                state.put_hosts(after)
                state.changed.notify_all()

    def host_demand(self, host: str, demand: Demand) -> None:
        """Take in that a flow has more to send than its standby rate carries; or that it has not, and keeps to that."""
        with self._state.changed:
            self._demanded(host, demand)

    def _demanded(self, host: str, demand: Demand) -> None:
        """Take in a demand; under the lock."""
        state, before = self._state, self._state.reported.hosts[host]
        known = before
        if demand.standing_by and (leases := known.leases.stepped_down(demand.epoch, demand.name)) is not known.leases:
            known = known._replace(leases=leases)
        is_news = known.wants.get(demand.name) is not demand.wants
        if is_news:
            known = known._replace(wants={**known.wants, demand.name: demand.wants})
        if known is not before:
            state.put_host(host, known)
        if is_news:
            state.events.publish("host.demand", host=host, flow=demand.name, epoch=demand.epoch, wants=demand.wants)
            state.demand_changed()
        # Its flight has ended and another has begun before we heard of it.
        plan = state.desired.plan
        needs_newer = demand.wants and demand.standing_by and demand.epoch == known.sent_epoch == plan.epoch
        if needs_newer and known.acts_as_granted != plan.of_host(host):
            state.grant_anew()
        if known is not before:  # telemetry says the same again each second
            state.changed.notify_all()

    def host_declined(self, host: str, declined: Declined) -> None:
        """Say that a host does not act on what it was sent, and why; once, although it is sent again and again.

        That hosts obey a controller of a later term is said of the first, until one obeys us again.
        """
        if self._declined.get(host) == declined:
            return
        self._declined[host] = declined
        with self._state.changed:
            is_followed = declined.in_force > max(declined.epoch, self._state.desired.plan.epoch)
        if is_followed and self._is_followed:
            return
        self._is_followed = self._is_followed or is_followed
        self._state.events.publish(
            "host.led_by_another" if is_followed else "host.declined",
            level="error",
            host=host,
            epoch=declined.epoch,
            in_force=declined.in_force,
            why=declined.why,
        )

    def host_repaired(self, host: str, repaired: Repaired) -> None:
        """Say what a host's agent has put right in its kernel."""
        self._state.events.publish(
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
        state = self._state
        with state.changed:
            known, (now_us, elapsed_us) = state.reported.hosts[host], state.now()
            stores = {}
            if telemetry.stores:
                senders = senders_to(host, state.desired.plan, state.site.network)
                stores = stores_after(host, known.stores, telemetry, senders, elapsed_us)
            told = known._replace(telemetry=telemetry, telemetry_us=elapsed_us, stores=stores)
            now = told.telling
            if now is not None:
                planned_bps: dict[str, int] = {entry.flow.name: entry.payload_bps for entry in known.sent}
                moves = progress(known.telling, replace(now, now_us=now_us), known.progress, planned_bps)
                takes = intakes_after(known.intakes, telemetry, moves, known.sent, elapsed_us)
                told = told._replace(progress=moves, intakes=takes)
            state.put_host(host, told)
            say_intakes(state, known, told)
            measure_delays(state, host, telemetry)
            self._say_fallbacks(host, known.telemetry, telemetry)
            self._count(host, known, telemetry, now_us)
            for seen in telemetry.entries:
                if seen.wants is not None:
                    self._demanded(host, Demand(telemetry.epoch, seen.name, seen.wants, seen.standing_by))

    def _count(self, host: str, before: HostState, told: Telemetry, now_us: int) -> None:
        """Take in what a host has delivered of announcements; what that stands by with no longer is others'. Locked."""
        ended = self._state.wished.ledger.ended
        # Who stands by, or has just begun to lead, knows of no grant what it carries: the plan is the same.
        known = (*self._state.desired.plan.of_host(host), *before.sent)
        together = {entry.flow.name: entry.flow.names for entry in known if len(entry.flow.names) > 1}
        earlier = {} if before.telemetry is None else {seen.name: seen for seen in before.telemetry.entries}
        is_done = False
        for seen in told.ended:
            ended.counted(host, seen, now_us, host_us=told.at_us, is_last=True)
        for seen in told.entries:
            flows = together.get(FlowId(seen.name), ())
            if flows:
                moved = moved_bytes(earlier.get(seen.name), seen) if before.telemetry is not None else None
                is_done |= ended.counted_together(flows, seen, moved, now_us)
            else:
                is_done |= ended.counted(host, seen, now_us, host_us=told.at_us, is_last=False)
        if is_done:
            self._state.demand_changed()

    def _say_fallbacks(self, host: str, before: Telemetry | None, now: Telemetry) -> None:
        """Say which entries of a host have fallen back to its own congestion control, and which have returned."""
        had, have = fallen_back(() if before is None else before.entries), fallen_back(now.entries)
        why = {entry.name: entry.fallback for entry in now.entries}
        for flow in sorted(have - had):
            self._state.events.publish("host.fallback", level="error", host=host, flow=flow, why=why[flow])
        for flow in sorted(had - have):
            self._state.events.publish("host.fallback_over", host=host, flow=flow)
