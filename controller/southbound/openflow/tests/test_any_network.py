"""A plan on all switches of any network: what is planned goes its way, and every layer holds the one above."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import drawn_network, flows_in
from controller.plan.wiring import SeenPort, port_links, with_port_numbers
from controller.southbound.openflow.circuit_ports import QUEUE_ID, meter_id
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.messages import messages
from controller.southbound.openflow.meter_numbers import MeterNumbers, SenderKey
from controller.southbound.openflow.senders import senders
from controller.southbound.openflow.state import SwitchState
from controller.southbound.openflow.tests.fake_switch import FakeSwitch
from controller.southbound.ovsdb.desired_queues import port_queues
from controller.southbound.ovsdb.queues import check_queues
from controller.southbound.ovsdb.settings import check_guarantees
from topology.network import Hop
from topology.problems import Problems
from topology.protocol import FlowClass

IP, IPV6 = 0x0800, 0x86DD
POLICY = replace(  # on a circuit of 10 Mbit/s too each class has what a queue must be given
    DEFAULT_POLICY,
    classes=DEFAULT_POLICY.classes
    | {
        FlowClass.URGENT: replace(DEFAULT_POLICY.classes[FlowClass.URGENT], guarantee_ppm=2_000),
        FlowClass.UNPLANNED: replace(DEFAULT_POLICY.classes[FlowClass.UNPLANNED], guarantee_ppm=2_000, cap_ppm=2_000),
    },
)


def shown(network):
    """A network with the numbers that its switches have given to the ports which it knows by name alone."""
    for switch in network.switches:
        links = [link for _, link in port_links(network, switch.name)]
        free = iter(range(1000, 2000))
        seen = {link.port_no or next(free): SeenPort(link.port_name, is_live=True) for link in links}
        network = with_port_numbers(network, switch.name, seen)
    return network


def packets(network, flow):
    """A packet of a flow from each address of its sender to each of its receiver: data, of either family."""
    for source in network.host(flow.host).prefixes:
        for target in network.host(flow.target).prefixes:
            if source.version == target.version:
                ends = {f"ipv{source.version}_src": str(source[0]), f"ipv{source.version}_dst": str(target[-1])}
                yield {"eth_type": IP if source.version == 4 else IPV6, "ip_dscp": flow.mark or 0, **ends}


def key_of(flow, known):
    """What the own meter of a flow is known by, among those that there are: its pair's, or its sender's."""
    of_pair = SenderKey(flow.host, flow.flow_class, flow.path[2], flow.target)
    return of_pair if of_pair in known else of_pair._replace(target="")


class PlannedSwitches:
    """All switches of a network under a plan."""

    def __init__(self, network, plan):
        self.network, self.plan = network, plan
        self.fakes, self.own_meter = {}, {}
        for switch in network.switches:
            numbers = MeterNumbers()
            for sender in senders(network, switch, plan, POLICY, numbers):
                self.own_meter[sender.key] = switch.name, sender.meter_id
            self.fakes[switch.name] = FakeSwitch()
            for message in messages(switch_state(network, switch, plan, POLICY, numbers), SwitchState()):
                self.fakes[switch.name].apply(message)

    def rate_bps(self, switch, number):
        """What a meter of a switch lets through."""
        return 1000 * self.fakes[switch].meters[number].rate_kbps

    def sent(self, source, target, kind):
        """The circuit links that a packet crosses, with the meters and the queue of each; it must arrive."""
        switch, fields = self.network.path(source, target)[1], kind
        tag, in_port, crossed = {}, self.network.link(switch, source).port_no, []
        for _ in self.network.switches:
            fate = self.fakes[switch].fate({**fields, **tag, "in_port": in_port})
            (hop,) = [hop for hop, link in port_links(self.network, switch) if link.port_no == fate.output_port]
            if hop.head == target:
                return crossed
            crossed.append((hop, fate.meter_ids, fate.queue_id))
            assert fate.vlan_vids == ((vid,) if (vid := self.network.link(*hop).vlan_vid) is not None else ())
            fields["ip_dscp"] = fields["ip_dscp"] if fate.dscp is None else fate.dscp
            back = self.network.against(*hop)
            if not self.network.is_ours(back.tail):
                assert self.network.graph.has_edge(back.tail, target)
                return crossed
            switch, in_port = back.tail, self.network.link(*back).port_no
            its_vid = self.network.link(*back).vlan_vid  # each end hands the circuit over in a VLAN of its own
            tag = {} if its_vid is None else {"vlan_vid": 0x1000 | its_vid}
        raise AssertionError(f"round and round: {crossed}")


@st.composite
def planned_networks(draw):
    """Any network, and all its switches under the plan of any flows."""
    network = shown(draw(drawn_network))
    check_guarantees(network, POLICY, problems := Problems())
    assert not problems.found
    plan = planned(2, network, POLICY, PlanInput(draw(flows_in(network))))
    return PlannedSwitches(network, plan)


@settings(deadline=None, max_examples=25)
@given(planned_networks())
def test_what_is_planned_goes_its_way_under_its_own_meter_and_its_classs_in_its_classs_queue(switches):
    circuits = {Hop(tail, head) for tail, head, _ in switches.network.circuit_links}
    for entry in switches.plan.entries:
        flow = entry.flow
        kinds = packets(switches.network, flow)
        crossed, *same = (switches.sent(flow.host, flow.target, kind) for kind in kinds)
        assert all(one == crossed for one in same), "another address of the two goes another way"
        assert [hop for hop, _, _ in crossed] == [hop for hop in flow.links if hop in circuits]
        assert {queue_id for _, _, queue_id in crossed} == {QUEUE_ID[flow.flow_class]}
        (first, meters, _), *others = crossed
        switch, own = switches.own_meter[key_of(flow, switches.own_meter)]
        assert (first.tail, meters) == (switch, (own, meter_id(switches.network, first, flow.flow_class)))
        assert {meter_ids for _, meter_ids, _ in others} <= {()}


@settings(deadline=None, max_examples=25)
@given(planned_networks())
def test_hosts_meters_queues_and_circuit_hold_each_other_on_any_networks_switches(switches):
    network, plan = switches.network, switches.plan
    sent_bps = Counter()
    for entry in plan.entries:
        sent_bps[key_of(entry.flow, switches.own_meter)] += entry.frame_bps
    assert all(bps <= switches.rate_bps(*switches.own_meter[key]) for key, bps in sent_bps.items())
    for switch in network.switches:
        by_port = port_queues(network, switch, plan)
        for queues in by_port.values():
            check_queues(queues)
        for head, link in ((hop.head, link) for hop, link in port_links(network, switch.name) if link.circuit):
            hop, port = Hop(switch.name, head), by_port[link.port_name]
            queues = {queue.queue_id: queue for queue in port.queues}
            for flow_class in FlowClass:
                hosts_bps = sum(
                    e.frame_bps for e in plan.entries if hop in e.flow.links and e.flow.flow_class is flow_class
                )
                meter_bps = switches.rate_bps(switch.name, meter_id(network, hop, flow_class))
                assert hosts_bps <= meter_bps <= queues[QUEUE_ID[flow_class]].min_bps
            assert sum(queue.min_bps for queue in port.queues) <= port.port_max_bps <= link.rate_bps
