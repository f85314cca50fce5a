"""Admission where some circuits are bought at need, and nothing can be bought at the last moment. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from controller.plan.admission import ANSWERING_US, Granted, Offer, OfferKind, Reason, Refused, Request, admitted
from controller.plan.calendar import Calendar
from controller.plan.paths import Path
from controller.plan.policy import Policy
from controller.plan.reservations import MAX_TIME_US
from topology.network import Network


@dataclass(frozen=True, slots=True)
class Market:
    """What there is to be had.

    Attributes:
        network: where.
        policy: the classes.
        calendar: what is promised already.
        lead_us: by circuit that is bought at need, how long before its use that must be.
    """

    network: Network
    policy: Policy
    calendar: Calendar
    lead_us: Mapping[str, int]


def admitted_in_time(
    request: Request, market: Market, now_us: int, held: Path = (), preferred: Path = ()
) -> Granted | Refused:
    """Return the answer of the calendar, with circuits left out that could not be bought in time.

    Args:
        request: what is asked.
        market: what there is to be had.
        now_us: Unix time.
        held: the path that a reservation has which changes; what is bought for it already is there.
        preferred: a path that is taken if it has room.
    """
    network, policy, calendar = market.network, market.policy, market.calendar
    late = {c for c, lead_us in market.lead_us.items() if request.start_us < now_us + lead_us}
    late -= set(network.circuits_along(held))
    if not late:
        return admitted(request, network, policy, calendar, preferred or held)
    narrowed = replace(request.constraints, exclude=(*request.constraints.exclude, *sorted(late)))
    answer = admitted(replace(request, constraints=narrowed), network, policy, calendar, preferred)
    if isinstance(answer, Refused) and answer.reason is Reason.NO_PATH:
        return _too_late(request, market, now_us, late)
    return answer


def _too_late(request: Request, market: Market, now_us: int, late: set[str]) -> Refused:
    lead_us = max(market.lead_us[c] for c in late)
    start_us = now_us + lead_us + ANSWERING_US
    moved = replace(request, start_us=start_us, end_us=start_us + request.end_us - request.start_us)
    answer = admitted(moved, market.network, market.policy, market.calendar)
    if isinstance(answer, Refused):
        return answer
    by = market.network.circuits_along(answer.chosen.path)
    offer = Offer(OfferKind.EARLIEST_START, request.flow_class, request.rate_bps, moved.start_us, moved.end_us, by)
    names = ", ".join(sorted(late))
    why = f"{names} is bought at need, which takes {lead_us / 1e6:g} s: ask for a start that far ahead or later"
    offers = (offer,) if moved.end_us < MAX_TIME_US else ()
    return Refused(Reason.PROVIDER_TOO_LATE, names, request.rate_bps, 0, request.start_us, offers, why)
