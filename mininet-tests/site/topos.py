"""A network of :mod:`topology` realised in Mininet, on Open vSwitch's kernel datapath, netem and TBF.

The site's own links are veth pairs; a host's interface sends at its link's rate. A circuit is a wire of its own: a
node that passes frames between its two ends unchanged, with the circuit's rate, delay and loss on each. Beside it all
stands a management network, over which agents reach the controller.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Node, OVSBridge, OVSSwitch

from controller.southbound.openflow.circuit_ports import QUEUE_ID, meter_id
from mininet_tests.site.command import run
from mininet_tests.site.ends import with_far_ports
from mininet_tests.site.interfaces import settings_of
from mininet_tests.site.qdiscs import htb_rates_bps, seeded
from mininet_tests.site.wiring import BareHost, BareInterface, VethPair, in_namespace, plug, run_in, typed, unplug
from topology.network import Hop, Host, Line, Link, Network
from topology.protocol import FlowClass
from topology.wire import Layer, converted_bps

MANAGEMENT = "192.168.231"  # .1 is the controller's machine; the network exists inside our own namespace only
CONTROLLER_ADDRESS = f"{MANAGEMENT}.1"
FIRST_MANAGED = 10
OPENFLOW_PORT = 6653
NIC_BURST_BYTES = 131_072  # two super-packets: TBF would cut what is larger than its bucket into single packets
SUPER_PACKET_BYTES = 65_536
FAR_BUFFER_BYTES = 64_000_000  # of a receiver that is not ours
OFFLOADS = ("tso", "gso", "gro")


@dataclass(frozen=True, slots=True)
class Realised:
    """The running network.

    Attributes:
        net: Mininet's.
        network: what it realises.
        wires: by circuit, the node that is the line.
    """

    net: Mininet
    network: Network
    wires: dict[str, Node]

    def node(self, name: str) -> Node:
        """Return the node that a switch is, or a host, or the host that an interface is of."""
        return _node_of(self.net, self.network, name)

    def stop(self) -> None:
        """Take it away."""
        unplug(self.net)


@dataclass(frozen=True, slots=True)
class PacketModel:
    """How packets cross an emulated network.

    Attributes:
        single: every packet on its own (offloads off everywhere), which is slower and exact for loss; otherwise the
            kernel's super-packets of up to 64 kB.
        loss_ppm: what every circuit loses at random of the packets that enter it, each way, parts per million.
        losses_ppm: the same of those circuits that are named here.
    """

    single: bool
    loss_ppm: int = 0
    losses_ppm: Mapping[str, int] = field(default_factory=dict)


def realise(network: Network, packets: PacketModel) -> Realised:
    """Return the network, built and started; its switches have no controller yet.

    Args:
        network: what to build.
        packets: how they cross it.
    """
    # Mininet would say that it cannot raise limits in our namespaces.
    setLogLevel("critical")
    network = with_far_ports(network)
    net = Mininet(topo=None, build=False, controller=None, host=BareHost, link=VethPair, intf=BareInterface)
    for switch in network.switches:
        net.addSwitch(
            switch.name,
            OVSSwitch,
            dpid=f"{switch.dpid:016x}",
            failMode="secure",
            protocols="OpenFlow13",
            inNamespace=False,
            batch=True,
        )
    for number, edge in enumerate(network.far_edges, start=1):  # a site that is not ours: a plain bridge
        net.addSwitch(edge.name, OVSBridge, dpid=f"{0xFFFF - number:016x}", batch=True)
    for host in (host for host in network.hosts if not host.interface_of):
        net.addHost(host.name, ip=None)
    wires = {circuit.name: net.addHost(f"w{i}", ip=None) for i, circuit in enumerate(network.circuits)}
    _join(net, network, wires)
    _add_management(net, network)
    plug(net)
    net.start()
    realised = Realised(net, network, wires)
    _quieten(realised)
    _shape(realised, packets)
    if packets.single:
        switch_offloads(realised, OFFLOADS, "off")
    return realised


def call_controller(realised: Realised) -> None:
    """Let the switches connect to a controller that listens already.

    One that began to look before would wait for up to 8 s between two attempts, longer than a lease.
    """
    for switch in realised.network.switches:
        called = ["set-controller", switch.name, f"tcp:127.0.0.1:{OPENFLOW_PORT}"]
        calmed = ["--", "set", "controller", switch.name, "max_backoff=1000"]
        subprocess.run(["ovs-vsctl", *called, *calmed], check=True)


def _join(net: Mininet, network: Network, wires: dict[str, Node]) -> None:
    """Add a veth pair for each trunk, two for each circuit, with the names and numbers of the data."""
    for tail, head, link in network.links():
        near: dict[str, int | str | None] = {"port1": link.port_no or None, "intfName1": link.port_name}
        if link.circuit:
            net.addLink(net[tail], wires[link.circuit], **near, intfName2=wire_port(link))
        elif isinstance(_node(network, tail), Host):
            back = network.link(head, tail)
            near["addr1"] = network.host(tail).mac
            node = _node_of(net, network, tail)
            net.addLink(node, net[head], **near, port2=back.port_no or None, intfName2=back.port_name)


def _node(network: Network, name: str) -> object:
    return network.graph.nodes[name]["node"]


def _node_of(net: Mininet, network: Network, name: str) -> Node:
    return net[network.host(name).machine if name in network.host_names else name]


def wire_port(link: Link) -> str:
    """Return the name of the wire's interface that faces a circuit port."""
    return f"{link.port_name.removesuffix('-wan')}-line"


