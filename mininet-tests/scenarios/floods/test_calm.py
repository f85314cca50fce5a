"""No plan that comes or goes harms who is under way: Open vSwitch's cached flows, before and after an announcement."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from controller.plan.flows import flow_on
from controller.plan.plan import Plan, PlanInput, Selector
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, IMAGE, RAW_IMAGES, flow
from controller.plan.tests.ring import ways
from controller.southbound.openflow.desired import lowered, switch_state
from controller.southbound.openflow.meter_numbers import MeterNumbers
from mininet_tests.scenarios.floods.frames import IPV4, FloodTarget, ethernet, ip
from mininet_tests.site.userspace_switch import DPID, NAMESPACE, NEEDS_OVS, UserspaceSwitch, connected_switch
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import asc_ring, chile_illinois
from topology.network import Network, Switch
from topology.protocol import FlowClass

pytestmark = NEEDS_OVS

CHILE_ILLINOIS, RING = chile_illinois(), asc_ring()
MARK = 0b000111
BESIDE = replace(flow(FlowClass.BACKGROUND, "base20"), name="beside", selector=Selector(dest_port=873), mark=MARK)
STRANGER = "10.20.20.66"
FLOWS = re.compile(r"(recirc_id.*?), packets:(\d+),.*actions:(\S+)")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[UserspaceSwitch]:
    """A connected switch."""
    with connected_switch(tmp_path) as switch:
        yield switch


class Edge:
    """A switch of a network under one plan after the other, and the packets that are sent through it."""

    def __init__(self, rig: UserspaceSwitch, network: Network, switch: Switch) -> None:
        self.rig, self.network, self.switch = rig, network, switch
        self.numbers = MeterNumbers()
        # On a busy machine ten seconds pass between two packets: what is not used for so long is dropped otherwise.
        rig.ovs.vsctl("set", "Open_vSwitch", ".", "other_config:max-idle=600000")
        ports = {link.port_no for tail, _, link in network.links() if tail == switch.name} | {20}
        for number in ports:
            _inside("ip", "link", "add", f"h{number}", "type", "veth", "peer", "name", f"p{number}")
            for end in "hp":
                _inside("ip", "link", "set", f"{end}{number}", "up")
            port = ["add-port", "s1", f"p{number}", "--", "set", "interface", f"p{number}"]
            rig.ovs.vsctl(*port, f"ofport_request={number}")

    def hold(self, plan: Plan) -> None:
        """Bring the switch to a plan, as a transition does: first no meter higher, then as they are wanted."""
        state = switch_state(self.network, self.switch, plan, DEFAULT_POLICY, self.numbers)
        self.rig.sessions.apply(DPID, lowered(state, self.rig.sessions.installed(DPID)), timeout_s=5)
        self.rig.sessions.apply(DPID, state, timeout_s=5)
        self.rig.ovs.appctl("revalidator/wait")

    def send(self, port_no: int, source: str, target: str, dscp: int = 0) -> None:
        """Have a packet arrive at a port."""
        mac = next(h.mac for h in self.network.hosts if str(h.ip) == target)
        frame = ethernet(mac, IPV4, ip(FloodTarget(source, target, mac, dscp), 100))
        code = f"from socket import *; s = socket(AF_PACKET, SOCK_RAW); s.bind(('h{port_no}', 0))"
        code += f"; s.send(bytes.fromhex('{frame.hex()}'))"
        _inside("python3", "-c", code)

    def cached(self) -> dict[str, tuple[int, str]]:
        """The cached flows of IPv4 to where somebody is, by their whole match: how many packets, and what is done."""
        shown = self.rig.ovs.appctl("dpctl/dump-flows", "-m", "type=ovs")
        if not FLOWS.search(shown):
            shown = self.rig.ovs.appctl("dpctl/dump-flows", "-m")
        return {
            found[1]: (int(found[2]), found[3])
            for line in shown.splitlines()
            if "eth_type(0x0800)" in line and (found := FLOWS.search(line))
        }


def _inside(*command: str) -> None:
    subprocess.run(["ip", "netns", "exec", NAMESPACE, *command], check=True, capture_output=True)


def _address(network: Network, name: str) -> str:
    return str(network.host(name).ip)


def test_an_announcement_changes_the_cached_flows_of_its_hosts_in_place_and_no_other_s(rig):
    edge = Edge(rig, CHILE_ILLINOIS, CHILE_ILLINOIS.switches[0])
    arch = _address(CHILE_ILLINOIS, "arch")
    here = {h.name: (CHILE_ILLINOIS.link("ls1", h.name).port_no, str(h.ip)) for h in CHILE_ILLINOIS.hosts[:4]}
    here["stranger"] = 20, STRANGER

    def sent() -> None:
        for port_no, address in here.values():
            edge.send(port_no, address, arch)
        edge.send(9, arch, here["base20"][1])  # what comes by the circuit
        edge.send(*here["base20"], arch, dscp=MARK)

    standing = DATABASE, RAW_IMAGES
    plans = [(), standing, (*standing, *IMAGE), (*standing, *IMAGE, BESIDE), (*standing, BESIDE), standing]
    plan = {flows: planned(2, CHILE_ILLINOIS, DEFAULT_POLICY, PlanInput(flows)) for flows in plans}
    edge.hold(plan[()])
    for _ in range(2):
        sent()
    eventually(lambda: sum(n for n, _ in edge.cached().values()) >= 7, within_s=5, what="all are cached")
    seen = [edge.cached()]
    assert len(seen[0]) == 7
    for flows in plans[1:]:
        edge.hold(plan[flows])
        seen.append(edge.cached())
        assert seen[-1].keys() == seen[0].keys(), "a cached flow was deleted, or its mask is another"
        sent()
        eventually(
            lambda: all(edge.cached()[key][0] > seen[-1][key][0] for key in seen[0]), within_s=5, what="all are hit"
        )
        assert edge.cached().keys() == seen[0].keys(), "a packet took the slow path"
    changed = [{key for key in seen[0] if before[key][1] != after[key][1]} for before, after in pairwise(seen)]
    # the standing ones; the image's and the marked packet with them; the marked one alone; then the rest goes back
    assert [len(keys) for keys in changed] == [2, 3, 1, 2, 1], changed


def test_what_crosses_a_switch_keeps_its_cached_flow_when_another_pair_is_led_another_way(rig):
    switch = RING.edge_switch("los-alamos")
    edge = Edge(rig, RING, switch)
    way = next(w for w in ways("albu10", "live10") if switch.name in w)
    arrives = RING.link(switch.name, way[way.index(switch.name) - 1]).port_no
    target = _address(RING, "live10")
    urgent = DEFAULT_POLICY.classes[FlowClass.URGENT].dscp

    def sent() -> None:
        for name in ("albu10", "albu20"):
            edge.send(arrives, _address(RING, name), target, dscp=urgent)

    led = replace(flow_on(RING, "led", FlowClass.URGENT, way))
    without, with_it = (planned(2, RING, DEFAULT_POLICY, PlanInput(flows)) for flows in ((), (led,)))
    edge.hold(without)
    for _ in range(2):
        sent()
    eventually(lambda: len(edge.cached()) == 2, within_s=5, what="both are cached")
    before = edge.cached()
    edge.hold(with_it)
    after = edge.cached()
    assert after.keys() == before.keys()
    sent()
    eventually(lambda: all(edge.cached()[key][0] > after[key][0] for key in after), within_s=5, what="both are hit")
    assert edge.cached().keys() == before.keys()
