"""Admission of a reservation: a path with room, or a refusal with the numbers and the nearest offers. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypedDict

from controller.plan.calendar import Booking, Calendar, Need, Shortage
from controller.plan.paths import ChosenPath, NoPath, Path, candidates, chosen, will_do
from controller.plan.plan import THE_REST, Selector
from controller.plan.policy import Policy
from controller.plan.quotas import Beyond
from controller.plan.reservations import LEAST_BPS, MAX_TIME_US, NO_CONSTRAINTS, Constraints
from controller.plan.resources import need
from topology import units
from topology.network import Network
from topology.protocol import FlowClass

ANSWERING_US = 60_000_000  # an offer is granted to who takes this long to ask for it
SEARCH_US = 366 * 86_400 * 1_000_000  # how far ahead an earliest start is looked for


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for; attributes as in :class:`controller.plan.reservations.Reservation`."""

    a_end: str
    z_end: str
    flow_class: FlowClass
    rate_bps: int
    start_us: int
    end_us: int
    constraints: Constraints = NO_CONSTRAINTS
    description: str = ""
    selector: Selector = THE_REST
    owner: str = ""


class Reason(StrEnum):
    """Why something is refused; the first is NSI CS 2.1's."""

    CAPACITY_UNAVAILABLE = "capacity-unavailable"
    NO_PATH = "no-path"
    DEADLINE_UNREACHABLE = "deadline-unreachable"
    PROVIDER_TOO_LATE = "provider-too-late"
    NOT_TOLD_APART = "not-told-apart"
    QUOTA = "quota"


class OfferKind(StrEnum):
    """In what an offer differs from what was asked."""

    EARLIEST_START = "earliest-start"
    HIGHEST_RATE = "highest-rate"
    LOWER_CLASS = "lower-class"
    LATER_DEADLINE = "later-deadline"


