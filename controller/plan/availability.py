"""What is free between two ends, along each path: over time, at once, and for so many bytes. Pure."""

from dataclasses import dataclass

from controller.plan.admission import node_of
from controller.plan.calendar import Calendar
from controller.plan.keys import Resource
from controller.plan.paths import Path, candidates
from controller.plan.reservations import MAX_TIME_US, NO_CONSTRAINTS, Constraints
from controller.plan.resources import need
from controller.plan.volume import ConstantRate, Volume, earliest_finish, lowest_constant_rate
from topology.network import Network
from topology.protocol import FlowClass


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about the time ``start_us <= t < end_us``.

    Attributes:
        a_end: host or site that sends.
        z_end: host or site that receives.
        flow_class: whose share is meant.
        start_us: Unix time.
        end_us: Unix time.
        rate_bps: with ``duration_us``: when does this rate fit first? None: not asked.
        duration_us: for how long.
        volume: so many bits, at which rates; None: not asked.
        constraints: what the paths must satisfy.
    """

    a_end: str
    z_end: str
    flow_class: FlowClass
    start_us: int
    end_us: int
    rate_bps: int | None = None
    duration_us: int | None = None
    volume: Volume | None = None
    constraints: Constraints = NO_CONSTRAINTS


@dataclass(frozen=True, slots=True)
class Availability:
    """The answer along one path.

    Attributes:
        path: its nodes.
        rtt_us: round trip without queueing.
        most_bps: the highest rate that fits over the whole time.
        rates: (from, until, highest rate that fits in between), without gap.
        earliest_start_us: when the rate fits first for the duration, also after ``end_us``; None if never or not asked.
        soonest: the rates that move the volume soonest; None if it does not fit or was not asked.
        thriftiest: the lowest constant rate that moves it in time; likewise.
    """

    path: tuple[str, ...]
    rtt_us: int
    most_bps: int
    rates: tuple[tuple[int, int, int], ...]
    earliest_start_us: int | None
    soonest: tuple[ConstantRate, ...] | None
    thriftiest: ConstantRate | None


def asked_of(question: Question, network: Network) -> frozenset[Resource]:
    """Return the resources that an answer looks at.

    Raises:
        UnknownNode: an end is neither a host nor a site.
    """
    needs = (need(network, (path,), question.flow_class) for path in _paths(question, network))
    return frozenset(resource for one in needs for resource, _ in one.shares_ppm)


def availability(question: Question, network: Network, calendar: Calendar) -> tuple[Availability, ...]:
    """Return what is free along each candidate path, the nearest path first.

    Raises:
        UnknownNode: an end is neither a host nor a site.
    """
    return tuple(_along(path, question, network, calendar) for path in _paths(question, network))


def _paths(question: Question, network: Network) -> tuple[Path, ...]:
    ends = node_of(network, question.a_end), node_of(network, question.z_end)
    return candidates(network, *ends, question.constraints)


def _along(path: tuple[str, ...], question: Question, network: Network, calendar: Calendar) -> Availability:
    taken = need(network, (path,), question.flow_class)
    rates = tuple(calendar.rates(taken, question.start_us, question.end_us))
    start_us: int | None = None
    if question.rate_bps and question.duration_us:
        start_us = calendar.earliest_start(
            taken, question.rate_bps, question.duration_us, question.start_us, MAX_TIME_US - question.duration_us
        )
    return Availability(
        path=path,
        rtt_us=network.path_rtt_us(path),
        most_bps=min(rate_bps for _, _, rate_bps in rates),
        rates=rates,
        earliest_start_us=start_us,
        soonest=None if question.volume is None else earliest_finish(rates, question.volume),
        thriftiest=None if question.volume is None else lowest_constant_rate(rates, question.volume),
    )
