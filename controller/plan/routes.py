"""The routes an announcement's bytes can go: on what its sites have reserved, and on what is free. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controller.plan.calendar import Need
from controller.plan.flows import flow_on
from controller.plan.keys import Pool, flow_id
from controller.plan.paths import default_path, way_round
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
        rtt_us: the longest round trip of them.
        pool: the reservation whose bandwidth it draws on; empty for none.
        circuits: those that any of its flows crosses.
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
    running: Iterable[Reservation],
    leased: frozenset[str],
) -> Iterator[Route]:
    """Yield the routes for bytes that are announced now.

    Args:
        network: where.
        named: the announcement's name, and its class.
        ends: who sends, and to whom.
        running: the reservations whose time it is.
        leased: circuits that are there at all times and up; on one that is bought only a reservation can be used.
    """
    for known in running:
        if known.flow_class is named[1] and _serves(network, known, ends):
            paths = [(sender, *known.path, ends.target) for sender in ends.senders]
            yield route_along(network, named, paths, known.reservation_id)
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


def _serves(network: Network, known: Reservation, ends: TransferEnds) -> bool:
    """Return whether a reservation between sites is there for these hosts."""
    sites = {network.host(sender).site for sender in ends.senders}
    if sites != {known.a_end} or network.host(ends.target).site != known.z_end:
        return False
    begins, ends_at = known.path[0], known.path[-1]  # a site may have switches that it does not lead by
    return network.graph.has_edge(ends_at, ends.target) and all(network.graph.has_edge(s, begins) for s in ends.senders)


def route_along(
    network: Network, named: tuple[str, FlowClass], paths: list[tuple[str, ...]], drawn_on: str = ""
) -> Route:
    """Return the route along a path for each sender, of the announcement that is named, on a reservation if any."""
    name, flow_class = named
    needs = [need(network, (path,), flow_class) for path in paths]
    if drawn_on:
        needs = [_local(one, path, Pool(drawn_on)) for one, path in zip(needs, paths, strict=True)]
    flows = (flow_on(network, flow_id(name, path[0]), flow_class, path) for path in paths)
    crossed = dict.fromkeys(circuit for path in paths for circuit in network.circuits_along(path))
    rtt_us = max(network.path_rtt_us(path) for path in paths)
    return Route(joint(needs), tuple(flows), rtt_us, drawn_on, tuple(crossed))


def _local(one: Need, path: tuple[str, ...], drawn_on: Pool) -> Need:
    """Return what an announcement takes that draws on a reservation: the ends' links, and of the reservation."""
    first, *_, last = hops(path)
    return Need((*((r, ppm) for r, ppm in one.shares_ppm if r in (first, last)), (drawn_on, PPM)))
