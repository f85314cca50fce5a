"""Floods through a real Open vSwitch that holds a plan: who loses by them, counted packet by packet."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import IMAGE, plan_of
from controller.southbound.openflow.desired import METER_BURST_MIN_BITS, switch_state
from mininet_tests.lab import commands
from mininet_tests.site.userspace_switch import DPID, NAMESPACE, NEEDS_OVS, UserspaceSwitch, connected_switch
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from topology.network import Hop
from topology.protocol import FlowClass

pytestmark = NEEDS_OVS

RATE_BPS = 10_000_000  # what any machine forwards in userspace, the floods besides
FLOOD_BPS = 3 * RATE_BPS
NETWORK = chile_illinois(RATE_BPS)
PLAN = plan_of(*IMAGE, network=NETWORK)
ALLOCATED_BPS = {e.flow.host: e.frame_bps for e in PLAN.entries}
UNPLANNED_BPS = PLAN.links[Hop("ls1", "ch1")].classes[FlowClass.UNPLANNED].meter_bps
PORT_NO = {f"base{n}": n - 19 for n in range(20, 24)} | {"rogue": 20}
ROGUE, WAN_PORT_NO = "10.20.20.66", 9
FLOOD_S = 2.0


def run(*command: str) -> str:
    """What a command prints in the switch's namespace."""
    inside = ["ip", "netns", "exec", NAMESPACE, *command]
    return subprocess.run(inside, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[UserspaceSwitch]:
    """A connected switch."""
    with connected_switch(tmp_path) as switch:
        yield switch


@pytest.fixture
def site(rig):
    """The edge switch in Chile with an image announced, its hosts' interfaces, and a counter on the circuit."""
    for number in (*PORT_NO.values(), WAN_PORT_NO):
        run("ip", "link", "add", f"h{number}", "type", "veth", "peer", "name", f"p{number}")
        for end in "hp":
            run("ip", "link", "set", f"{end}{number}", "up")
        rig.ovs.vsctl(
            "add-port", "s1", f"p{number}", "--", "set", "interface", f"p{number}", f"ofport_request={number}"
        )
    run("nft", "add table netdev seen")
    run("nft", f"add chain netdev seen floods {{ type filter hook ingress device h{WAN_PORT_NO} priority 0; }}")
    for what in ("ip protocol 253", f"ip saddr {NETWORK.host('base20').ip}", f"ip saddr {NETWORK.host('base21').ip}"):
        run("nft", f"add rule netdev seen floods {what} counter return")
    run("nft", "add rule netdev seen floods ether type arp counter return")
    rig.sessions.apply(DPID, switch_state(NETWORK, NETWORK.switches[0], PLAN, DEFAULT_POLICY), timeout_s=10)
    return rig


def arrived() -> dict[str, tuple[int, int]]:
    """Packets and bytes that have reached the far end of the circuit: of a protocol nobody knows, of each host, ARP."""
    shown = re.findall(r"counter packets (\d+) bytes (\d+)", run("nft", "list", "table", "netdev", "seen"))
    names = ("unknown-protocol", "base20", "base21", "arp")
    return {name: (int(p), int(b)) for name, (p, b) in zip(names, shown, strict=True)}


@contextmanager
def sending(port: str, rate_bps: int, kind: str = "udp", name_of: str = "") -> Iterator[dict[str, int]]:
    """Send to the archive from a port; when it is over, the answer has what was sent."""
    source = {h.name: str(h.ip) for h in NETWORK.hosts}.get(name_of or port, ROGUE)
    arch = NETWORK.host("arch")
    command = commands.module("scenarios.floods.sender", "--interface", f"h{PORT_NO[port]}", "--kind", kind)
    command += ["--rate", str(rate_bps), "--source", source, "--target", str(arch.ip), "--target-mac", arch.mac]
    sent: dict[str, int] = {}
    inside = ["ip", "netns", "exec", NAMESPACE, *command]
    with subprocess.Popen(inside, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "flooding\n"
        try:
            yield sent
        finally:
            process.terminate()
            sent.update(json.loads(process.stdout.read()))


def flooded(**flood) -> tuple[int, int, float]:
    """Let a planned host send within its allocation beside a flood; what it sent, what arrived of it, and how long."""
    with sending("base20", ALLOCATED_BPS["base20"] * 95 // 100) as honest, sending(**flood):
        started_s = time.monotonic()
        eventually(lambda: time.monotonic() - started_s > FLOOD_S, within_s=FLOOD_S + 5, what="the flood is over")
        lasted_s = time.monotonic() - started_s
    eventually(lambda: arrived()["base20"][0] >= honest["frames"] or settled(), within_s=5, what="all has arrived")
    return honest["frames"], arrived()["base20"][0], lasted_s


def settled() -> bool:
    """Whether nothing more arrives."""
    before = arrived()
    return eventually(lambda: True, within_s=1, what="a moment") and arrived() == before


def test_a_host_that_sends_more_than_its_allocation_harms_nobody_in_its_class(site):
    sent, there, lasted_s = flooded(port="base21", rate_bps=FLOOD_BPS)
    assert there >= 0.999 * sent > 0
    liar_bits = 8 * arrived()["base21"][1]
    assert 0.9 * ALLOCATED_BPS["base21"] * lasted_s < liar_bits
    assert liar_bits < ALLOCATED_BPS["base21"] * (lasted_s + 1) + METER_BURST_MIN_BITS


def test_who_uses_a_planned_host_s_address_from_another_port_takes_nothing_from_it(site):
    sent, there, lasted_s = flooded(port="rogue", rate_bps=FLOOD_BPS, kind="unknown-protocol", name_of="base20")
    assert there >= 0.999 * sent > 0
    assert 8 * arrived()["unknown-protocol"][1] < UNPLANNED_BPS * (lasted_s + 1) + METER_BURST_MIN_BITS


def test_a_flood_of_arp_in_a_planned_host_s_name_ends_at_the_switch(site):
    sent, there, _ = flooded(port="rogue", rate_bps=FLOOD_BPS, kind="arp", name_of="base20")
    assert there >= 0.999 * sent > 0
    assert arrived()["arp"] == (0, 0)


def test_a_flood_of_arp_is_unplanned(site):
    sent, there, lasted_s = flooded(port="rogue", rate_bps=FLOOD_BPS, kind="arp")
    assert there >= 0.999 * sent > 0
    assert 0 < 8 * arrived()["arp"][1] < UNPLANNED_BPS * (lasted_s + 1) + METER_BURST_MIN_BITS


def test_the_switch_shows_the_plan_s_rules_and_every_aggregate_s_meter_as_they_were_desired(site):
    desired = switch_state(NETWORK, NETWORK.switches[0], PLAN, DEFAULT_POLICY)
    assert site.sessions.installed(DPID) == desired
    assert len(desired.meters) == 4 + 2  # classes, senders of the image
