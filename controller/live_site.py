"""The site as it is at a moment, whole: what a what-if goes on from. Its JSON is for the same version alone. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from controller.database.announcements import announcement_of, announcement_text
from controller.plan.announcements import Announcement
from controller.plan.clock import Instant
from controller.plan.keys import FlowId
from controller.plan.lifecycle import ENDED
from controller.plan.policy import ClassPolicy, Policy
from controller.plan.purchases import Period
from controller.plan.reservations import Reservation
from controller.site import Site, flow_between
from controller.state.installed import StepDone
from controller.state.reported import KnownStore
from controller.state.setup_time import latest
from controller.state.value import SiteState
from topology.network_file import network_of
from topology.network_text import section_of
from topology.problems import Problems
from topology.protocol import FlowClass


@dataclass(frozen=True, slots=True)
class LiveFlow:
    """A flow that is always in the plan."""

    name: str
    flow_class: FlowClass
    sender: str
    target: str


@dataclass(frozen=True, slots=True)
class LiveSite:
    """A site at a moment.

    Attributes:
        at_us: when, Unix time.
        network: as the network's file has it.
        measured_us: by circuit, the delay that was measured.
        classes: what each class may have.
        protected: the classes that are led round a dead circuit.
        flows: those that are always in the plan.
        lease_ms: how long hosts act without the controller.
        return_after_us: how long a line must be up again before it is used.
        schedules: by circuit, when it carries another rate than its own, or is worked on.
        down: the circuits whose lines are down.
        unlike: in words, what is otherwise than a what-if takes it to be.
        reservations: those that have not ended.
        announcements: likewise, each as the database's text.
        stores: by host, by name, where it puts what it receives; times from the moment.
        holds: whether flows are held to what their receivers take.
        steps: the latest steps of switches and hosts, by which a promise counts how long they take.
    """

    at_us: int
    network: dict[str, Any]
    classes: dict[FlowClass, ClassPolicy]
    protected: tuple[FlowClass, ...]
    flows: tuple[LiveFlow, ...]
    lease_ms: int
    return_after_us: int
    schedules: dict[str, tuple[Period, ...]]
    down: tuple[str, ...]
    unlike: tuple[str, ...]
    reservations: tuple[Reservation, ...]
    announcements: tuple[str, ...]
    measured_us: dict[str, int] = field(default_factory=dict)
    stores: dict[str, dict[str, KnownStore]] = field(default_factory=dict)
    holds: bool = True
    steps: tuple[StepDone, ...] = ()

    def site(self) -> Site:
        """Return what does not change of it.

        Raises:
            ValueError: it is none that this version knows.
        """
        problems = Problems(values=self.network)
        network = network_of(self.network, problems)
        if network is None:
            raise ValueError("; ".join(problems.found))
        network = network.with_measured(self.measured_us)
        policy = Policy(self.classes, protected=frozenset(self.protected))
        flows = tuple(
            flow_between(network, FlowId(one.name), one.flow_class, (one.sender, one.target)) for one in self.flows
        )
        return Site(
            network,
            policy,
            flows,
            self.lease_ms,
            schedules=self.schedules,
            return_after_us=self.return_after_us,
            hold_to_receivers=self.holds,
        )

    def promises(self) -> tuple[Announcement, ...]:
        """Return the announcements."""
        return tuple(announcement_of(text) for text in self.announcements)


_LIVE = TypeAdapter(LiveSite)


def plain_of(live: LiveSite) -> dict[str, Any]:
    """Return it in values that JSON has."""
    plain: dict[str, Any] = _LIVE.dump_python(live, mode="json")
    return plain


def live_site_json(live: LiveSite) -> bytes:
    """Return it as JSON."""
    return _LIVE.dump_json(live)


def live_site_of(plain: object) -> LiveSite:
    """Return the site of which these are the values.

    Raises:
        ValueError: they are of none, or another version's.
    """
    try:
        return _LIVE.validate_python(plain)
    except ValidationError as error:
        raise ValueError(str(error)) from error


@dataclass(frozen=True, slots=True)
class KnownPromises:
    """The promises of a ledger at a moment, for it is changed in place."""

    reservations: tuple[Reservation, ...]
    announcements: tuple[Announcement, ...]


def live_site(site: Site, state: SiteState, promises: KnownPromises, now: Instant) -> LiveSite:
    """Return a site as it is.

    Args:
        site: what does not change.
        state: what does; its ledger is not looked at.
        promises: what that had.
        now: the moment.
    """
    down = state.reported.lines.down(now.elapsed_us)
    schedules = {name: list(periods) for name, periods in site.schedules.items()}
    for one in (each for each in state.wished.maintenance if not each.is_withdrawn):
        schedules.setdefault(one.circuit, []).append(Period(one.start_us, one.end_us, 0))
    return LiveSite(
        now.calendar_us,
        section_of(site.network),
        site.policy.classes,
        tuple(sorted(site.policy.protected)),
        tuple(LiveFlow(f.name, f.flow_class, f.host, f.target) for f in site.standing),
        site.lease_ms,
        site.return_after_us,
        {name: tuple(periods) for name, periods in schedules.items()},
        tuple(sorted(down)),
        tuple(_unlike(site, state, down)),
        tuple(replace(r, key="", fingerprint="") for r in promises.reservations if r.state not in ENDED),
        tuple(announcement_text(replace(a, key="", fingerprint="")) for a in promises.announcements),
        dict(site.network.measured_us),
        dict(_stores(state, now.elapsed_us)),
        site.hold_to_receivers,
        latest(state.installed.steps),
    )


def _stores(state: SiteState, elapsed_us: int) -> Iterator[tuple[str, dict[str, KnownStore]]]:
    """Yield what each host has told of its stores, as a clock has it that begins at this moment."""
    for host, known in sorted(state.reported.hosts.items()):
        found = {}
        for name, one in known.stores.items():
            changed_us = None if one.intake.changed_us is None else one.intake.changed_us - elapsed_us
            intake = replace(one.intake, since_us=one.intake.since_us - elapsed_us, changed_us=changed_us)
            found[name] = KnownStore(one.told, intake)
        if found:
            yield host, found


def _unlike(site: Site, state: SiteState, down: Collection[str]) -> Iterable[str]:
    """Yield what is otherwise than a what-if takes it to be."""
    yield from (f"{name} is down, and is taken to stay so" for name in sorted(down))
    hosts: Mapping[str, Any] = state.reported.hosts
    yield from (
        f"{name}: its agent is not connected; it is taken to be" for name in sorted(hosts) if not hosts[name].connected
    )
    gone = [switch.name for switch in site.network.switches if switch.dpid in state.reported.wiring.gone]
    yield from (f"{name} is not connected; it is taken to be" for name in gone)
    for hop, fault in sorted(state.reported.wiring.faults.items()):
        if site.network.link(*hop).circuit not in down:
            yield f"{fault}; it is taken to be as the network has it"
    for place, alarms in sorted(state.reported.alarms.items()):
        yield from (f"{place}: {alarm.what}; it is taken to be well" for alarm in alarms)
    yield from (f"{name} is bought at need; it is taken as bought" for name in sorted(site.lead_us))
