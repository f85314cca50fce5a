"""Why an announcement is not promised: what lacks where, and what would be promised instead. Pure."""

from dataclasses import dataclass, replace

from controller.plan.admission import Offer, OfferKind, Reason, Refused
from controller.plan.announcements import (
    SEARCHES_US,
    TAIL_RTTS,
    Announcement,
    Wish,
    opening_us,
    part_bits,
    promises,
)
from controller.plan.calendar import Booking, Calendar
from controller.plan.paths import circuits_of_no_way
from controller.plan.reservations import LEAST_BPS
from controller.plan.routes import Route
from topology.network import Network
from topology.protocol import FlowClass

ASKING_AGAIN_US = 2_000_000  # an offer is granted to who takes this long to ask for it


@dataclass(frozen=True, slots=True)
class Instead:
    """What would be promised instead of what is refused.

    Attributes:
        soonest: without a deadline, to who asks ``ASKING_AGAIN_US`` later; None if nothing.
        circuits: those that it would cross.
        below: a class in which it would be as it was asked, also to who asks that much later; None if there is none.
    """

    soonest: Announcement | None
    circuits: tuple[str, ...]
    below: FlowClass | None


def refused(wish: Wish, routes: tuple[Route, ...], calendar: Calendar, now_us: int, instead: Instead) -> Refused:
    """Return the refusal of a wish: what lacks where, and what would be granted.

    Args:
        wish: what is asked.
        routes: its routes; there is at least one.
        calendar: what is promised already.
        now_us: Unix time.
        instead: what would be granted.
    """
    asked, below = routes, instead.below
    routes = tuple(one.lanes[0] if one.lanes else one for one in routes)
    route, senders = routes[0], len(routes[0].flows)
    deadline_us = SEARCHES_US[-1] if wish.deadline_us is None else wish.deadline_us
    before_us = opening_us(wish, route)
    overhead_us = before_us + TAIL_RTTS * route.rtt_us
    begin_us, sending_us = now_us + before_us, deadline_us - overhead_us
    offers = tuple[Offer, ...]()
    if instead.soonest is not None:
        offers = (_later(wish, instead.soonest, instead.circuits, now_us),)
    if wish.store is not None and promises(replace(wish, store=None), asked, calendar, now_us):
        room_bits = 0 if wish.is_stored_by else wish.store.room_bits
        asked_bits = max(0, part_bits(wish, senders) * senders - room_bits)
        asked_bps = -(-asked_bits * 1_000_000 // deadline_us)
        free_bps = min(asked_bps, calendar.most_bps(wish.store.need, now_us, now_us + deadline_us))
        return Refused(Reason.DEADLINE_UNREACHABLE, str(wish.store.place), asked_bps, free_bps, now_us, offers)
    if sending_us <= 0:  # whatever the rate
        why = f"due in {deadline_us / 1e6:g} s, but handshake and confirmation take {overhead_us / 1e6:g} s alone"
        return Refused(Reason.DEADLINE_UNREACHABLE, "", 0, 0, now_us, offers, why)
    asked_bps = max(LEAST_BPS, -(-part_bits(wish, senders) * 1_000_000 // sending_us))
    lasts_us = sending_us + ASKING_AGAIN_US
    sends_us = calendar.earliest_start(route.need, asked_bps, lasts_us, begin_us, now_us + SEARCHES_US[-1])
    if sends_us is not None:
        start_us, rate_bps = sends_us - before_us, asked_bps * senders
        end_us = start_us + deadline_us
        offers += (Offer(OfferKind.EARLIEST_START, wish.flow_class, rate_bps, start_us, end_us, route.circuits),)
    free = [calendar.most_bps(one.need, begin_us, begin_us + sending_us) for one in routes]
    if (most_bps := max(free)) >= LEAST_BPS:
        by, end_us = routes[free.index(most_bps)].circuits, now_us + deadline_us
        offers += (Offer(OfferKind.HIGHEST_RATE, wish.flow_class, most_bps * senders, now_us, end_us, by),)
    if below is not None:  # by the way that depends on no reservation of a class
        by, end_us = routes[-1].circuits, now_us + deadline_us
        offers += (Offer(OfferKind.LOWER_CLASS, below, asked_bps * senders, now_us, end_us, by),)
    # The rate lacks somewhere, or it would have been promised.
    lacks = calendar.shortage(Booking(route.need, asked_bps, begin_us, begin_us + sending_us))
    if lacks is None:
        return Refused(Reason.DEADLINE_UNREACHABLE, "", asked_bps, 0, now_us, offers, "too slow to be promised")
    return Refused(
        Reason.DEADLINE_UNREACHABLE, str(lacks.resource), lacks.asked_bps, lacks.free_bps, lacks.at_us, offers
    )


def no_way(
    network: Network, flow_class: FlowClass, ends: tuple[str, str], down: frozenset[str], now_us: int
) -> Refused:
    """Return the refusal of what no way is left for: every circuit between its ends is down, or has to be bought."""
    source, target = ends
    why = f"no reservation of {flow_class} bandwidth from {source} to {target} is active: reserve some"
    if dead := circuits_of_no_way(network, source, target, down):
        why = f"nothing goes by {', '.join(dead)} now, and no other way leads from {source} to {target}"
    return Refused(Reason.CAPACITY_UNAVAILABLE, "", 0, 0, now_us, (), why)


def _later(wish: Wish, soonest: Announcement, by: tuple[str, ...], now_us: int) -> Offer:
    """Return the offer of the earliest finish."""
    rate_bps = max(part.rate_bps for part in soonest.rates) * len(soonest.flows)
    end_us = soonest.stored_us or 0 if wish.is_stored_by else soonest.promised_us
    return Offer(OfferKind.LATER_DEADLINE, wish.flow_class, rate_bps, now_us, end_us, by)
