"""Neighbour discovery through a real Open vSwitch: who is sought is asked, whoever else was sought just before."""

import json
import socket
import struct
import subprocess
import sys
import time
from ipaddress import IPv6Address
from pathlib import Path

from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.southbound.openflow.desired import switch_state
from mininet_tests.lab import commands
from mininet_tests.site.userspace_switch import DPID, NAMESPACE, NEEDS_OVS, connected_switch
from mininet_tests.testing.networks import two_lanes_of
from topology.network import Network

pytestmark = NEEDS_OVS

NETWORK = two_lanes_of(6)
PORTS = {"base20": 1, "base20.eth1": 2, "base21": 3}
WAN_PORT_NO, SEEKER = 8, "arch"
ICMPV6, SOLICITATION, HOP_LIMIT = 58, 135, 255
SEEN_WITHIN_S = 2.0


def run(*command: str) -> str:
    """What a command prints in the switch's namespace."""
    inside = ["ip", "netns", "exec", NAMESPACE, *command]
    return subprocess.run(inside, check=True, capture_output=True, text=True).stdout


def solicitation(network: Network, sought: str) -> bytes:
    """Return the frame by which the seeker asks where a host is: RFC 4861, section 4.3."""
    target = IPv6Address(str(network.host(sought).ip))
    source = IPv6Address(str(network.host(SEEKER).ip))
    to_all = IPv6Address(int(IPv6Address("ff02::1:ff00:0")) | int(target) & 0xFFFFFF)
    mac = bytes.fromhex(network.host(SEEKER).mac.replace(":", ""))
    body = struct.pack("!BBHI", SOLICITATION, 0, 0, 0) + target.packed + b"\1\1" + mac
    pseudo = source.packed + to_all.packed + struct.pack("!II", len(body), ICMPV6) + body
    total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    body = body[:2] + struct.pack("!H", ~total & 0xFFFF) + body[4:]
    header = struct.pack("!IHBB", 6 << 28, len(body), ICMPV6, HOP_LIMIT) + source.packed + to_all.packed
    return b"\x33\x33" + to_all.packed[-4:] + mac + struct.pack("!H", 0x86DD) + header + body


def test_each_of_several_neighbours_that_are_sought_within_a_second_is_asked(tmp_path: Path):
    with connected_switch(tmp_path) as switch:
        for number in (*PORTS.values(), WAN_PORT_NO):
            run("ip", "link", "add", f"h{number}", "type", "veth", "peer", "name", f"p{number}")
            for end in "hp":
                run("ip", "link", "set", f"{end}{number}", "up")
            port = f"p{number}"
            switch.ovs.vsctl("add-port", "s1", port, "--", "set", "interface", port, f"ofport_request={number}")
        plan = planned(2, NETWORK, DEFAULT_POLICY, PlanInput(()))
        switch.sessions.apply(DPID, switch_state(NETWORK, NETWORK.switches[0], plan, DEFAULT_POLICY), timeout_s=10)
        asked = json.loads(run(*commands.module("scenarios.switches.test_sought_neighbours")))
        remembered = switch.ovs.appctl("dpctl/dump-flows")
    assert asked == {name: [name] for name in PORTS}
    for name in PORTS:  # what the kernel is given to go by; this switch's own memory of packets has more
        assert f"nd(target={NETWORK.host(name).ip})" in remembered


def main() -> None:
    """Ask for each host by the circuit; print who has heard of whom."""
    listening = {}
    for name, number in PORTS.items():
        listening[name] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x86DD))
        listening[name].bind((f"h{number}", 0x86DD))
        listening[name].setblocking(False)
    frames = {solicitation(NETWORK, name): name for name in PORTS}
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((f"h{WAN_PORT_NO}", 0))
        for frame in frames:
            sender.send(frame)
            time.sleep(SEEN_WITHIN_S / len(frames))
    heard = dict[str, list[str]]()
    for name, end in listening.items():
        heard[name] = []
        while True:
            try:
                frame = end.recv(2048)
            except BlockingIOError:
                break
            heard[name] += [frames[frame]] if frame in frames else []
    json.dump(heard, sys.stdout)


if __name__ == "__main__":
    main()
