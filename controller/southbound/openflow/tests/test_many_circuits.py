"""A switch with many circuits: each has meters of its own, and more than there are numbers for are refused."""

from ipaddress import IPv4Address

from controller.plan.flows import flow_on
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.southbound.openflow.circuit_ports import MOST_CIRCUITS, too_many_circuits
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.state import SwitchState
from topology.network import Host, Link, Network, Switch
from topology.protocol import FlowClass
from topology.wire import Framing


def hub(circuits):
    """A switch with so many circuits, and a host behind each that sends to the one here."""
    sites = [f"s{n}" for n in range(circuits)]
    hosts = [Host(f"h-{site}", site, IPv4Address(0x0A000002 + n), "") for n, site in enumerate(sites)]
    switches = [Switch(site, site, n + 2) for n, site in enumerate(sites)]
    nodes = (Host("archive", "hub", IPv4Address("10.0.0.1"), ""), *hosts, Switch("hub", "hub", 1), *switches)
    network = Network("hub", Framing(), nodes)
    joins = [("archive", "hub", None)]
    joins += [(site, "hub", f"c-{site}") for site in sites] + [(f"h-{site}", site, None) for site in sites]
    for a_end, z_end, circuit in joins:
        ports = len(network.graph[a_end]) + 1, len(network.graph[z_end]) + 1
        az, za = (Link(10**9, 100, 10**6, number, f"{a_end}-{z_end}-{number}", circuit) for number in ports)
        network.add_trunk(a_end, z_end, az, za)
    return network


def test_200_circuits_of_a_switch_have_a_meter_for_each_class_and_host_each():
    network = hub(200)
    flows = [
        flow_on(network, f"f/{h.name}", FlowClass.URGENT, network.path(h.name, "archive")) for h in network.hosts[1:]
    ]
    plan = planned(2, network, DEFAULT_POLICY, PlanInput(tuple(flows)))
    state = switch_state(network, network.switches[0], plan, DEFAULT_POLICY)
    assert len(messages(state, SwitchState())) > len(state.meters) == 200 * (4 + 1)
    assert len({meter.meter_id for meter in state.meters}) == len(state.meters)
    assert too_many_circuits(network) == ()


def test_more_circuits_than_have_numbers_are_told_with_the_cure():
    (said,) = too_many_circuits(hub(MOST_CIRCUITS + 1))
    assert said == "switch hub has 251 circuits; 250 at most have meters: spread them over more switches"
