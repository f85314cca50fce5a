"""Hosts that nobody has planned, joined to a running site; and what a flood leaves behind at each layer."""

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from mininet_tests.lab.saturation import PROC_STAT, CpuTimes, cpu_times
from mininet_tests.probes.sockets import Connections, TcpConnection
from mininet_tests.scenarios.floods.frames import FLOOD_MAC
from mininet_tests.site.emulation import Emulation
from mininet_tests.site.wiring import in_namespace
from topology.network import Network

TCP_PORTS = range(5400, 5500)  # of floods by TCP
ROGUE_PORT_NO = 20


@dataclass(frozen=True, slots=True)
class Rogue:
    """A host on a switch that the controller knows nothing of."""

    name: str
    switch: str
    ip: str


def join(site: Emulation, rogue: Rogue, mtu_bytes: int) -> None:
    """Plug a host into its switch; it has the flood's hardware address, and the planned hosts know it."""
    net, near, far = site.realised.net, f"{rogue.name}-eth0", f"{rogue.switch}-{rogue.name}"
    node, switch = net.addHost(rogue.name, ip=None), net[rogue.switch]
    run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
    run("ip", "link", "set", near, "address", FLOOD_MAC, "mtu", str(mtu_bytes), "netns", str(node.pid))
    run("ip", "link", "set", far, "mtu", str(mtu_bytes), "up")
    run("ovs-vsctl", "add-port", switch.name, far, "--", "set", "interface", far, f"ofport_request={ROGUE_PORT_NO}")
    on(node.pid, "ip", "address", "add", f"{rogue.ip}/24", "dev", near)
    on(node.pid, "ip", "link", "set", near, "up")
    on(node.pid, "ethtool", "-K", near, "tso", "off", "gso", "off", "gro", "off")
    for host in site.realised.network.hosts:
        on(node.pid, "ip", "neigh", "replace", str(host.ip), "lladdr", host.mac, "dev", near)
        on(net[host.name].pid, "ip", "neigh", "replace", rogue.ip, "lladdr", FLOOD_MAC, "dev", f"{host.name}-eth0")


def count_floods(site: Emulation, hosts: Iterable[str]) -> None:
    """Start counting what of a flood reaches hosts, before the host's own stack sees it."""
    for host in hosts:
        hook = f"type filter hook ingress device {host}-eth0 priority 0;"
        for rule in (
            "add table netdev floods",
            f"add chain netdev floods seen {{ {hook} }}",
            f"add rule netdev floods seen ether saddr {FLOOD_MAC} counter return",
            f"add rule netdev floods seen tcp dport {TCP_PORTS.start}-{TCP_PORTS.stop - 1} counter",
        ):
            on(site.realised.net[host].pid, "nft", rule)


def arrived_bytes(site: Emulation, host: str) -> int:
    """Return what has reached a host of floods so far, bytes of IP or of whatever else they carried."""
    shown = on(site.realised.net[host].pid, "nft", "list", "table", "netdev", "floods")
    return sum(int(count) for count in re.findall(r"counter packets \d+ bytes (\d+)", shown))


@dataclass(frozen=True, slots=True)
class Seen:
    """All counters at one moment.

    Attributes:
        meters: packets dropped so far, by switch and meter number.
        queues: packets dropped so far, by circuit port and HTB class's minor number.
        retransmitted: segments sent again so far, by planned sender.
        misses: packets for which the kernel had to ask ovs-vswitchd, so far.
        cached: flows in the kernel's cache now.
        said: messages that ovs-vswitchd has sent to controllers so far.
        cpu: CPU time so far.
    """

    meters: dict[str, int]
    queues: dict[str, int]
    retransmitted: dict[str, int]
    misses: int
    cached: int
    said: int
    cpu: CpuTimes

    def since(self, before: "Seen") -> dict[str, object]:
        """Return what has happened since another moment; what has not is left out."""
        idle = self.cpu.idle_ticks - before.cpu.idle_ticks
        return {
            "meter_drops_packets": _more(before.meters, self.meters),
            "queue_drops_packets": _more(before.queues, self.queues),
            "retransmitted_segments": _more(before.retransmitted, self.retransmitted),
            "cache_misses": self.misses - before.misses,
            "cached_flows": self.cached,
            "openflow_messages": self.said - before.said,
            "cpu_idle_share": idle / max(1, self.cpu.total_ticks - before.cpu.total_ticks),
        }


def _more(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}


def look(site: Emulation, planned: dict[str, int]) -> Seen:
    """Return all counters now.

    Args:
        site: what runs.
        planned: by planned sender, the port its flow goes to.
    """
    network = site.realised.network
    shown = run("ovs-dpctl", "show")
    (missed,), (cached,) = (re.findall(rf"{name}:\s*(\d+)", shown) for name in ("missed", "flows"))
    return Seen(
        meters=_meter_drops(network),
        queues=_queue_drops(network),
        retransmitted={host: _retransmitted(site, host, port) for host, port in planned.items()},
        misses=int(missed),
        cached=int(cached),
        said=int(run("ovs-appctl", "coverage/read-counter", "vconn_sent")),
        cpu=cpu_times(PROC_STAT.read_text()),
    )


def _meter_drops(network: Network) -> dict[str, int]:
    drops = {}
    for switch in network.switches:
        shown = run("ovs-ofctl", "-O", "OpenFlow13", "meter-stats", switch.name)
        for meter, packets in re.findall(r"meter:(\d+).*?bands:\s*0: packet_count:(\d+)", shown, re.DOTALL):
            drops[f"{switch.name} meter {meter}"] = int(packets)
    return drops


def _queue_drops(network: Network) -> dict[str, int]:
    """Return the drops of each leaf of the circuit ports' HTB. Open vSwitch makes queue N the class 1:N+1."""
    drops = {}
    for _, _, link in network.circuit_links:
        shown = run("tc", "-s", "class", "show", "dev", link.port_name)
        for minor, packets in re.findall(r"class htb 1:([0-9a-f]+) .*?\(dropped (\d+)", shown, re.DOTALL):
            if minor != "fffe":
                drops[f"{link.port_name} queue {int(minor, 16) - 1}"] = int(packets)
    return drops


def _retransmitted(site: Emulation, host: str, port: int) -> int:
    connections = in_namespace(site.realised.net[host].pid, _read_connections)
    return sum(c.retransmitted_segments for c in connections if c.remote_port == port)


def _read_connections() -> list[TcpConnection]:
    return Connections().read()


def on(pid: int, *command: str) -> str:
    """Return what a command prints in the namespaces of a process."""
    return run("mnexec", "-a", str(pid), *command)


def run(*command: str) -> str:
    """Return what a command prints.

    Raises:
        RuntimeError: it failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def last_line(site: Emulation, name: str) -> object:
    """Return the last line that a program printed, as JSON."""
    return json.loads(site.tail(name).splitlines()[-1])
