"""Flows along their paths. Pure."""

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


def away(flow: Flow) -> Flow:
    """Return a flow as it is planned while its host is absent: it may send on by itself, after everybody else."""
    return replace(flow, floor_bps=0, is_away=True)
