"""IPv6 and several addresses of a host: classed and policed as IPv4 is, and neighbours find each other."""

import pytest

from controller.plan.flows import flow_on
from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.southbound.openflow.circuit_ports import QUEUE_ID
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.state import SwitchState
from controller.southbound.openflow.tests.fake_switch import FakeSwitch
from mininet_tests.testing.networks import chile_illinois
from topology.network_file import network_of
from topology.network_text import section_of
from topology.problems import Problems
from topology.protocol import FlowClass

IPV6, ICMPV6, ASKS, ANSWERS = 0x86DD, 58, 135, 136
CLUSTER = "10.77.0.0/16"
NEAR, FAR = {"base20": "2001:db8:1::20", "base21": "2001:db8:1::21"}, {"arch": "2001:db8:2::100"}
WAN_PORT = 9


def network():
    """Chile and Illinois, with IPv6 beside IPv4 at three hosts, one of which stands for a cluster as well."""
    section = section_of(chile_illinois())
    for site, known in (("la-serena", NEAR), ("champaign", FAR)):
        for name, address in known.items():
            host = section["sites"][site]["hosts"][name]
            host["addresses"] = [host.pop("address"), address, *([CLUSTER] if name == "arch" else [])]
    found = network_of(section, Problems())
    assert found is not None
    return found


NETWORK = network()


def switch(mark=None):
    """The switch in Chile under a plan for an image of base20, told apart by a mark or not."""
    flow = flow_on(NETWORK, "image", FlowClass.URGENT, NETWORK.path("base20", "arch"))
    if mark is not None:
        flow = type(flow)(*(flow.name, flow.flow_class, flow.host, flow.target, flow.dest, flow.path), mark=mark)
    plan = planned(2, NETWORK, DEFAULT_POLICY, PlanInput((flow,)))
    fake = FakeSwitch()
    for message in messages(switch_state(NETWORK, NETWORK.switches[0], plan, DEFAULT_POLICY), SwitchState()):
        fake.apply(message)
    return fake


def packet(source, target, port=1, **more):
    return {"in_port": port, "eth_type": IPV6, "ipv6_src": source, "ipv6_dst": target, "ip_proto": 6, **more}


def asks(source, target, port=1):
    """A solicitation: to the group of whoever has an address with these last 24 bits."""
    sought = {"icmpv6_type": ASKS, "icmpv6_code": 0, "ipv6_nd_target": target}
    return packet(source, "ff02::1:ff00:100", port) | {"ip_proto": ICMPV6} | sought


def answers(source, target, port=1, sought=None):
    return packet(source, target, port, icmpv6_type=ANSWERS, icmpv6_code=0, ipv6_nd_target=sought or source) | {
        "ip_proto": ICMPV6
    }


def ipv4(source, target, port=1):
    return {"in_port": port, "eth_type": 0x0800, "ipv4_src": source, "ipv4_dst": target, "ip_proto": 6}


def test_ipv6_of_planned_hosts_goes_under_the_same_meters_and_by_the_same_queue_as_their_ipv4():
    fake = switch()
    fates = [fake.fate(packet(NEAR["base20"], FAR["arch"])), fake.fate(ipv4("10.20.20.20", "10.20.20.100"))]
    assert [fate.queue_id for fate in fates] == [QUEUE_ID[FlowClass.URGENT]] * 2
    assert fates[0].meter_ids == fates[1].meter_ids
    assert [fate.dscp for fate in fates] == [DEFAULT_POLICY.classes[FlowClass.URGENT].dscp] * 2


def test_what_is_for_the_cluster_that_a_host_stands_for_is_planned_as_for_the_host():
    fake = switch()
    fates = [fake.fate(ipv4("10.20.20.20", target)) for target in ("10.77.3.4", "10.20.20.100")]
    assert fates[0].meter_ids == fates[1].meter_ids
    assert fates[0].queue_id == QUEUE_ID[FlowClass.URGENT]
    assert fake.fate(ipv4("10.20.20.20", "10.78.0.1")).output_port is None


def test_ipv6_that_is_not_planned_is_policed_as_unplanned():
    fate = switch().fate(packet(NEAR["base21"], FAR["arch"], port=2))
    assert (fate.queue_id, fate.output_port) == (QUEUE_ID[FlowClass.UNPLANNED], WAN_PORT)


def test_ipv6_from_beyond_reaches_the_host_it_is_for():
    assert switch().fate(packet(FAR["arch"], NEAR["base21"], port=WAN_PORT)).output_port == 2


@pytest.mark.parametrize("mark", [None, 40])
def test_neighbours_ask_and_answer_under_the_meter_and_in_the_queue_of_what_is_planned_between_them(mark):
    fake = switch(mark)
    planned_fate = fake.fate(packet(NEAR["base20"], FAR["arch"], ip_dscp=mark or 0))
    for sought in (asks(NEAR["base20"], FAR["arch"]), answers(NEAR["base20"], FAR["arch"])):
        fate = fake.fate(sought | {"ip_dscp": 0})
        assert fate.output_port == WAN_PORT
        assert (fate.meter_ids, fate.queue_id) == (planned_fate.meter_ids, planned_fate.queue_id)


def test_neighbours_of_one_site_and_from_beyond_find_each_other():
    fake = switch()
    assert fake.fate(asks(NEAR["base20"], NEAR["base21"])).output_port == 2
    assert fake.fate(answers(NEAR["base21"], NEAR["base20"], port=2)).output_port == 1
    assert fake.fate(asks(FAR["arch"], NEAR["base21"], port=WAN_PORT)).output_port == 2


@pytest.mark.parametrize(
    "false",
    [
        asks(NEAR["base20"], FAR["arch"], port=2),
        asks(NEAR["base20"], NEAR["base21"], port=WAN_PORT),
        answers(NEAR["base21"], NEAR["base20"], port=2, sought=FAR["arch"]),
        answers("2001:db8:9::9", FAR["arch"], port=3, sought=NEAR["base20"]),
    ],
)
def test_neighbour_discovery_in_a_known_hosts_name_ends_unless_it_comes_from_where_the_host_is(false):
    assert switch().fate(false).output_port is None


def test_in_a_network_without_ipv6_no_rule_knows_of_it():
    plain = chile_illinois()
    plan = planned(2, plain, DEFAULT_POLICY, PlanInput(()))
    rules = switch_state(plain, plain.switches[0], plan, DEFAULT_POLICY).rules
    assert IPV6 not in {dict(rule.match).get("eth_type") for rule in rules}