@dataclass(frozen=True, slots=True)
class Offer:
    """Something near what was asked that would be granted at this moment."""

    kind: OfferKind
    flow_class: FlowClass
    rate_bps: int
    start_us: int
    end_us: int
    circuits: tuple[str, ...] = ()  # that it would cross, in order


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer no, with the numbers.

    Attributes:
        reason: why.
        resource: what lacks: a direction of a link, or a class's share of one.
        asked_bps: of this resource, on the wire.
        free_bps: what it has at ``at_us``.
        at_us: the first instant that lacks it, Unix time.
        offers: what would be granted instead.
        why: in words, where there are no numbers.
        beyond: the quota that would be exceeded; None if none would.
    """

    reason: Reason
    resource: str
    asked_bps: int
    free_bps: int
    at_us: int
    offers: tuple[Offer, ...] = ()
    why: str = ""
    beyond: Beyond | None = None

    def __str__(self) -> str:
        """What, where, how much."""
        if self.why:
            return self.why
        free, asked = units.shown_rate(max(0, self.free_bps)), units.shown_rate(self.asked_bps)
        return f"{self.resource} has {free} free from {units.shown_time(self.at_us)}, {asked} asked"


@dataclass(frozen=True, slots=True)
class Granted:
    """The answer yes: where it goes and what it takes."""

    chosen: ChosenPath
    need: Need


def node_of(network: Network, end: str) -> str:
    """Return the node that an end of a reservation stands for: the host, or the site's edge switch.

    Raises:
        UnknownNode: neither a host nor a site has this name.
    """
    if end in network.sites and end not in network.host_names:
        return network.edge_switch(end).name
    return network.host(end).name


def admitted(
    request: Request, network: Network, policy: Policy, calendar: Calendar, held: ChosenPath | None = None
) -> Granted | Refused:
    """Return the path with room over the whole time, or the refusal with the nearest offers.

    Args:
        request: what is asked.
        network: where.
        policy: the classes, for the offer of a lower one.
        calendar: what is promised already; the own share of a reservation that changes must be out of it.
        held: the path such a reservation has now, and its backup; kept if they still will do, so that traffic does not
            move.
    """

    def shortage(paths: tuple[Path, ...]) -> Shortage | None:
        return calendar.shortage(_booking(network, request, paths))

    ends = node_of(network, request.a_end), node_of(network, request.z_end)
    kept = held if held is None or request.constraints.backup else ChosenPath(held.path, ())
    if kept is not None and shortage(kept.paths) is None and will_do(network, ends, request.constraints, kept):
        return Granted(kept, need(network, kept.paths, request.flow_class))
    answer = chosen(network, ends, request.constraints, shortage)
    if isinstance(answer, NoPath):
        return Refused(Reason.NO_PATH, "", request.rate_bps, 0, request.start_us, (), answer.why)
    if isinstance(answer, Shortage):
        offers = tuple(_offers(request, network, policy, calendar))
        return Refused(
            Reason.CAPACITY_UNAVAILABLE, str(answer.resource), answer.asked_bps, answer.free_bps, answer.at_us, offers
        )
    return Granted(answer, need(network, answer.paths, request.flow_class))


def _booking(network: Network, request: Request, paths: tuple[Path, ...]) -> Booking:
    wanted = need(network, paths, request.flow_class)
    return Booking(wanted, request.rate_bps, request.start_us, request.end_us)


def round_dead(request: Request, down: frozenset[str], now_us: int) -> Request:
    """Return a request that begins now without the circuits that are down; any other as it is."""
    if not down or request.start_us > now_us:
        return request
    exclude = (*request.constraints.exclude, *sorted(down))
    return replace(request, constraints=replace(request.constraints, exclude=exclude))


def candidate_needs(network: Network, request: Request) -> tuple[Need, ...]:
    """Return what a request would take along each of its candidate paths, the nearest first."""
    ends = node_of(network, request.a_end), node_of(network, request.z_end)
    found = candidates(network, *ends, request.constraints)
    return tuple(need(network, (path,), request.flow_class) for path in found)


def _offers(request: Request, network: Network, policy: Policy, calendar: Calendar) -> Iterator[Offer]:
    """Yield what would be granted instead: later, slower, in a lower class. None of them for a backup pair."""
    if request.constraints.backup:
        return
    duration_us = request.end_us - request.start_us
    until_us = min(request.start_us + SEARCH_US, MAX_TIME_US - duration_us)
    asked, rate_bps = request.flow_class, request.rate_bps
    ends = node_of(network, request.a_end), node_of(network, request.z_end)
    nearest_first = candidates(network, *ends, request.constraints)
    ways = [network.circuits_along(path) for path in nearest_first]
    along = candidate_needs(network, request)
    starts = [calendar.earliest_start(n, rate_bps, duration_us, request.start_us, until_us) for n in along]
    soonest = min(((s, number) for number, s in enumerate(starts) if s is not None), default=None)
    if soonest is not None:
        start_us, number = soonest
        yield Offer(OfferKind.EARLIEST_START, asked, rate_bps, start_us, start_us + duration_us, ways[number])
    most_bps, number = _widest(along, request, calendar)
    if most_bps >= LEAST_BPS:
        yield Offer(OfferKind.HIGHEST_RATE, asked, most_bps, request.start_us, request.end_us, ways[number])
    for flow_class in lower_classes(asked, policy):
        lower = candidate_needs(network, replace(request, flow_class=flow_class))
        most_bps, number = _widest(lower, request, calendar)
        if most_bps >= rate_bps:
            yield Offer(OfferKind.LOWER_CLASS, flow_class, rate_bps, request.start_us, request.end_us, ways[number])
            return


def _widest(along: tuple[Need, ...], request: Request, calendar: Calendar) -> tuple[int, int]:
    """Return the highest rate over the whole time, and the number of the nearest path that has it."""
    free = [calendar.most_bps(one, request.start_us, request.end_us) for one in along]
    return max(free), free.index(max(free))


def lower_classes(flow_class: FlowClass, policy: Policy) -> tuple[FlowClass, ...]:
    """Return the classes below one that can be reserved, the nearest first."""
    own = policy.classes[flow_class].priority
    below = (c for c, p in policy.classes.items() if p.priority > own and c in RESERVABLE)
    return tuple(sorted(below, key=lambda c: policy.classes[c].priority))


RESERVABLE = (FlowClass.PREDICTABLE, FlowClass.URGENT, FlowClass.BACKGROUND)


def reserved_fields(request: Request, answer: Granted) -> "ReservedFields":
    """Return the fields of a reservation that the request and its admission decide."""
    return {
        "flow_class": request.flow_class,
        "a_end": request.a_end,
        "z_end": request.z_end,
        "rate_bps": request.rate_bps,
        "start_us": request.start_us,
        "end_us": request.end_us,
        "path": answer.chosen.path,
        "backup": answer.chosen.backup,
        "constraints": request.constraints,
        "description": request.description,
        "selector": request.selector,
        "owner": request.owner,
    }


class ReservedFields(TypedDict):
    """What a request and its admission decide of a reservation; attributes as there."""

    flow_class: FlowClass
    a_end: str
    z_end: str
    rate_bps: int
    start_us: int
    end_us: int
    path: tuple[str, ...]
    backup: tuple[str, ...]
    constraints: Constraints
    description: str
    selector: Selector
    owner: str
