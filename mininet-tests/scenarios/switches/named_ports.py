"""A controller on a network's file that says ports by name, and two userspace switches that number them as they like.

Run inside ``isolated.sh``, on any machine. Prints as JSON what the switches and the controller showed.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from controller.plan.wiring import port_links
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.running import Running, running
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import FOLDER, loaded
from topology.network import Network, Switch

FILE = FOLDER / "two-lines.yaml"
FLOWS = [{"name": "raw-images", "class": "background", "from": "dtn1", "to": "store1"}]
MOVED, MOVED_TO = "sum1-dtn1", 77
WITHIN_S = 30.0


def run(directory: Path) -> dict[str, Any]:
    """Return what was seen before and after a port has got another number.

    Raises:
        AssertionError: something did not come about in time.
    """
    network = loaded(FILE)
    database = f"sqlite:///{directory / 'headway.db'}"
    with (
        PrivateOvs(Directories.standard()) as ovs,
        running(directory, database, network=str(FILE), flows=FLOWS, lease="300 ms") as controller,
    ):
        port = yaml.safe_load(controller.config.read_text())["listen"]["openflow"].rpartition(":")[2]
        for number, switch in enumerate(network.switches):
            _add(ovs, network, switch, port, 10 * number)
        _wait(controller)
        before = _seen(ovs, network)
        ovs.vsctl("del-port", MOVED)
        eventually(lambda: not _health(controller)["ok"], within_s=WITHIN_S, what="the port is missed")
        missed = _health(controller)["reasons"]
        _put(ovs, "sum1", MOVED, MOVED_TO)
        _wait(controller)
        eventually(lambda: _follows(ovs, network), within_s=WITHIN_S, what="the rules have the new number")
        return {"before": before, "missed": missed, "after": _seen(ovs, network)}


def _add(ovs: PrivateOvs, network: Network, switch: Switch, port: str, first: int) -> None:
    """Make a switch with its ports, numbered backwards from what the file's order would suggest."""
    bridge = ["datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow13"]
    ovs.vsctl("add-br", switch.name, "--", "set", "bridge", switch.name, *bridge,
              f"other-config:datapath-id={switch.dpid:016x}")  # fmt: skip
    names = [link.port_name for _, link in port_links(network, switch.name)]
    for number, name in enumerate(reversed(names), start=first + 1):
        _put(ovs, switch.name, name, number)
    ovs.vsctl("set-controller", switch.name, f"tcp:127.0.0.1:{port}")


def _put(ovs: PrivateOvs, bridge: str, name: str, number: int) -> None:
    """Put a port on a switch; on a device that has queues if it is a circuit's."""
    if name.endswith(("fibre", "radio")):
        subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}-f"], check=True)
        subprocess.run(["ip", "link", "set", f"{name}-f", "up"], check=True)
        kind = []
    else:
        kind = ["type=internal"]
    ovs.vsctl("add-port", bridge, name, "--", "set", "interface", name, f"ofport_request={number}", *kind)
    subprocess.run(["ip", "link", "set", name, "up"], check=True)


def _health(controller: Running) -> Any:
    return controller.asks("GET", "/healthz").json()


def _wait(controller: Running) -> None:
    eventually(lambda: _health(controller)["ok"], within_s=WITHIN_S, what="the plan is in force on all switches")


def _follows(ovs: PrivateOvs, network: Network) -> bool:
    return all(one["said"] == one["used"] for one in _seen(ovs, network).values())


def _seen(ovs: PrivateOvs, network: Network) -> dict[str, dict[str, list[int]]]:
    """Return, by switch, its ports' numbers, and those that its rules match and send to."""
    found = {}
    for switch in network.switches:
        names = [link.port_name for _, link in port_links(network, switch.name)]
        rules = subprocess.run(
            ["ovs-ofctl", "-O", "OpenFlow13", "--no-names", "dump-flows", switch.name],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        groups = subprocess.run(
            ["ovs-ofctl", "-O", "OpenFlow13", "--no-names", "dump-groups", switch.name],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        used = {int(number) for number in re.findall(r"(?:in_port=|output:)(\d+)", rules + groups)}
        said = {int(ovs.vsctl("get", "interface", name, "ofport")) for name in names}
        found[switch.name] = {"said": sorted(said), "used": sorted(used)}
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        json.dump(run(Path(scratch)), sys.stdout)
