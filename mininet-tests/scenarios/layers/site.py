"""Two hosts, two switches and one circuit, with a plan on them in which one layer binds and the others do not.

The state of switches and ports is that of ``controller.southbound``, sent by its own sessions to real switches, and the
host's that of a real agent. A layer is measured alone: the others are opened wide.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from apps.openflow import OpenFlowApp
from controller.plan.flows import flow_on
from controller.plan.keys import FlowId
from controller.plan.plan import Entry, Plan, PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.southbound.openflow import osken_hub
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.listener import Address
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.state import DropMeter, SwitchState
from controller.southbound.openflow.tests.recorder import RecordedSwitches, new_term
from controller.southbound.ovsdb.desired_queues import port_queues
from controller.southbound.ovsdb.queues import PortQueues
from controller.southbound.ovsdb.writer import QueueWriter
from hostagent.tests.rig import RunningAgent
from mininet_tests.site.command import run
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.topos import (
    OFFLOADS,
    OPENFLOW_PORT,
    PacketModel,
    Realised,
    call_controller,
    port_drops,
    realise,
    switch_offloads,
)
from mininet_tests.site.wiring import in_namespace
from mininet_tests.testing.eventually import eventually
from topology.network import Hop, Host, Link, Network, Switch
from topology.protocol import Allocation, Allocations, FlowClass
from topology.relinking import tagged
from topology.wire import Framing

LINE_BPS = 80_000_000  # what the circuit's line carries; what the plan may use of it is half
PLANNED_BPS = LINE_BPS // 2
NIC_BPS = 1_000_000_000
DELAY_US = 10_000
VLAN_VID = 300
SENDER, RECEIVER = "near", "far"
HOP = Hop("s1", "s2")
FLOW_CLASS = FlowClass.BACKGROUND
OPEN = 8  # times its limit, so that a layer does not bind
TIMEOUT_S = 20.0
LEASE_MS = 60_000


class Bound(Enum):
    """The layer that binds."""

    PACING = "pacing"
    METER = "meter"
    QUEUE = "queue"
    PORT = "port"
    LINE = "line"


def network(mtu_bytes: int, *, vlan: bool) -> Network:
    """Return the network; its circuit is the bottleneck, its hosts' interfaces are faster."""
    switches = Switch("s1", "here", 1), Switch("s2", "there", 2)
    hosts = tuple(
        Host(name, switch.site, IPv4Address(f"10.40.0.{n}"), f"02:00:00:00:40:0{n}")
        for n, (name, switch) in enumerate(zip((SENDER, RECEIVER), switches, strict=True), start=1)
    )
    built = Network("layers", Framing(mtu_bytes), (*switches, *hosts))
    for host, switch in zip(hosts, switches, strict=True):
        up = Link(NIC_BPS, 0, NIC_BPS // 80, 0, f"{host.name}-eth0")
        built.add_trunk(host.name, switch.name, up, replace(up, port_no=1, port_name=f"{switch.name}-eth1"))
    line = Link(LINE_BPS, DELAY_US, LINE_BPS // 80, 9, "s1-wan", "line")
    built.add_trunk(*HOP, line, replace(line, port_name="s2-wan"))
    return tagged(built, {"line": VLAN_VID} if vlan else {})


@dataclass(frozen=True, slots=True)
class Seat:
    """A host's network namespace, as the agent's rig knows one."""

    name: str
    pid: int
    address: str

    def inside(self, act: Callable[[], Any]) -> Any:
        """Return ``act()``, called in the namespace."""
        return in_namespace(self.pid, act)


class LayersSite:
    """The running network, and the plan on it."""

    def __init__(self, realised: Realised, sessions: SwitchSessions, queues: QueueWriter, folder: Path) -> None:
        """Take the network; the plan comes with :meth:`bind`."""
        self.realised, self._sessions, self._queues = realised, sessions, queues
        self.network = realised.network
        path = self.network.path(SENDER, RECEIVER)
        wanted = flow_on(self.network, FlowId("bulk"), FLOW_CLASS, path)
        cut = {Hop(tail, head): PLANNED_BPS for tail, head, _ in self.network.circuit_links}
        self.plan: Plan = planned(2, self.network, DEFAULT_POLICY, PlanInput((wanted,), cut))
        self.seats = {h.name: Seat(h.name, realised.net[h.name].pid, str(h.ip)) for h in self.network.hosts}
        for seat in self.seats.values():
            run("ip", "netns", "attach", seat.name, str(seat.pid))
        self.agent = RunningAgent(self.seats[SENDER], folder / SENDER)  # type: ignore[arg-type]
        self._epoch = 0

    @property
    def entry(self) -> Entry:
        """The host's allocation."""
        return self.plan.entries[0]

    def close(self) -> None:
        """End the agent."""
        self.agent.close()
        for seat in self.seats.values():
            run("ip", "netns", "delete", seat.name)

    def bind(self, bound: Bound) -> None:
        """Bring the plan into force so that one layer binds, and nothing else."""
        open_meters, open_ports = bound is not Bound.METER, bound in (Bound.METER, Bound.LINE)
        if bound is Bound.PACING:
            open_meters = False
        for switch in self.network.switches:
            state = switch_state(self.network, switch, self.plan, DEFAULT_POLICY)
            ports = port_queues(self.network, switch, self.plan)
            if open_meters:
                state = SwitchState(state.rules, frozenset(_wide_meter(meter) for meter in state.meters))
            if bound is Bound.QUEUE:
                ports = {name: _own_rates(port) for name, port in ports.items()}
            elif open_ports:
                ports = {name: _wide_port(port) for name, port in ports.items()}
            self._sessions.apply(switch.dpid, state, TIMEOUT_S)
            self._queues.apply(ports, TIMEOUT_S)
            if self._sessions.installed(switch.dpid) != state:
                raise RuntimeError(f"{switch.name}: what is read back is not what was set")
        self._epoch += 1
        self.agent.obey(Allocations(self._epoch, LEASE_MS, self._allocations() if bound is Bound.PACING else ()))

    def _allocations(self) -> tuple[Allocation, ...]:
        """Return the plan's entry, its window wider: on a path this short it would bind before pacing does."""
        entry, address = self.entry, self.seats[RECEIVER].address
        dest = IPv4Network(f"{address}/32")
        return (Allocation("bulk", FLOW_CLASS, dest, entry.payload_bps, 2 * entry.window_segments),)

    def dropped(self) -> int:
        """Return what the meters (the flow's own, its class's) and the circuit's port have dropped so far, packets."""
        shown = run("ovs-ofctl", "-O", "OpenFlow13", "meter-stats", HOP[0])
        return (
            sum(map(int, re.findall(r"0: packet_count:(\d+)", shown)))
            + port_drops(self.realised)[self.network.link(*HOP).port_name]
        )

    def single_packets(self, *, single: bool) -> None:
        """Have all packets single, or as the kernel makes them."""
        switch_offloads(self.realised, OFFLOADS, "off" if single else "on")

    def tags_in_frames(self, *, inside: bool) -> None:
        """Have every interface write its tags into the frames at once and leave them there, or carry them beside."""
        switch_offloads(self.realised, ("txvlan", "rxvlan"), "off" if inside else "on")


def _wide_meter(meter: DropMeter) -> DropMeter:
    return replace(meter, rate_kbps=OPEN * meter.rate_kbps, burst_kbit=OPEN * meter.burst_kbit)


def _wide_port(port: PortQueues) -> PortQueues:
    most_bps = OPEN * port.port_max_bps
    wide = (replace(q, min_bps=OPEN * q.min_bps, max_bps=most_bps, burst_bits=OPEN * q.burst_bits) for q in port.queues)
    return PortQueues(most_bps, tuple(wide))


def _own_rates(port: PortQueues) -> PortQueues:
    """Return a port whose queues borrow nothing: each sends at its own rate."""
    return PortQueues(port.port_max_bps, tuple(replace(q, max_bps=q.min_bps) for q in port.queues))


@contextmanager
def sites(folder: Path) -> Iterator[Callable[..., Any]]:
    """Give a maker of sites, each taken down at the end of its ``with``; one Open vSwitch serves all."""
    with ExitStack() as parts:
        parts.enter_context(PrivateOvs(Directories.standard()))
        sessions = SwitchSessions(RecordedSwitches(), new_term())
        parts.callback(sessions.close)
        hub = osken_hub.start(OpenFlowApp, Address(port=OPENFLOW_PORT), listener=sessions)
        parts.callback(hub.stop)
        queues = parts.enter_context(QueueWriter("unix:/run/openvswitch/db.sock"))
        yield partial(_site, sessions, queues, folder)


@contextmanager
def _site(sessions: SwitchSessions, queues: QueueWriter, folder: Path, built: Network) -> Iterator[LayersSite]:
    wanted = {switch.dpid for switch in built.switches}
    eventually(lambda: not sessions.dpids() & wanted, within_s=30, what="the switches of before are gone")
    realised = realise(built, PacketModel(single=False))
    try:
        call_controller(realised)
        eventually(lambda: sessions.dpids() >= wanted, within_s=30, what="the switches connect")
        here = folder / f"{built.framing.mtu_bytes}-{built.framing.vlan_tags}"
        here.mkdir(parents=True)
        site = LayersSite(realised, sessions, queues, here)
        try:
            yield site
        finally:
            site.close()
    finally:
        realised.stop()
