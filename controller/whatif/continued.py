"""Promises that a scenario goes on from, as what is under way in it. Pure."""

from collections.abc import Iterator, Mapping

from controller.plan.announcements import Announcement
from controller.plan.keys import FlowId, flow_id
from controller.plan.lifecycle import ENDED, ReservationState
from controller.plan.reservations import Reservation
from controller.whatif.begun import Begun
from controller.whatif.movers import Mover
from controller.whatif.sendings import US, Sending
from controller.whatif.supposed import WorkItem
from controller.whatif.underway import Underway
from topology.network import Network

ANNOUNCED, RESERVED = "announcement", "reservation"  # their rows in what comes out


def continued(begun: Begun, left_bytes: Mapping[FlowId, int], network: Network, now_us: int) -> Iterator[Underway]:
    """Yield what a scenario goes on from; a hold is no promise, and what has arrived is none any more.

    Args:
        begun: what there is.
        left_bytes: by flow, what is still to be delivered.
        network: where.
        now_us: when it goes on, Unix time.
    """
    for number, known in enumerate(begun.announcements):
        if known.finished_us is None:
            going = _announced(known, number, {**left_bytes, **_uncounted_bytes(known, network, now_us)})
            if going.sendings:
                yield going
    for number, reserved in enumerate(begun.reservations):
        if reserved.state not in ENDED and reserved.state is not ReservationState.HELD:
            yield _reserved(reserved, number, network)


def _uncounted_bytes(known: Announcement, network: Network, now_us: int) -> dict[FlowId, int]:
    """Return what hosts without an agent, where nobody counts, have yet to deliver if all went as it was promised."""
    rest = sum(max(0, part.end_us - max(now_us, part.start_us)) * part.rate_bps for part in known.rates)
    whole = sum((part.end_us - part.start_us) * part.rate_bps for part in known.rates)
    return {
        flow.name: -(-size_bytes * rest // whole)
        for flow, size_bytes in zip(known.flows, known.sizes_bytes, strict=True)
        if whole and not network.host(flow.machine).has_agent
    }


def _announced(known: Announcement, number: int, left_bytes: Mapping[FlowId, int]) -> Underway:
    first, name = known.flows[0], known.announcement_id
    senders = tuple(flow.host for flow in known.flows)
    item = WorkItem(ANNOUNCED, first.flow_class, senders, first.target, known.size_bytes, known.announced_us)
    sendings = tuple(
        Sending(
            flow.name, flow.machine, flow.target, left_bytes[flow.name] * 8 * US, Mover(), owner=name, path=flow.path
        )
        for flow in known.flows
        if left_bytes.get(flow.name)
    )
    return Underway(item, number, name, known.announced_us, known.promised_us, sendings, called=name)


def _reserved(known: Reservation, number: int, network: Network) -> Underway:
    """Return a reservation; between hosts its sender sends all that it has, between sites others draw on it."""
    name, hosts = known.reservation_id, network.host_names
    lasts_us = known.end_us - known.start_us
    item = WorkItem(
        RESERVED,
        known.flow_class,
        (known.a_end,),
        known.z_end,
        0,
        known.start_us,
        rate_bps=known.rate_bps,
        for_us=lasts_us,
    )
    sendings: tuple[Sending, ...] = ()
    if {known.a_end, known.z_end} <= hosts:
        flow = flow_id(name, known.a_end)
        sendings = (Sending(flow, known.a_end, known.z_end, None, Mover(), path=known.path),)
    called = f"{RESERVED} {name}"
    return Underway(
        item, number, called, known.start_us, known.end_us, sendings, reservation_id=name, called=name, is_watched=True
    )
