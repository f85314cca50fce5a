"""A network's switches as bridges of Open vSwitch in user space, with its ports and without hosts, on any machine."""

import subprocess

from controller.plan.wiring import port_links
from mininet_tests.site.openvswitch import PrivateOvs
from topology.network import Link, Network


def add_switches(ovs: PrivateOvs, network: Network, openflow: str) -> None:
    """Make every switch with all its ports; the port of a circuit is one end of a pair, so that it can have queues.

    Args:
        ovs: where.
        network: whose.
        openflow: the controller's port for switches.
    """
    for switch in network.switches:
        ovs.vsctl(
            *("add-br", switch.name, "--", "set", "bridge", switch.name, "datapath_type=netdev", "fail_mode=secure"),
            *("protocols=OpenFlow13", f"other-config:datapath-id={switch.dpid:016x}"),
        )
        for _, link in port_links(network, switch.name):
            if link.circuit:
                far = f"{switch.name}-far"
                _ip("add", link.port_name, "up", "type", "veth", "peer", "name", far)
                _ip("set", far, "up")
            add_port(ovs, switch.name, link)
        ovs.vsctl(
            *("set-controller", switch.name, f"tcp:127.0.0.1:{openflow}"),
            *("--", "set", "controller", switch.name, "max_backoff=1000"),
        )


def add_port(ovs: PrivateOvs, switch: str, link: Link, number: int | None = None) -> None:
    """Add the port of a link to a switch, under its own number or another."""
    kind = [] if link.circuit else ["type=internal"]
    asked = f"ofport_request={link.port_no if number is None else number}"
    ovs.vsctl("add-port", switch, link.port_name, "--", "set", "interface", link.port_name, asked, *kind)
    _ip("set", link.port_name, "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", "link", *arguments], check=True)
