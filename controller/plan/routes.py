"""The routes an announcement's bytes can go: on what its sites have reserved, and on what is free. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from controller.plan.calendar import Need
from controller.plan.flows import flow_on
from controller.plan.keys import Pool, flow_id
from controller.plan.paths import Path, default_path, way_round
from controller.plan.plan import Flow
from controller.plan.reservations import Reservation
from controller.plan.resources import joint, need
from topology.network import Network, hops
from topology.protocol import FlowClass
from topology.wire import PPM


@dataclass(frozen=True, slots=True)
class TransferEnds:
    """Who sends, each an equal part, and to whom; and by how many circuits at most, if it is one that sends."""

    senders: tuple[str, ...]
    target: str
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Route:
    """A route for an announcement's bytes.

    Attributes:
        need: what one bit/s of each sender takes.
        flows: one per sending host, along its path.
        rtt_us: the longest round trip of them, by the way that is taken now.
        pool: the reservation whose bandwidth it draws on; empty for none.
        circuits: those that any of its flows crosses, by that way.
        lanes: its parts, if it is over several circuits at once; the need is then that of the first.
    """

    need: Need
    flows: tuple[Flow, ...]
    rtt_us: int
    pool: str = ""
    circuits: tuple[str, ...] = ()
    lanes: tuple["Route", ...] = ()


def routes(
    network: Network,
    named: tuple[str, FlowClass],
    ends: TransferEnds,
    running: Iterable[tuple[Reservation, Path]],
    leased: frozenset[str],
) -> Iterator[Route]:
    """Yield the routes for bytes that are announced now.

    Args:
        network: where.
        named: the announcement's name, and its class.
        ends: who sends, and to whom.
        running: the reservations whose time it is, each with the path that it takes now.
        leased: circuits that are there at all times and up; on one that is bought only a reservation can be used.
    """
    for known, now in running:
        if known.flow_class is named[1] and all(_serves(network, known, path, ends) for path in (known.path, now)):
            first, taken = ([(sender, *path, ends.target) for sender in ends.senders] for path in (known.path, now))
            route = route_along(network, named, first, known.reservation_id)
            rtt_us = max(network.path_rtt_us(path) for path in taken)
            yield replace(route, rtt_us=rtt_us, circuits=_crossed(network, taken))
    gone = frozenset(circuit.name for circuit in network.circuits) - leased
    lanes = tuple(_lanes(network, named, ends, gone)) if ends.lanes > 1 else ()
    if len(lanes) > 1:
        flows = tuple(flow for lane in lanes for flow in lane.flows)
        crossed = tuple(circuit for lane in lanes for circuit in lane.circuits)
        yield Route(lanes[0].need, flows, max(lane.rtt_us for lane in lanes), circuits=crossed, lanes=lanes)
        return
    paths = [default_path(network, sender, ends.target, gone) for sender in ends.senders]
    if all(circuit in leased for path in paths for circuit in network.circuits_along(path)):
        yield route_along(network, named, paths)


def by_paths_left(
    network: Network, running: Iterable[Reservation], down: frozenset[str]
) -> Iterator[tuple[Reservation, Path]]:
    """Yield each reservation with the first of its paths that is left while circuits are down; not one without any."""
    for known in running:
        left = (path for path in known.paths if not down or down.isdisjoint(network.circuits_along(path)))
        if path := next(left, ()):
            yield known, path


def _lanes(network: Network, named: tuple[str, FlowClass], ends: TransferEnds, gone: frozenset[str]) -> Iterator[Route]:
    """Yield a route from each interface of the sender, the asked one first, by circuits that no other lane uses."""
    (sender,) = ends.senders
    left, used = ends.lanes, gone
    for interface in network.lane_interfaces(sender, ends.target):
        path = way_round(network, interface.name, ends.target, used)
        crossed = () if path is None else network.circuits_along(path)
        if path is not None and crossed and left:
            yield route_along(network, named, [path])
            left, used = left - 1, used.union(crossed)


def _serves(network: Network, known: Reservation, path: Path, ends: TransferEnds) -> bool:
    """Return whether a reservation between sites is there for these hosts by one of its paths."""
    sites = {network.host(sender).site for sender in ends.senders}
    if sites != {known.a_end} or network.host(ends.target).site != known.z_end:
        return False
    return all(joins(network, sender, path, ends.target) for sender in ends.senders)


def joins(network: Network, host: str, path: Path, target: str) -> bool:
    """Return whether a path between sites begins and ends where two hosts are; a site may have other switches."""
    return network.graph.has_edge(host, path[0]) and network.graph.has_edge(path[-1], target)


def route_along(
    network: Network, named: tuple[str, FlowClass], paths: list[tuple[str, ...]], drawn_on: str = ""
) -> Route:
    """Return the route along a path for each sender, of the announcement that is named, on a reservation if any."""
    name, flow_class = named
    needs = [need(network, (path,), flow_class) for path in paths]
    if drawn_on:
        needs = [_local(one, path, Pool(drawn_on)) for one, path in zip(needs, paths, strict=True)]
    flows = (flow_on(network, flow_id(name, path[0]), flow_class, path) for path in paths)
    rtt_us = max(network.path_rtt_us(path) for path in paths)
    return Route(joint(needs), tuple(flows), rtt_us, drawn_on, _crossed(network, paths))


def _crossed(network: Network, paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the circuits of some paths, each once."""
    return tuple(dict.fromkeys(circuit for path in paths for circuit in network.circuits_along(path)))


def _local(one: Need, path: tuple[str, ...], drawn_on: Pool) -> Need:
    """Return what an announcement takes that draws on a reservation: the ends' links, and of the reservation."""
    first, *_, last = hops(path)
    return Need((*((r, ppm) for r, ppm in one.shares_ppm if r in (first, last)), (drawn_on, PPM)))
