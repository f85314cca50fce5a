"""The ways an announcement's bytes can go: on what its sites have reserved, and on what is free. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controller.plan.calendar import Need
from controller.plan.flows import flow_on
from controller.plan.keys import Pool
from controller.plan.paths import circuits, default_path
from controller.plan.plan import Flow
from controller.plan.policy import PPM
from controller.plan.reservations import Reservation
from controller.plan.resources import joint, need
from topology.network import Network, hops
from topology.protocol import FlowClass


@dataclass(frozen=True, slots=True)
class Hosts:
    """Who sends, each an equal part, and to whom."""

    senders: tuple[str, ...]
    target: str


@dataclass(frozen=True, slots=True)
class Way:
    """A way for an announcement's bytes.

    Attributes:
        need: what one bit/s of each sender takes.
        flows: one per sending host, along its path.
        rtt_us: the longest round trip of them.
        pool: the reservation whose bandwidth it draws on; empty for none.
    """

    need: Need
    flows: tuple[Flow, ...]
    rtt_us: int
    pool: str = ""


def ways(
    network: Network, named: tuple[str, FlowClass], hosts: Hosts, running: Iterable[Reservation], leased: frozenset[str]
) -> Iterator[Way]:
    """Yield the ways for bytes that are announced now.

    Args:
        network: where.
        named: the announcement's name, and its class.
        hosts: the ends.
        running: the reservations whose time it is.
        leased: circuits that are there at all times and up; on one that is bought only a reservation can be used.
    """
    for known in running:
        if known.flow_class is named[1] and _serves(network, known, hosts):
            paths = [(sender, *known.path, hosts.target) for sender in hosts.senders]
            yield _way(network, named, paths, known.reservation_id)
    gone = frozenset(circuit.name for circuit in network.circuits) - leased
    paths = [default_path(network, sender, hosts.target, gone) for sender in hosts.senders]
    if all(circuit in leased for path in paths for circuit in circuits(network, path)):
        yield _way(network, named, paths)


def _serves(network: Network, known: Reservation, hosts: Hosts) -> bool:
    """Return whether a reservation between sites is there for these hosts."""
    sites = {network.host(sender).site for sender in hosts.senders}
    return sites == {known.a_end} and network.host(hosts.target).site == known.z_end


def _way(network: Network, named: tuple[str, FlowClass], paths: list[tuple[str, ...]], drawn_on: str = "") -> Way:
    name, flow_class = named
    needs = [need(network, (path,), flow_class) for path in paths]
    if drawn_on:
        needs = [_local(one, path, Pool(drawn_on)) for one, path in zip(needs, paths, strict=True)]
    flows = (flow_on(network, f"{name}/{path[0]}", flow_class, path) for path in paths)
    return Way(joint(needs), tuple(flows), max(network.path_rtt_us(path) for path in paths), drawn_on)


def _local(one: Need, path: tuple[str, ...], drawn_on: Pool) -> Need:
    """Return what an announcement takes that draws on a reservation: the ends' links, and of the reservation."""
    first, *_, last = hops(path)
    return Need((*((r, ppm) for r, ppm in one.shares_ppm if r in (first, last)), (drawn_on, PPM)))
