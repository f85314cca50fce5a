"""Flows along their paths, and several wishes of one pair of hosts as one flow. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from ipaddress import IPv4Network

from controller.plan.keys import FlowId
from controller.plan.plan import Flow
from topology.network import Network
from topology.protocol import FlowClass


def flow_on(network: Network, name: FlowId, flow_class: FlowClass, path: tuple[str, ...]) -> Flow:
    """Return the flow of a class along a path from host to host."""
    target = network.host(path[-1])
    return Flow(name, flow_class, path[0], target.name, IPv4Network(target.ip), path)


def standing_by(flow: Flow) -> Flow:
    """Return a flow as it is planned while it has nothing to send: others may use what it is promised."""
    return replace(flow, wanted_bps=flow.standby_bps, floor_bps=0)


def merged(flows: Iterable[Flow]) -> tuple[Flow, ...]:
    """Return one flow for each pair of hosts: a switch classes by the pair, so there cannot be two.

    The first wins; a later one of the same class adds what it is promised, and what it wants.
    """
    by_pair: dict[tuple[str, str], Flow] = {}
    for flow in flows:
        known = by_pair.get((flow.host, flow.target))
        if known is None:
            by_pair[flow.host, flow.target] = flow
        elif known.flow_class is flow.flow_class:
            wanted_bps = (
                None if known.wanted_bps is None or flow.wanted_bps is None else known.wanted_bps + flow.wanted_bps
            )
            by_pair[flow.host, flow.target] = replace(
                known, floor_bps=known.floor_bps + flow.floor_bps, wanted_bps=wanted_bps
            )
    return tuple(by_pair.values())
