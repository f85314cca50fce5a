"""A network's switches as bridges of Open vSwitch in user space, with its ports and without hosts, on any machine."""

import subprocess

from controller.plan.wiring import port_links
from mininet_tests.site.openvswitch import PrivateOvs
from topology.network import Link, Network


def add_switches(ovs: PrivateOvs, network: Network, openflow: str) -> None:
    """Make every switch with all its ports, by one command; a circuit's port is an end of a pair, for its queues.

    Args:
        ovs: where.
        network: whose.
        openflow: the controller's port for switches.
    """
    for switch in network.switches:
        made = ["add-br", switch.name, "--", "set", "bridge", switch.name, "datapath_type=netdev", "fail_mode=secure"]
        made += ["protocols=OpenFlow13", f"other-config:datapath-id={switch.dpid:016x}"]
        links = [link for _, link in port_links(network, switch.name)]
        for link in links:
            if link.circuit:
                far = f"{switch.name}-far"
                _ip("add", link.port_name, "type", "veth", "peer", "name", far)
                _ip("set", far, "up")
            made += ["--", *_added(switch.name, link)]
        ovs.vsctl(*made)
        up = "".join(f"link set {link.port_name} up\n" for link in links)
        subprocess.run(["ip", "-batch", "-"], input=up, text=True, check=True)
        ovs.vsctl(
            *("set-controller", switch.name, f"tcp:127.0.0.1:{openflow}"),
            *("--", "set", "controller", switch.name, "max_backoff=1000"),
        )


def remove_switches(ovs: PrivateOvs, network: Network) -> None:
    """Take switches away for the next world, and the ports of circuits, which are not Open vSwitch's.

    Queues have the term of this one; the next one's terms are lower, and are refused there.
    """
    for switch in network.switches:
        ovs.vsctl("del-br", switch.name)
        for link in (link for _, link in port_links(network, switch.name) if link.circuit):
            subprocess.run(["ip", "link", "del", link.port_name], check=True)
    ovs.vsctl("--all", "destroy", "qos", "--", "--all", "destroy", "queue")


def add_port(ovs: PrivateOvs, switch: str, link: Link, number: int | None = None) -> None:
    """Add the port of a link to a switch, under its own number or another."""
    ovs.vsctl(*_added(switch, link, number))
    _ip("set", link.port_name, "up")


def _added(switch: str, link: Link, number: int | None = None) -> list[str]:
    """Return the command that adds the port of a link to a switch."""
    wanted = link.port_no if number is None else number
    how = ([f"ofport_request={wanted}"] if wanted else []) + ([] if link.circuit else ["type=internal"])
    return ["add-port", switch, link.port_name, *(["--", "set", "interface", link.port_name, *how] if how else [])]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", "link", *arguments], check=True)
