"""A ring of sites, for real: a flow crosses two circuits, a reservation goes the other way round, between two hosts.

Then three promises of one pair are used at once, both ways round, beside a third party's.
Run inside ``isolated.sh``. Writes what it saw to ``report.json``; it does not know whether it is in the lab.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from controller.plan.invariant import Layers, violations
from controller.southbound.openflow.circuit_ports import QUEUE_ID
from mininet_tests.lab.kept import kept
from mininet_tests.scenarios.ring.aims import aims
from mininet_tests.scenarios.ring.promises import promised
from mininet_tests.site.emulation import Emulation, emulation
from mininet_tests.site.tcp_flows import SWITCH_S
from mininet_tests.site.topos import PacketModel, read_back
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import asc_ring
from mininet_tests.testing.reports import write_report
from topology.protocol import FlowClass
from topology.relinking import tagged

RATE_BPS, DELAY_US = 100_000_000, 20_000
SENDER, RECEIVER = "albu10", "pop10"  # the shorter way is by Los Alamos: two circuits
TRANSIT_PORT = "losa1-east"  # where the second of them begins
RESERVED_SENDER, RESERVED_RECEIVER = "albu20", "pop20"  # nobody has planned anything for them until they reserve
AVOIDED = "albuquerque-los-alamos"  # so their way is by Livermore
FAR_TRANSIT_PORT = "live1-west"
RESERVED_BPS, RESERVED_IN_S = 40_000_000, 5
# Three of the circuits are handed over as VLANs, so that tags come, go and change where circuits meet.
VLAN_VIDS = {AVOIDED: 301, "pop-livermore": 302, "los-alamos-pop": 303}
FLOWS = [{"name": "simulation", "class": "background", "from": SENDER, "to": RECEIVER}]
PORT = 5301


def run(directory: Path) -> dict[str, Any]:
    """Return what was seen: the way of a ping, the rate of a transfer, the queues and meters it met.

    Raises:
        AssertionError: something did not come about in time.
        RuntimeError: a program ended with an error.
    """
    network = tagged(asc_ring(RATE_BPS, DELAY_US), VLAN_VIDS)
    # Single packets: at this rate each circuit would hold a super-packet for a millisecond, which no window counts on.
    busy = {SENDER, RECEIVER, RESERVED_SENDER, RESERVED_RECEIVER}
    idle = frozenset(host.name for host in network.hosts) - busy
    with emulation(network, FLOWS, directory, packets=PacketModel(single=True), without_agent=idle) as site:
        pings = _round_trips_ms(site, RESERVED_SENDER, str(network.host(RESERVED_RECEIVER).ip))
        before = _sent_bytes(TRANSIT_PORT)
        received_bps = _transfer(site, SENDER, RECEIVER)
        sent = {queue: count - before[queue] for queue, count in _sent_bytes(TRANSIT_PORT).items()}
        plan, layers = site.get("/v1/plan"), read_back(site.realised)
        reserved = _reserved(site)
        pair = promised(site)
    return {
        "round_trips_ms": pings,
        "received_payload_bps": received_bps,
        "transit_bytes": {c: sent[queue_id] for c, queue_id in QUEUE_ID.items()},
        "plan": plan,
        "reserved": reserved,
        "pair": pair,
        "violations": [*plan["violations"], *_violated(plan, layers)],
        "links_read_back": sorted(layers),
    }


def _round_trips_ms(site: Emulation, host: str, address: str) -> list[float]:
    """Return the round-trip times of a few small packets that nobody has planned."""
    prefix = ["mnexec", "-a", str(site.realised.net[host].pid)]
    shown = subprocess.run(
        [*prefix, "ping", "-c", "5", "-i", "0.2", address], capture_output=True, text=True, check=False
    ).stdout
    return [float(ms) for ms in re.findall(r"time=([\d.]+) ms", shown)]


def _reserved(site: Emulation) -> dict[str, Any]:
    """Return what a reservation between two hosts did: its states, its way, and the transfer it was made for.

    Raises:
        AssertionError: it did not become active in time.
        RuntimeError: it was refused.
    """
    now = time.time()
    asked = {
        "from": RESERVED_SENDER,
        "to": RESERVED_RECEIVER,
        "class": "urgent",
        "rate_bps": RESERVED_BPS,
        "start": datetime.fromtimestamp(now + RESERVED_IN_S, UTC).isoformat(),
        "duration_s": 120,
        "constraints": {"exclude": [AVOIDED]},
        "commit": True,
    }
    reservation = site.asked("POST", "/v1/reservations", asked)
    path, states = f"/v1/reservations/{reservation['id']}", [reservation["state"]]

    def active() -> bool:
        states.append(site.get(path)["state"])
        return bool(states[-1] == "active")

    eventually(active, within_s=60, what="the reservation is active")
    active_after_s = time.time() - now
    before = _sent_bytes(FAR_TRANSIT_PORT)
    received_bps = _transfer(site, RESERVED_SENDER, RESERVED_RECEIVER)
    sent = {queue: count - before[queue] for queue, count in _sent_bytes(FAR_TRANSIT_PORT).items()}
    plan, layers = site.get("/v1/plan"), read_back(site.realised)
    released = site.asked("DELETE", path)
    eventually(
        lambda: len(site.get("/v1/plan")["installed"]["allocations"]) == 1, within_s=60, what="it has left the plan"
    )
    return {
        "states": list(dict.fromkeys(states)),
        "active_after_s": active_after_s,
        "path": released["path"],
        "released": released["state"],
        "received_payload_bps": received_bps,
        "transit_bytes": {c: sent[queue_id] for c, queue_id in QUEUE_ID.items()},
        "violations": [*plan["violations"], *_violated(plan, layers)],
    }


def _transfer(site: Emulation, sender: str, receiver: str) -> int:
    """Return the payload that arrived of a transfer once it was under way, bit/s.

    Raises:
        RuntimeError: iperf3 ended with an error.
    """
    server = ["iperf3", "--server", "--one-off", "--port", str(PORT), "--json"]
    client = ["iperf3", "--client", str(site.realised.network.host(receiver).ip), "--port", str(PORT), "--time", "4"]
    names = f"iperf3-server-{receiver}", f"iperf3-{sender}"
    site.spawn(names[0], server, host=receiver)

    def connected() -> bool:
        process = site.processes.get(names[1])
        if process is None or process.poll():  # the server was not there yet
            site.spawn(names[1], client, host=sender)
            return False
        return site.processes[names[0]].poll() is not None

    eventually(connected, within_s=60, what="the transfer ends")
    seen = json.loads((site.directory / "logs" / f"{names[0]}.log").read_text())
    if "error" in seen:
        raise RuntimeError(f"iperf3: {seen['error']}")
    under_way = [one["sum"] for one in seen["intervals"][1:4]]  # by the receiver: the sender counts its buffer
    took_s: float = sum(one["seconds"] for one in under_way)
    return round(sum(int(one["bytes"]) for one in under_way) * 8 / took_s)


def _sent_bytes(port: str) -> dict[int, int]:
    """Return what each queue of a port has sent. Open vSwitch makes queue N the class 1:N+1."""
    shown = subprocess.run(["tc", "-s", "class", "show", "dev", port], capture_output=True, text=True, check=True)
    classes = re.findall(r"class htb 1:([0-9a-f]+) .*?Sent (\d+) bytes", shown.stdout, re.DOTALL)
    return {int(minor, 16) - 1: int(count) for minor, count in classes}


def _violated(plan: dict[str, Any], layers: dict[str, dict[str, dict[FlowClass, int]]]) -> list[str]:
    """Return where the hosts of the plan, or meters and queues as read back, let through too much."""
    held = {
        link: Layers(
            then["hosts_frame_bps"], layers[link]["meters_bps"], layers[link]["queues_bps"], then["circuit_frame_bps"]
        )
        for link, then in plan["layers"].items()
    }
    return [str(violation) for violation in violations(held)]


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json and logs")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)

    def scenario(folder: Path) -> None:
        seen = run(folder)
        found = aims(seen, DELAY_US, RESERVED_BPS, VLAN_VIDS)
        write_report(folder, seen | stated(found))

    return kept("ring", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
