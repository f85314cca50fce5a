"""The queues of a switch's circuit ports under a plan. Pure."""

from controller.plan.plan import LinkPlan, Plan
from controller.plan.shares import max_min
from controller.southbound.openflow.circuit_ports import QUEUE_ID, circuit_ports
from controller.southbound.ovsdb.queues import PortQueues, Queue
from topology.network import Hop, Link, Network, Switch

QUEUE_BURST_US = 1_000  # HTB loses what its timer is late by beyond this; a port's worth of one millisecond
LEAST_QUEUE_BPS = 12_000  # Open vSwitch's linux-htb: 1500 B/s; a circuit that is not there keeps its queues at this


def port_queues(network: Network, switch: Switch, plan: Plan) -> dict[str, PortQueues]:
    """Return the queues of each circuit port of a switch under a plan.

    A queue's minimum is its class's share. It may borrow what others leave unused at the moment, so that what is queued
    when shares change drains at once; what a class may never exceed is its meter's business. Nobody has a share of a
    dead circuit; what is still sent by it leaves at its rate, and does not wait to come out of it when it returns.
    """
    return {
        link.port_name: link_queues(plan.links[Hop(switch.name, head)], kept_open_bps(link, plan))
        for head, link in circuit_ports(network, switch.name)
    }


def kept_open_bps(link: Link, plan: Plan) -> int:
    """Return the least that a circuit's port sends at: of a dead circuit its rate."""
    return link.rate_bps if link.circuit in plan.down else 0


def link_queues(link: LinkPlan, least_circuit_bps: int) -> PortQueues:
    """Return a port's queues; what the least of them lack to be legal, on a circuit cut short, the largest give."""
    classes = sorted(link.classes, key=lambda c: QUEUE_ID[c])
    least_bps = [LEAST_QUEUE_BPS] * len(classes)
    circuit_bps = max(link.circuit_bps, least_circuit_bps, sum(least_bps))
    shares_bps = max_min(circuit_bps, least_bps, [max(LEAST_QUEUE_BPS, link.classes[c].queue_bps) for c in classes])
    queues = tuple(
        Queue(
            queue_id=QUEUE_ID[c],
            min_bps=min_bps,
            max_bps=circuit_bps,
            burst_bits=circuit_bps * QUEUE_BURST_US // 1_000_000,
        )
        for c, min_bps in zip(classes, shares_bps, strict=True)
    )
    return PortQueues(circuit_bps, queues)
