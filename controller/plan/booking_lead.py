"""Admission and holds where some circuits are bought at need, and nothing can be bought at the last moment. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from controller.plan.admission import ANSWERING_US, Granted, Offer, OfferKind, Reason, Refused, Request, admitted
from controller.plan.calendar import Calendar
from controller.plan.lifecycle import ReservationState
from controller.plan.paths import ChosenPath, Path
from controller.plan.policy import Policy
from controller.plan.purchases import Terms
from controller.plan.reservations import MAX_TIME_US, Reservation
from topology import units
from topology.network import Hop, Network

POLL_US = 2_000_000  # how often each provider is looked at, and what is to be bought; OSCARS has new states every 3 s
OTHERS_FIRST_US = 20_000_000  # for the way of another circuit to be known, of two that stand in for each other


def booking_lead_us(terms: Terms) -> int:
    """Return how long before its use something must be promised so that it is bought, built and seen to be up by then.

    A promise is seen a look later, its purchase begins at a whole tick, and that it is up is seen a look later again.
    In whole seconds.
    """
    latest_us = seen_in_time(terms).lead_us + POLL_US + terms.tick_us - 1
    return -(-latest_us // 1_000_000) * 1_000_000


def seen_in_time(terms: Terms) -> Terms:
    """Return the terms by which is bought: begun a look earlier, for what is up counts from when that is seen."""
    return replace(terms, lead_us=terms.lead_us + POLL_US)


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
    request: Request, market: Market, now_us: int, known: Reservation | None = None, preferred: Path = ()
) -> Granted | Refused:
    """Return the answer of the calendar, with circuits left out that could not be bought in time.

    Args:
        request: what is asked.
        market: what there is to be had.
        now_us: Unix time.
        known: what is to change, as it is: once it is committed, what it needs is bought from its start on.
        preferred: a path that is taken if it has room; else its own is, so that traffic does not move.
    """
    network, policy, calendar = market.network, market.policy, market.calendar
    # Not "<": what was held at that very instant would have lapsed before anybody could commit it.
    leads_us = _leads_us(market.lead_us, is_backed=request.constraints.backup)
    late = {c for c, lead_us in leads_us.items() if lead_us and request.start_us <= now_us + lead_us}
    if known is not None and known.state is not ReservationState.HELD and request.start_us >= known.start_us:
        late -= _circuits(network, known.paths)
    kept = ChosenPath(known.path, known.backup) if known is not None else None
    if preferred:
        kept = ChosenPath(preferred, ())
    if not late:
        return admitted(request, network, policy, calendar, kept)
    exclude = (*request.constraints.exclude, *sorted(late))
    narrowed = replace(request, constraints=replace(request.constraints, exclude=exclude))
    answer = admitted(narrowed, network, policy, calendar, kept)
    if isinstance(answer, Granted):
        return answer
    too_late = _too_late(request, market, now_us, {c: leads_us[c] for c in late})
    return too_late if answer.reason is Reason.NO_PATH else _with_sooner_start(answer, too_late)


def without_what_is_too_late(free: Calendar, network: Network, lead_us: Mapping[str, int], now_us: int) -> Calendar:
    """Return what is free to who asks soon: of a circuit that is bought at need nothing before it can be bought.

    What begins earlier would be refused, however late it ends. As with an offer, who asks may take ``ANSWERING_US``.

    Args:
        free: what is free of some resources, changed here.
        network: where.
        lead_us: by circuit that is bought at need, how long before its use that must be.
        now_us: Unix time.
    """
    for tail, head, link in network.circuit_links:
        hop, own_us = Hop(tail, head), lead_us.get(link.circuit or "", 0)
        if own_us and free.has_resource(hop):
            free.close(hop, now_us, _first_start_us(own_us, now_us))
    return free


def lapsing_in_time(known: Reservation, network: Network, lead_us: Mapping[str, int]) -> Reservation:
    """Return a hold that lapses while what it needs can still be bought, for that begins with the commit.

    Its ``reason`` says so if that is sooner than it was to lapse. What is no hold stays as it is.
    """
    along = _circuits(network, known.paths) & lead_us.keys()
    leads_us = _leads_us(lead_us, is_backed=bool(known.backup))
    longest_us, name = max(((leads_us[circuit], circuit) for circuit in along), default=(0, ""))
    latest_us = known.start_us - longest_us
    if known.hold_until_us is None:
        return known
    if not longest_us or known.hold_until_us <= latest_us:
        return replace(known, reason="")
    by = f"commit it before {units.shown_time(latest_us)}"
    why = f"{name} is bought at need, which takes {longest_us / 1e6:g} s: {by}"
    return replace(known, hold_until_us=latest_us, reason=why)


def _first_start_us(lead_us: int, now_us: int) -> int:
    """Return the first start for which can still be bought, by who takes ``ANSWERING_US`` to ask."""
    return now_us + lead_us + ANSWERING_US


def _leads_us(lead_us: Mapping[str, int], *, is_backed: bool) -> dict[str, int]:
    """Return by circuit how long before its use it must be promised, with the time to wait for another one's way."""
    more_us = OTHERS_FIRST_US if is_backed and len(lead_us) > 1 else 0
    return {circuit: own_us + more_us for circuit, own_us in lead_us.items()}


def _circuits(network: Network, paths: tuple[Path, ...]) -> set[str]:
    return set(chain.from_iterable(network.circuits_along(path) for path in paths))


def _with_sooner_start(answer: Refused, too_late: Refused) -> Refused:
    """Return a refusal with the earliest start of both: on what is there, or on what can be bought by then."""
    starts = [one for one in (*answer.offers, *too_late.offers) if one.kind is OfferKind.EARLIEST_START]
    others = (one for one in answer.offers if one.kind is not OfferKind.EARLIEST_START)
    return replace(answer, offers=(*sorted(starts, key=lambda one: one.start_us)[:1], *others))


def _too_late(request: Request, market: Market, now_us: int, late: Mapping[str, int]) -> Refused:
    """Return the refusal that offers the first start by which what leads there can be bought; or why none does."""
    for lead_us in sorted({*late.values()}):
        start_us = _first_start_us(lead_us, now_us)
        exclude = (*request.constraints.exclude, *sorted(c for c, us in late.items() if start_us <= now_us + us))
        moved = replace(
            request,
            start_us=start_us,
            end_us=start_us + request.end_us - request.start_us,
            constraints=replace(request.constraints, exclude=exclude),
        )
        answer = admitted(moved, market.network, market.policy, market.calendar)
        if isinstance(answer, Granted):
            break
    if isinstance(answer, Refused):
        return answer
    by = market.network.circuits_along(answer.chosen.path)
    offer = Offer(OfferKind.EARLIEST_START, request.flow_class, request.rate_bps, moved.start_us, moved.end_us, by)
    crossed = _circuits(market.network, answer.chosen.paths)
    names = ", ".join(sorted(crossed & late.keys()))
    why = f"{names} is bought at need, which takes {lead_us / 1e6:g} s: ask for a start that far ahead or later"
    offers = (offer,) if moved.end_us < MAX_TIME_US else ()
    return Refused(Reason.PROVIDER_TOO_LATE, names, request.rate_bps, 0, request.start_us, offers, why)