def _add_management(net: Mininet, network: Network) -> None:
    """Add a plain switch that joins every host to the controller's machine."""
    bridge = net.addSwitch("mgmt", OVSBridge, dpid=f"{0xFFFF:016x}", batch=True)
    for host in (host for host in network.hosts if not host.interface_of):
        net.addLink(net[host.name], bridge, intfName1=f"{host.name}-m", intfName2=f"m-{host.name}")


def management_address(network: Network, host: Host) -> str:
    """Return a host's address on the management network, after its place among the network's hosts."""
    return f"{MANAGEMENT}.{FIRST_MANAGED + network.hosts.index(host)}"


_NO_IPV6 = ("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")


def _quieten(realised: Realised) -> None:
    """Give everybody an address, and keep the network silent: no IPv6 autoconfiguration, no neighbour discovery."""
    ours = ("address", "replace", f"{CONTROLLER_ADDRESS}/24", "dev", "mgmt"), ("link", "set", "mgmt", "up")
    typed(None, (_NO_IPV6, *(("ip", *words) for words in ours)))
    for host in (host for host in realised.network.hosts if not host.interface_of):
        typed(realised.net[host.name], _settings(realised.network, host))
    for wire in realised.wires.values():
        typed(wire, (("ip", "link", "set", name, "up") for name in wire.intfNames()))


def _settings(network: Network, host: Host) -> Iterator[tuple[str, ...]]:
    """Yield what is typed on a host."""
    yield _NO_IPV6
    if not host.has_agent:  # no agent opens its windows: it has been told to, as docs/network.md says
        yield "sysctl", "-qw", f"net.ipv4.tcp_rmem=4096 {FAR_BUFFER_BYTES} {FAR_BUFFER_BYTES}"
    managed = f"{host.name}-m"
    yield "ip", "link", "set", "lo", "up"
    yield "ip", "address", "replace", f"{management_address(network, host)}/24", "dev", managed
    yield "ip", "link", "set", managed, "up"
    for number, interface in enumerate(h for h in network.hosts if h.machine == host.name):
        yield from settings_of(network, interface, number)


def _shape(realised: Realised, packets: PacketModel) -> None:
    """Put rates and delays where the data has them, and losses on the circuits."""
    network = realised.network
    of_node: dict[Node, list[tuple[str, ...]]] = {}
    for tail, head, link in network.links():
        frame_bps = converted_bps(link.rate_bps, Layer.WIRE, Layer.FRAME, network.framing_of((tail, head)))
        if link.circuit:
            loss_ppm = packets.losses_ppm.get(link.circuit, packets.loss_ppm)
            back = network.link(*network.against(tail, head))
            of_node.setdefault(realised.wires[link.circuit], []).extend(_line(link, back, frame_bps, loss_ppm))
        elif isinstance(_node(network, tail), Host) and link.buffer_bytes:
            of_node.setdefault(realised.node(tail), []).append(_interface(link, frame_bps))
        if network.framing.mtu_bytes != 1500 and not isinstance(_node(network, tail), Line):
            _set_mtu(realised, tail, link)
    for node, commands in of_node.items():
        typed(node, commands)


def _interface(link: Link, frame_bps: int) -> tuple[str, ...]:
    """Return what lets a host's interface send at its link's rate."""
    latency_us = link.buffer_bytes * 8_000_000 // link.rate_bps
    paced = f"rate {frame_bps}bit burst {max(NIC_BURST_BYTES, frame_bps // 8_000)} latency {latency_us}us"
    return ("tc", *f"qdisc add dev {link.port_name} root tbf {paced}".split())


def _line(link: Link, back: Link, frame_bps: int, loss_ppm: int) -> Iterator[tuple[str, ...]]:
    """Yield what makes a circuit's line of its two interfaces, from the one where ``link`` enters it."""
    near, far = wire_port(link), wire_port(back)
    yield ("tc", *f"qdisc add dev {near} ingress".split())
    matched = f"filter add dev {near} parent ffff: matchall".split()
    yield (
        "tc",
        *matched,
        *_retagged(link.vlan_vid, back.vlan_vid),
        *f"action mirred egress redirect dev {far}".split(),
    )
    carried = f"rate {frame_bps}bit delay {link.delay_us}us loss {loss_ppm / 10_000:f}% limit {_limit(link)}"
    yield ("tc", *f"qdisc add dev {far} root netem {carried}".split())


