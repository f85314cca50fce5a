"""A bridge of a userspace Open vSwitch in a network namespace of our own, and the controller's sessions with it."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyroute2 import netns

from apps.openflow import OpenFlowApp
from controller.security.tls import ServerTls
from controller.southbound.openflow import osken_hub
from controller.southbound.openflow.foreign import Ignored
from controller.southbound.openflow.listener import Address
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.tests.recorder import RecordedSwitches, new_term
from mininet_tests.site.openvswitch import Directories, PrivateOvs, network_namespace
from mininet_tests.testing.eventually import eventually

BRIDGE, DPID = "s1", 0x4857
NAMESPACE = f"headway-{os.getpid()}"
NEEDS_OVS = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ovs-vswitchd") is None, reason="needs root and Open vSwitch 2.17 or newer"
    ),
]


@dataclass(frozen=True, slots=True)
class UserspaceSwitch:
    """Bridge ``s1`` and the sessions it has connected to.

    Attributes:
        ovs: the switch.
        sessions: ours.
        listener: what it has told of.
    """

    ovs: PrivateOvs
    sessions: SwitchSessions
    listener: RecordedSwitches

    def flows(self) -> str:
        """Return the switch's own list of its flows."""
        return self.ovs.ofctl("--no-stats", "dump-flows", BRIDGE)


def bridge_settings(dpid: int = DPID) -> list[str]:
    """Return the columns of a bridge that forwards what a controller of OpenFlow 1.3 says, and nothing else."""
    return [
        "datapath_type=netdev",
        "fail_mode=secure",
        "protocols=OpenFlow13",
        f"other-config:datapath-id={dpid:016x}",
    ]


def add_bridge(ovs: PrivateOvs, target: str, dpid: int = DPID) -> None:
    """Make the bridge and point it at a controller."""
    settings = ["set", "bridge", BRIDGE, *bridge_settings(dpid)]
    ovs.vsctl("add-br", BRIDGE, "--", *settings, "--", "set-controller", BRIDGE, target)


@contextmanager
def private_ovs(directory: Path, veths: Mapping[str, str]) -> Iterator[PrivateOvs]:
    """Give a switch without a bridge, in a namespace with pairs of interfaces, each by its two names."""
    with network_namespace(NAMESPACE) as namespace:
        for end, peer in veths.items():
            pair = ["link", "add", end, "type", "veth", "peer", "name", peer]
            subprocess.run(["ip", "-n", namespace, *pair], check=True)
        with PrivateOvs(Directories.under(directory), namespace) as ovs:
            yield ovs


def listening(sessions: SwitchSessions, tls: ServerTls | None = None) -> osken_hub.Framework:
    """Return the OpenFlow side of the controller, listening inside the namespace."""
    with in_switch_namespace():  # a socket stays in the namespace it was made in
        return osken_hub.start(OpenFlowApp, Address(port=0, tls=tls), listener=sessions)


@contextmanager
def in_switch_namespace() -> Iterator[None]:
    """Have this thread in the switch's namespace."""
    netns.pushns(NAMESPACE)
    try:
        yield
    finally:
        netns.popns()


@contextmanager
def connected_switch(
    directory: Path,
    *,
    dpid: int = DPID,
    ignored: tuple[Ignored, ...] = (),
    veths: Mapping[str, str] | None = None,
) -> Iterator[UserspaceSwitch]:
    """Give a switch that is connected; all of it is gone afterwards."""
    listener = RecordedSwitches()
    sessions = SwitchSessions(listener, new_term(), ignored)
    with private_ovs(directory, veths or {}) as ovs:
        framework = listening(sessions)
        try:
            add_bridge(ovs, f"tcp:127.0.0.1:{framework.port}", dpid)
            eventually(lambda: listener.told, within_s=10, what="the switch connects")
            yield UserspaceSwitch(ovs, sessions, listener)
        finally:
            framework.stop()
            sessions.close()
