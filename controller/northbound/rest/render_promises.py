"""Promises as JSON: reservations, announcements, refusals, and what is free."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from controller.northbound.rest.shapes import (
    AvailabilityOut,
    ConnectionsOut,
    ConstraintsOut,
    OfferOut,
    RateStep,
    ReservationOut,
    VolumeOut,
    WayOut,
)
from controller.plan.admission import Offer, Refused
from controller.plan.availability import Availability, Question, goes_on_us
from controller.plan.plan import Selector
from controller.plan.reservations import Constraints, Reservation
from controller.plan.volume import ConstantRate
from topology.network import Network
from topology.units import shown_time
from topology.wire import Framing, Layer, converted_bps

Obstacles = tuple[str, ...] | None  # why a promise cannot be carried now; None if it is not its time


def reservation(
    value: Reservation, network: Network, obstacles: Obstacles, lacking: tuple[str, ...] = ()
) -> ReservationOut:
    """Return a reservation, what keeps it from being carried at this moment, and what of it no provider guarantees."""
    return {
        "id": value.reservation_id,
        "version": value.version,
        "state": value.state,
        "reason": value.reason,
        "class": value.flow_class,
        "from": value.a_end,
        "to": value.z_end,
        "rate_bps": value.rate_bps,
        "payload_bps": converted_bps(value.rate_bps, Layer.WIRE, Layer.PAYLOAD, _framing(network, value.path)),
        "start": shown_time(value.start_us),
        "end": shown_time(value.end_us),
        "path": list(value.path),
        "circuits": _circuits(network, value.path),
        "backup": list(value.backup),
        "constraints": _constraints(value.constraints),
        "connections": connections(value.selector),
        "hold_until": None if value.hold_until_us is None else shown_time(value.hold_until_us),
        "created": shown_time(value.created_us),
        "changed": shown_time(value.changed_us),
        "description": value.description,
        "owner": value.owner or None,
        "creator": value.creator or None,
        "carried": None if obstacles is None else not obstacles,
        "reasons": list(obstacles or ()),
        "not_guaranteed": list(lacking),
    }


def _framing(network: Network, path: tuple[str, ...]) -> Framing:
    """Return how segments are wrapped at most along a path, or in the whole network if the path is no more."""
    try:
        return network.framing_of(path)
    except KeyError:
        return network.framing


def _circuits(network: Network, path: tuple[str, ...]) -> list[str]:
    """Return the circuits of a path; none of one that is not in the network any more."""
    try:
        return list(network.circuits_along(path))
    except KeyError:
        return []


def _constraints(value: Constraints) -> ConstraintsOut:
    return {
        "include": list(value.include),
        "exclude": list(value.exclude),
        "max_rtt_ms": None if value.max_rtt_us is None else value.max_rtt_us / 1_000,
        "backup": value.backup,
    }


def connections(value: Selector) -> ConnectionsOut:
    """Return which connections of two hosts are meant."""
    return {"dest_port": value.dest_port, "local_port": value.local_port, "own_dscp": value.own_dscp}


def refusal(value: Refused) -> dict[str, object]:
    """Return the numbers of a refusal, and the offers; the members of :class:`Refusal` that every problem lacks."""
    capacity = bool(value.resource)
    return {
        "resource": value.resource or None,
        "asked_bps": value.asked_bps if capacity else None,
        "free_bps": max(0, value.free_bps) if capacity else None,
        "at": shown_time(value.at_us),
        "offers": [_offer(offer) for offer in value.offers],
        "quota": None if value.beyond is None else asdict(value.beyond),
    }


def _offer(value: Offer) -> OfferOut:
    return {
        "kind": value.kind,
        "class": value.flow_class,
        "rate_bps": value.rate_bps,
        "start": shown_time(value.start_us),
        "end": shown_time(value.end_us),
        "circuits": list(value.circuits),
    }


def availability(
    question: Question, size_bytes: int | None, answers: Sequence[Availability], network: Network
) -> AvailabilityOut:
    """Return what is free along each path."""
    return {
        "from": question.a_end,
        "to": question.z_end,
        "class": question.flow_class,
        "start": shown_time(question.start_us),
        "end": shown_time(question.end_us),
        "paths": [_way(question, size_bytes, one, network) for one in answers],
        "next": None if (next_us := goes_on_us(question, answers)) is None else shown_time(next_us),
    }


def _way(question: Question, size_bytes: int | None, value: Availability, network: Network) -> WayOut:
    start_us = value.earliest_start_us
    return {
        "path": list(value.path),
        "circuits": list(network.circuits_along(value.path)),
        "rtt_ms": value.rtt_us / 1_000,
        "most_bps": value.most_bps,
        "rates": rate_steps(value.rates),
        "earliest_start": None if start_us is None else shown_time(start_us),
        "volume": None if size_bytes is None else _volume(question, size_bytes, value),
    }


def _volume(question: Question, size_bytes: int, value: Availability) -> VolumeOut:
    return {
        "bytes": size_bytes,
        "wire_bits": 0 if question.volume is None else question.volume.size_bits,
        "soonest": None if value.soonest is None else [rate_step(rate) for rate in value.soonest],
        "lowest_constant": None if value.thriftiest is None else rate_step(value.thriftiest),
    }


def rate_steps(pieces: Iterable[tuple[int, int, int]]) -> list[RateStep]:
    """Return rates without gap, each from when the one before ends: so each instant is written once."""
    found: list[RateStep] = []
    shown_us, shown = 0, shown_time(0)
    for start_us, end_us, rate_bps in pieces:
        begins = shown if start_us == shown_us else shown_time(start_us)
        shown_us, shown = end_us, shown_time(end_us)
        found.append({"from": begins, "until": shown, "rate_bps": rate_bps})
    return found


def rate_step(value: ConstantRate) -> RateStep:
    """Return a rate for a time."""
    return {"from": shown_time(value.start_us), "until": shown_time(value.end_us), "rate_bps": value.rate_bps}
