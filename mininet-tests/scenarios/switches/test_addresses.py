"""The rules of a dual-stack network with a far end, on a real Open vSwitch: what is read back is what was desired."""

from pathlib import Path

from controller.plan.flows import flow_on
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.wiring import SeenPort, port_links, with_port_numbers
from controller.southbound.openflow.desired import switch_state
from mininet_tests.site.userspace_switch import DPID, NEEDS_OVS, connected_switch
from mininet_tests.testing.networks import FILES, loaded
from topology.protocol import FlowClass

pytestmark = NEEDS_OVS


def test_rules_of_addresses_and_prefixes_of_both_families_are_read_back_as_they_were_desired(tmp_path: Path):
    network = loaded(FILES["three-sites"])
    links = [link for _, link in port_links(network, "dl1")]
    seen = {n: SeenPort(link.port_name, is_live=True) for n, link in enumerate(links, start=1)}
    network = with_port_numbers(network, "dl1", seen)
    ends = (
        ("dl-a", "pt-a", FlowClass.URGENT),
        ("dl-a", "cern", FlowClass.URGENT),
        ("dl-b", "cern", FlowClass.BACKGROUND),
    )
    flows = tuple(flow_on(network, f"{a}-{z}", of_class, network.path(a, z)) for a, z, of_class in ends)
    plan = planned(2, network, DEFAULT_POLICY, PlanInput(flows))
    desired = switch_state(network, network.switches[0], plan, DEFAULT_POLICY)
    matched = {name for rule in desired.rules for name, _ in rule.match}
    assert {"ipv6_src", "ipv6_dst", "ipv6_nd_target", "icmpv6_type", "arp_spa", "ipv4_dst"} <= matched
    with connected_switch(tmp_path) as switch:
        switch.sessions.apply(DPID, desired, timeout_s=5)
        assert switch.sessions.installed(DPID) == desired
