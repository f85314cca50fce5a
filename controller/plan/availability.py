"""What is free between two ends, along each path: over time, at once, and for so many bytes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from controller.plan.admission import node_of
from controller.plan.calendar import Calendar
from controller.plan.keys import Resource
from controller.plan.paths import Path, candidates
from controller.plan.reservations import MAX_TIME_US, NO_CONSTRAINTS, Constraints
from controller.plan.resources import need
from controller.plan.volume import ConstantRate, Volume, earliest_finish, lowest_constant_rate
from topology.network import Network
from topology.protocol import FlowClass

MOST_PIECES = 10_000
"""What one answer has at most, all paths together: what is worked out, and sent, for one who asks."""


class TooManyRates(Exception):
    """A volume is moved soonest at more rates, one after the other, than an answer may have."""

    def __init__(self, rates: int) -> None:
        super().__init__(
            f"they are moved at {rates:,} rates one after the other, more than {MOST_PIECES:,}: ask for fewer"
        )
        self.rates = rates


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
        most_pieces: how many pieces of time an answer has at most, all paths together; one of each in any case.
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
    most_pieces: int = MOST_PIECES


@dataclass(frozen=True, slots=True)
class Availability:
    """The answer along one path.

    Attributes:
        path: its nodes.
        rtt_us: round trip without queueing.
        most_bps: the highest rate that fits over the whole time.
        rates: (from, until, highest rate that fits in between), without gap; all paths until the same instant.
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


def resources_of(question: Question, network: Network) -> frozenset[Resource]:
    """Return the resources that an answer looks at.

    Raises:
        UnknownNode: an end is neither a host nor a site.
    """
    needs = (need(network, (path,), question.flow_class) for path in _paths(question, network))
    return frozenset(resource for one in needs for resource, _ in one.shares_ppm)


def availability(question: Question, network: Network, calendar: Calendar) -> tuple[Availability, ...]:
    """Return what is free along each candidate path, the nearest path first.

    ``rates`` end before the window does where there are more pieces than an answer may have: who asks again from there
    is told the rest. All else is about the whole window.

    Raises:
        UnknownNode: an end is neither a host nor a site.
        TooManyRates: the volume takes more rates than an answer may have.
    """
    paths = _paths(question, network)
    most = max(1, question.most_pieces // max(1, len(paths)))
    return _until_the_same([_along(path, question, network, calendar, most) for path in paths])


def goes_on_us(question: Question, answers: Sequence[Availability]) -> int | None:
    """Return from when on there are more pieces than an answer has; None if it has them all."""
    until_us = min((one.rates[-1][1] for one in answers), default=question.end_us)
    return None if until_us >= question.end_us else until_us


def _until_the_same(answers: Sequence[Availability]) -> tuple[Availability, ...]:
    """Return answers with the rates of all until the instant at which those of the first of them end."""
    ends_us = {one.rates[-1][1] for one in answers}
    if len(ends_us) < 2:
        return tuple(answers)
    until_us = min(ends_us)
    cut = (tuple((f, min(u, until_us), bps) for f, u, bps in one.rates if f < until_us) for one in answers)
    return tuple(replace(one, rates=rates) for one, rates in zip(answers, cut, strict=True))


def _paths(question: Question, network: Network) -> tuple[Path, ...]:
    ends = node_of(network, question.a_end), node_of(network, question.z_end)
    return candidates(network, *ends, question.constraints)


def _along(
    path: tuple[str, ...], question: Question, network: Network, calendar: Calendar, most_pieces: int
) -> Availability:
    taken, asked_us = need(network, (path,), question.flow_class), (question.start_us, question.end_us)
    start_us: int | None = None
    if question.rate_bps and question.duration_us:
        start_us = calendar.earliest_start(
            taken, question.rate_bps, question.duration_us, question.start_us, MAX_TIME_US - question.duration_us
        )
    volume = question.volume
    soonest = None if volume is None else earliest_finish(calendar.rates(taken, *asked_us), volume)
    if soonest is not None and len(soonest) > MOST_PIECES:
        raise TooManyRates(len(soonest))
    return Availability(
        path=path,
        rtt_us=network.path_rtt_us(path),
        most_bps=calendar.most_bps(taken, *asked_us),
        rates=tuple(islice(calendar.rates(taken, *asked_us), most_pieces)),
        earliest_start_us=start_us,
        soonest=soonest,
        thriftiest=None if volume is None else lowest_constant_rate(calendar.rates(taken, *asked_us), volume),
    )
