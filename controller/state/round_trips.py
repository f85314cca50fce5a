"""What a host sees of circuits whose delay is not known: by the round trips of entries that cross one of them. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from controller.plan.delays import CircuitTime, DelayBound
from controller.plan.plan import Entry, Plan
from topology.network import Hop, Network, hops
from topology.telemetry import EntryTelemetry

STEADY = 2  # the least round trip is of the last one: after so many tellings it is of the way that is granted


@dataclass(frozen=True, slots=True)
class Moving:
    """An entry that crosses a circuit whose delay is not known, and delivers.

    Attributes:
        path: by which way.
        delivered_bytes: what, so far.
        tellings: how many in a row have had more than the one before, by the same way.
    """

    path: tuple[str, ...]
    delivered_bytes: int
    tellings: int = 0


def moving(
    bounds: Mapping[str, DelayBound],
    network: Network,
    before: Mapping[str, Moving],
    granted: Iterable[Entry],
    told: Iterable[EntryTelemetry],
) -> dict[str, Moving]:
    """Return, by name, the entries of a host that cross one circuit whose delay is not known.

    Args:
        bounds: of those circuits.
        network: where.
        before: what this has returned after the telling before.
        granted: what the host was granted last.
        told: what it tells of it.
    """
    paths: dict[str, tuple[str, ...]] = {entry.flow.name: entry.flow.path for entry in granted}
    found = {}
    for seen in told:
        path, known = paths.get(seen.name), before.get(seen.name)
        if path is None or len(_unknown(bounds, network, path)) != 1:
            continue
        goes_on = known is not None and known.path == path and known.delivered_bytes < seen.delivered_bytes
        tellings = known.tellings + 1 if known is not None and goes_on and not seen.fallback else 0
        found[seen.name] = Moving(path, seen.delivered_bytes, tellings)
    return found


def circuit_times(
    bounds: Mapping[str, DelayBound],
    network: Network,
    plan: Plan,
    moves: Mapping[str, Moving],
    told: Iterable[EntryTelemetry],
) -> Iterator[CircuitTime]:
    """Yield what a host has seen of circuits, where the answers come back by the circuit that the data went by.

    Args:
        bounds: of those that are sought.
        network: where.
        plan: which ways answers go.
        moves: its entries, as :func:`moving` returns them.
        told: what it tells of them now.
    """
    carriers = plan.workings.carriers if plan.workings is not None else {}
    for seen in told:
        known = moves.get(seen.name)
        if known is None or known.tellings < STEADY or not seen.least_rtt_us:
            continue
        path = known.path
        answers = carriers.get((path[0], path[-1]))
        if answers is None or answers.path != path[::-1]:
            continue
        (hop,) = _unknown(bounds, network, path)
        there, back = network.delay_us(*hop), network.delay_us(*network.against(*hop))
        others_us = network.path_rtt_us(path) - there - back
        circuit = network.link(*hop).circuit or ""
        yield CircuitTime(circuit, hop.tail, path[0], -(-(seen.least_rtt_us - others_us) // 2))


def _unknown(bounds: Mapping[str, DelayBound], network: Network, path: tuple[str, ...]) -> list[Hop]:
    """Return the hops of a path by which it enters circuits whose delay is not known."""
    return [hop for hop in hops(path) if network.link(*hop).circuit in bounds]
