"""Drift, for real: each kind of object is broken by hand while a planned flow runs at its rate, and audits repair it.

Run inside ``isolated.sh``. Writes what it saw to ``report.json``; it does not know whether it is in the lab.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.southbound.openflow.circuit_ports import QUEUE_ID, meter_id
from controller.southbound.openflow.state import cookie
from mininet_tests.lab.kept import kept
from mininet_tests.scenarios.drift.aims import aims
from mininet_tests.site.emulation import Emulation, MoreSettings, emulation, now_us
from mininet_tests.site.topos import PacketModel, line_drops, port_drops
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.reports import write_report
from topology.protocol import FlowClass

RATE_BPS, DELAY_US = 100_000_000, 20_000
INTERVAL_S = 2
TRAFFIC_S = 40
PORT = 5301
SENDER, RECEIVER, OTHER = "base23", "arch", "base20"
SWITCH, CIRCUIT_PORT = "ls1", "ls1-wan"
FLOWS = [{"name": "raw-images", "class": "background", "from": SENDER, "to": RECEIVER}]
FOREIGN, IGNORED = "0x77", cookie(0x99)
SETTINGS = {"audit": {"interval": f"{INTERVAL_S} s", "ignore": [{"cookie": f"{IGNORED:#x}"}]}}
NETWORK = chile_illinois(RATE_BPS, DELAY_US)


@dataclass(frozen=True, slots=True)
class Break:
    """Something done by hand: what, the command, and what an audit must call it."""

    name: str
    command: Sequence[str]
    kind: str
    shape: str
    messages: int = 1


def breaks() -> list[Break]:
    """Return what is broken, one after the other; meter, queue and class are those that the traffic runs through."""
    hosts = {h.name: h.ip for h in NETWORK.hosts}
    other, own = (
        f"table=1,priority=400,ip,in_port={NETWORK.link(SWITCH, sender).port_no},nw_src={hosts[sender]}"
        for sender in (OTHER, SENDER)
    )
    ofctl = ["ovs-ofctl", "-O", "OpenFlow13"]
    meter = meter_id(NETWORK, (SWITCH, "ch1"), FlowClass.BACKGROUND)
    queue_id = QUEUE_ID[FlowClass.BACKGROUND]
    qos = _out("ovs-vsctl", "get", "port", CIRCUIT_PORT, "qos")
    queue = _out("ovs-vsctl", "get", "qos", qos, f"queues:{queue_id}")
    rate_kbps = re.search(rf"meter={meter} .*?rate=(\d+)", _out(*ofctl, "dump-meters", SWITCH), re.DOTALL)
    unlike = f"meter={meter},kbps,burst,stats,bands=type=drop,rate={rate_kbps[1] if rate_kbps else 0},burst_size=30000"
    extra = f"cookie={cookie(1):#x},table=1,priority=7,tcp,actions=drop"
    htb = ["dev", CIRCUIT_PORT, "parent", "1:fffe", "classid", f"1:{queue_id + 1:x}", "htb"]
    slow = ["rate", "20mbit", "ceil", "100mbit", "burst", "64k"]
    return [
        Break("rule deleted", [*ofctl, "--strict", "del-flows", SWITCH, other], "flow", "missing"),
        Break("the traffic's own rule deleted", [*ofctl, "--strict", "del-flows", SWITCH, own], "flow", "missing"),
        Break(
            "rule changed", [*ofctl, "--strict", "mod-flows", SWITCH, f"{other},actions=drop"], "flow", "misconfigured"
        ),
        Break("rule added", [*ofctl, "add-flow", SWITCH, extra], "flow", "excess"),
        Break("meter's burst", [*ofctl, "mod-meter", SWITCH, unlike], "meter", "misconfigured"),
        Break(
            "queue's rate",
            ["ovs-vsctl", "set", "queue", queue, "other_config:min-rate=20000000"],
            "queue",
            "misconfigured",
        ),
        Break("queue off its port", ["ovs-vsctl", "remove", "qos", qos, "queues", "2"], "queue", "missing"),
        Break("class in the kernel", ["tc", "class", "change", *htb, *slow], "htb", "misconfigured"),
    ]


def run(directory: Path) -> dict[str, Any]:
    """Return what was seen: of audits of a proper site, of each break and its repair, and of the traffic meanwhile.

    Raises:
        AssertionError: something did not come about in time.
        RuntimeError: a program ended with an error.
    """
    idle = frozenset(host.name for host in NETWORK.hosts) - {SENDER, RECEIVER}
    with emulation(
        NETWORK,
        FLOWS,
        directory,
        packets=PacketModel(single=False),
        without_agent=idle,
        settings=MoreSettings(SETTINGS),
    ) as site:
        print("drift: the site is up", flush=True)
        eventually(lambda: _audits(site) >= 2 and _all_seen(site), within_s=60, what="audits of all")
        before = site.get("/v1/drift")
        _others_rules()
        _start_traffic(site)
        print("drift: the traffic runs", flush=True)
        seen = [_broken(site, one) for one in breaks()]
        audited = _audits(site)
        eventually(lambda: _audits(site) >= audited + 2, within_s=60, what="two more audits")
        traffic_still_ran = site.processes["iperf3"].poll() is None
        after, flows = site.get("/v1/drift"), _out("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", SWITCH)
        traffic = _traffic(site)
        drops = {"line": line_drops(site.realised, "chile-illinois"), "port": port_drops(site.realised)}
        metrics = site.api.get("/metrics").text
    return {
        "before": before,
        "after": after,
        "breaks": seen,
        "traffic": traffic,
        "traffic_still_ran": traffic_still_ran,
        "drops": drops,
        "foreign_rule_there": f"cookie={FOREIGN}" in flows,
        "ignored_rule_there": f"cookie={IGNORED:#x}" in flows,
        "metrics": [line for line in metrics.splitlines() if line.startswith("headway_drift")],
        "plan": json.loads((directory / "plan.json").read_text()),
    }


def _all_seen(site: Emulation) -> bool:
    """Return whether the latest audit of each place has found something in its place: hosts tell once a second."""
    return all(place["latest"]["proper"] for place in site.get("/v1/drift")["places"])


def _audits(site: Emulation) -> int:
    """Return how often the place that was audited least was audited."""
    return min(int(place["audits"]) for place in site.get("/v1/drift")["places"])


def _others_rules() -> None:
    """Add a rule of somebody else's above all of ours, and one that has our cookie and is on the ignore list."""
    unused = "tcp,nw_src=10.20.20.20,nw_dst=10.20.20.100,tp_dst=9,actions=drop"
    for added in (
        f"cookie={FOREIGN},priority=900,{unused}",
        f"cookie={IGNORED:#x},table=1,priority=900,{unused}",
    ):
        _out("ovs-ofctl", "-O", "OpenFlow13", "add-flow", SWITCH, added)