def _retagged(vlan_vid: int | None, beyond: int | None) -> tuple[str, ...]:
    """Return what makes of a frame's tag the one that the far end of its circuit expects, as its provider does."""
    if vlan_vid == beyond:
        return ()
    if beyond is None:
        return ("action", "vlan", "pop", "pipe")
    how = "push" if vlan_vid is None else "modify"
    return ("action", "vlan", how, "id", str(beyond), "pipe")


def _limit(link: Link) -> int:
    """Return how many packets the line may hold: all that is in flight even if each were as small as a confirmation."""
    return 1_000 + link.rate_bps * link.delay_us // (8_000_000 * 200)


def _set_mtu(realised: Realised, tail: str, link: Link) -> None:
    mtu = str(realised.network.framing.mtu_bytes)
    run_in(realised.node(tail), "ip", "link", "set", link.port_name, "mtu", mtu)
    if link.circuit:
        run_in(realised.wires[link.circuit], "ip", "link", "set", wire_port(link), "mtu", mtu)


def switch_offloads(realised: Realised, offloads: tuple[str, ...], to: str) -> None:
    """Switch offloads "on" or "off" on every interface of the data path; without ``OFFLOADS`` packets are single."""
    for node in (*realised.net.hosts, *realised.net.switches):
        for interface in node.intfNames():
            if interface != "lo" and not interface.endswith("-m") and node.name != "mgmt":
                run_in(node, "ethtool", "-K", interface, *(word for o in offloads for word in (o, to)))


def larger_packets(realised: Realised, hosts: tuple[str, ...], segments: int) -> None:
    """Let hosts send super-packets of so many segments at the least. Source: ip-sysctl.rst, tcp_min_tso_segs."""
    for name in hosts:
        run_in(realised.net[name], "sysctl", "-qw", f"net.ipv4.tcp_min_tso_segs={segments}")


def seed_lines(realised: Realised, seed: int) -> int | None:
    """Seed the losses of every circuit, each direction differently; return the seed, None if the kernel has none."""
    taken = [
        in_namespace(realised.wires[link.circuit].pid, partial(seeded, wire_port(link), seed + direction))
        for direction, (_, _, link) in enumerate(realised.network.links())
        if link.circuit
    ]
    return seed if all(taken) else None


def read_back(realised: Realised) -> dict[str, dict[str, dict[FlowClass, int]]]:
    """Return, by circuit link, the rate of each class's meter and queue as the switch and the kernel show it.

    Meters from the switch by ``ovs-ofctl``, queues from the kernel by ``tc``, not from the database; bit/s of frames.
    """
    network = realised.network
    meters_bps = {}
    for tail, head, _ in network.circuit_links:
        meter_of = {meter_id(network, (tail, head), c): c for c in QUEUE_ID}
        # A switch whose database is gone takes the question and does not answer it.
        shown = run("ovs-ofctl", "--timeout=1", "-O", "OpenFlow13", "dump-meters", tail)
        meters = re.findall(r"meter=(\d+) kbps.*?rate=(\d+)", shown, re.DOTALL)
        rates_bps = {meter_of[int(m)]: int(kbps) * 1000 for m, kbps in meters if int(m) in meter_of}
        meters_bps[str(Hop(tail, head))] = rates_bps
    queues_bps = queue_rates_bps(realised)  # after the meters: a queue grows before its meter does
    return {name: {"meters_bps": bps, "queues_bps": queues_bps[name]} for name, bps in meters_bps.items()}


def queue_rates_bps(realised: Realised) -> dict[str, dict[FlowClass, int]]:
    """Return, by circuit link, the rate of each class's queue as the kernel has it, bit/s of frames.

    Open vSwitch makes queue N the class 1:N+1, and the port's own class 1:fffe.
    """
    class_of = {queue_id + 1: c for c, queue_id in QUEUE_ID.items()}
    ours = {switch.name for switch in realised.network.switches}  # the far end of a circuit may be another's
    return {
        str(Hop(tail, head)): {
            class_of[minor]: bps for minor, bps in htb_rates_bps(link.port_name).items() if minor in class_of
        }
        for tail, head, link in realised.network.circuit_links
        if tail in ours
    }


def line_drops(realised: Realised, circuit: str) -> dict[str, int]:
    """Return, by interface of a circuit's wire, the packets its netem has dropped so far."""
    shown = run_in(realised.wires[circuit], "tc", "-s", "-j", "qdisc", "show")
    return {q["dev"]: q["drops"] for q in json.loads(shown) if q["kind"] == "netem"}


def port_drops(realised: Realised) -> dict[str, int]:
    """Return, by circuit port, the packets its queues have dropped so far."""
    shown = json.loads(run("tc", "-s", "-j", "qdisc", "show"))
    names = {link.port_name for _, _, link in realised.network.circuit_links}
    return {q["dev"]: q["drops"] for q in shown if q["dev"] in names and q["kind"] == "htb"}
