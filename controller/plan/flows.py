"""Flows along their paths. Pure."""

from dataclasses import replace

from controller.plan.keys import FlowId
from controller.plan.plan import Flow
from topology.addresses import reached_from
from topology.network import Network
from topology.protocol import FlowClass


def flow_on(network: Network, name: FlowId, flow_class: FlowClass, path: tuple[str, ...]) -> Flow:
    """Return the flow of a class along a path from host to host.

    Raises:
        ValueError: the two have no family of addresses in common.
    """
    source, target = network.host(path[0]), network.host(path[-1])
    dests = reached_from(source.prefixes, target.prefixes)
    if not dests:
        raise ValueError(f"{source.name} and {target.name} have no family of addresses in common")
    own = source.interface_of
    return Flow(name, flow_class, source.name, target.name, dests[0], path, also=dests[1:], interface_of=own)


def standing_by(flow: Flow) -> Flow:
    """Return a flow as it is planned while it has nothing to send: others may use what it is promised."""
    return replace(flow, wanted_bps=flow.standby_bps, floor_bps=0)


def away(flow: Flow) -> Flow:
    """Return a flow as it is planned while its host is absent: it may send on by itself, after everybody else."""
    return replace(flow, floor_bps=0, is_away=True)