def _start_traffic(site: Emulation) -> None:
    """Let a planned flow run at its rate; return once it does."""
    (site.directory / "plan.json").write_text(json.dumps(site.get("/v1/plan")["installed"]))
    server = site.spawn("iperf3-server", ["iperf3", "-s", "-1", "-p", str(PORT), "--json"], host=RECEIVER)
    address = str(NETWORK.host(RECEIVER).ip)
    client = ["iperf3", "-c", address, "-p", str(PORT), "--time", str(TRAFFIC_S), "--json"]

    def connected() -> bool:
        process = site.processes.get("iperf3")
        if process is None or process.poll() is not None:
            site.spawn("iperf3", client, host=SENDER)
        return server.poll() is None and any(
            e["connections"] > 0
            for host in site.get("/v1/hosts")
            if host["name"] == SENDER
            for e in host["allocations"]
        )

    eventually(connected, within_s=60, what="the traffic runs")


def _broken(site: Emulation, one: Break) -> dict[str, Any]:
    """Break something by hand; return how it was repaired."""

    def repaired() -> int:
        tallies = site.get("/v1/drift")["tallies"]
        return sum(
            t["repaired"] for t in tallies if (t["place"], t["kind"], t["shape"]) == (SWITCH, one.kind, one.shape)
        )

    def messages() -> int:
        return sum(place["messages"] for place in site.get("/v1/drift")["places"])

    count, sent = repaired(), messages()
    _out(*one.command)
    broken_us = now_us()
    eventually(lambda: repaired() > count, within_s=30, what=f"{one.name} is repaired")
    print(f"drift: {one.name}: repaired", flush=True)
    (place,) = (p for p in site.get("/v1/drift")["places"] if p["place"] == SWITCH)
    drifted = place["drifted"]
    return {
        "name": one.name,
        "kind": one.kind,
        "shape": one.shape,
        "repaired_after_s": (now_us() - broken_us) / 1e6,
        "took_us": drifted["took_us"],
        "messages": messages() - sent,
        "expected_messages": one.messages,
        "deviations": drifted["deviations"],
    }


def _traffic(site: Emulation) -> dict[str, Any]:
    """Return what the traffic was: by its sender what was sent again, by its receiver the rate of each second."""
    eventually(lambda: site.processes["iperf3-server"].poll() is not None, within_s=2 * TRAFFIC_S, what="its end")
    eventually(lambda: site.processes["iperf3"].poll() is not None, within_s=10, what="the sender's end")
    sent = json.loads((site.directory / "logs" / "iperf3.log").read_text())
    got = json.loads((site.directory / "logs" / "iperf3-server.log").read_text())
    for end in (sent, got):
        if "error" in end:
            raise RuntimeError(f"iperf3: {end['error']}")
    return {
        "retransmits": sent["end"]["sum_sent"]["retransmits"],
        "each_second_bps": [round(i["sum"]["bits_per_second"]) for i in got["intervals"]],
    }


def _out(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json and logs")
    args = parser.parse_args()

    def scenario(folder: Path) -> None:
        began_s = time.monotonic()
        seen = run(folder)
        write_report(folder, seen | stated(aims(seen, INTERVAL_S)))
        print(f"drift: {time.monotonic() - began_s:.0f} s of its own time", flush=True)

    return kept("drift", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
