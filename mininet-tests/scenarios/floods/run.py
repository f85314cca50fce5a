"""Hosts that misbehave: floods of every kind against an image on its way, from both ends of the circuit.

Run inside ``isolated.sh``. Writes what it saw to ``report.json``; it does not know whether it is in the lab.
"""

import argparse
import json
import os
import re
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mininet_tests.lab import commands
from mininet_tests.lab.kept import kept
from mininet_tests.scenarios.floods.aims import aims
from mininet_tests.scenarios.floods.frames import FLOOD_MAC, JUMBO_BYTES, SMALL_BYTES
from mininet_tests.scenarios.floods.site import TCP_PORTS, Rogue, arrived_bytes, count_floods, join, last_line, look
from mininet_tests.site.emulation import Emulation, emulation
from mininet_tests.site.topos import PacketModel
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.reports import write_report
from topology.network import Network

RATE_BPS = 100_000_000
FLOOD_BPS = 2 * RATE_BPS  # a rogue's interface is that fast; a planned host's has the circuit's rate
SMALL_BPS = 20_000 * 8 * (SMALL_BYTES + 14)  # as many small frames as the virtual CPU takes besides
RECEIVER, SENDER, PARTNER = "arch", "base20", "base21"  # the two send the urgent image together
STANDING = {"base22": "predictable", "base23": "background"}
# The image's flows stand too: an announced one has its rate only while its host has something to send.
CLASSES = {SENDER: "urgent", PARTNER: "urgent"} | STANDING
FLOWS = [{"name": f"{c}-{host}", "class": c, "from": host, "to": RECEIVER} for host, c in CLASSES.items()]
PORTS = {SENDER: 5101, PARTNER: 5102, "base22": 5301, "base23": 5302}
NEAR = Rogue("rogue1", "ls1", "10.20.20.66")
FAR = Rogue("rogue2", "ch1", "10.20.20.67")
PART_BYTES = 5_000_000
LEAD_S, REST_S = 0.5, 0.5
MARKS = {"ef": 46, "af31": 26, "le": 1, "be": 0, "cs6": 48}


@dataclass(frozen=True, slots=True)
class FloodCase:
    """One flood.

    Attributes:
        name: of the case.
        kind: of :mod:`floods_frames`; ``tcp`` for 64 connections; ``""`` for none.
        by: the host that sends it.
        to: the host it is sent to.
        name_of: whose address it uses, if not its own.
        dscp: its mark.
        rate_bps: what it offers.
    """

    name: str
    kind: str = "udp"
    by: str = NEAR.name
    to: str = RECEIVER
    name_of: str = ""
    dscp: int = 46
    rate_bps: int = FLOOD_BPS


QUICK = (
    FloodCase("undisturbed", kind=""),
    FloodCase("liar-in-the-same-class", by=PARTNER),
    FloodCase("in-the-sender-s-name", name_of=SENDER),
    *(FloodCase(f"udp-{mark}", dscp=dscp) for mark, dscp in MARKS.items()),
    FloodCase("tcp-64", kind="tcp"),
    FloodCase("arp", kind="arp"),
    FloodCase("random-sources", kind="random-sources"),
    FloodCase("back-udp", by=FAR.name, to=SENDER),
    FloodCase("back-in-the-receiver-s-name", by=FAR.name, to=SENDER, name_of=RECEIVER),
    FloodCase("back-by-the-receiver-to-the-partner", by=RECEIVER, to=PARTNER),
    FloodCase("back-tcp-64", kind="tcp", by=FAR.name, to=NEAR.name),
    FloodCase("undisturbed-again", kind=""),
)
MORE = (
    *(FloodCase(kind, kind) for kind in ("unknown-ethertypes", "broadcast", "ipv6", "jumbo", "fragments", "vlan")),
    FloodCase("unknown-protocol", kind="unknown-protocol"),
    FloodCase("udp-small", kind="small", rate_bps=SMALL_BPS),
    FloodCase("udp-to-an-unplanned-host", to=FAR.name),
    FloodCase("in-the-partner-s-name", name_of=PARTNER),
    FloodCase("in-the-database-s-name", name_of="base22"),
    FloodCase("arp-in-the-sender-s-name", kind="arp", name_of=SENDER),
    FloodCase("back-in-the-receiver-s-name-to-the-partner", by=FAR.name, to=PARTNER, name_of=RECEIVER),
    FloodCase("back-arp", kind="arp", by=FAR.name, to=SENDER),
    FloodCase("liar-in-the-background", by="base23"),
    FloodCase("no-agent-tcp-64-in-the-same-class", kind="tcp", by=PARTNER),
    FloodCase("undisturbed-at-last", kind=""),
)
CASES = QUICK + MORE


def run(directory: Path, cases: list[FloodCase]) -> dict[str, Any]:
    """Return what was seen of every case.

    Raises:
        AssertionError: something did not come about in time.
        RuntimeError: a program ended with an error.
    """
    network = chile_illinois(RATE_BPS)
    with emulation(network, FLOWS, directory, packets=PacketModel(single=True)) as site:
        for rogue in (NEAR, FAR):
            join(site, rogue, JUMBO_BYTES)
        count_floods(site, (*(h.name for h in network.hosts), NEAR.name, FAR.name))
        feed = _prepared(site)
        seen = [_case(site, case, feed) for case in cases]
        plan = site.get("/v1/plan")
        os.close(feed)
    undisturbed_s = statistics.median(case["urgent_s"] for case in seen if not case["kind"])
    for case in seen:
        case["ratio"] = case["urgent_s"] / undisturbed_s
        case["flood_share"] = case["flood_arrived_bps"] / RATE_BPS
    return {
        "rate_bps": RATE_BPS,
        "part_bytes": PART_BYTES,
        "limit_s": _limit_s(plan, network),
        "undisturbed_s": undisturbed_s,
        "cases": seen,
        "plan": plan,
    }


def _prepared(site: Emulation) -> int:
    """Start all planned flows; return what the sender's orders go into."""
    address = str(site.realised.network.host(RECEIVER).ip)
    flow = commands.module("scenarios.floods.flow", "--port", str(PORTS[SENDER]))
    site.spawn("receiver", flow, host=RECEIVER)
    for host in STANDING:
        site.spawn(f"iperf3-server-{host}", ["iperf3", "--server", "--port", str(PORTS[host])], host=RECEIVER)
    eventually(lambda: "listening" in site.tail("receiver"), within_s=60, what="the receiver listens")
    for host in STANDING:
        client = ["iperf3", "--client", address, "--port", str(PORTS[host]), "--time", "3600"]
        site.spawn(f"iperf3-{host}", client, host=host)
    read_end, write_end = os.pipe()
    site.spawn("sender", [*flow, "--to", address], host=SENDER, stdin=read_end)
    os.close(read_end)
    eventually(lambda: "connected" in site.tail("sender"), within_s=60, what="the sender connects")
    for _ in range(2):  # the first opens the receive window
        _transfer_s(site, write_end)
    return write_end


def _transfer_s(site: Emulation, feed: int) -> float:
    """Return how long a part of the image took."""
    log = site.directory / "logs" / "sender.log"
    before = len(log.read_text().splitlines())
    os.write(feed, b"%d\n" % PART_BYTES)
    eventually(lambda: len(log.read_text().splitlines()) > before, within_s=60, what="a part of the image is confirmed")
    return float(log.read_text().splitlines()[-1])


def _case(site: Emulation, case: FloodCase, feed: int) -> dict[str, Any]:
    """Return what a part of the image, the other planned flows and the flood itself came to."""
    target = case.to
    if case.name.startswith("no-agent"):
        site.stop(f"agent-{case.by}")
    if case.kind:
        _start(site, case)
    time.sleep(LEAD_S)
    before, arrived, started_s = look(site, PORTS), arrived_bytes(site, target), time.monotonic()
    seconds = _transfer_s(site, feed)
    arrived = arrived_bytes(site, target) - arrived
    lasted_s = time.monotonic() - started_s  # from count to count: to ask for one takes some hundredths of a second
    seen = look(site, PORTS).since(before)
    sent: object = {}
    if case.kind:
        if site.processes["flood"].poll() is not None:
            raise RuntimeError(f"{case.name}: the flood has ended by itself: {site.tail('flood')}")
        site.stop("flood")
        sent = last_line(site, "flood") if case.kind != "tcp" else {}
    ended = [text for text in site.ended() if not text.startswith(("flood", "iperf3-server", f"agent-{PARTNER}"))]
    if ended:
        raise RuntimeError("; ".join(ended))
    time.sleep(REST_S)
    found = {"urgent_s": seconds, "flood_arrived_bps": round(arrived * 8 / lasted_s), "flood_sent": sent, **seen}
    print(f"{case.name:45} {json.dumps(found)}", flush=True)
    return {**asdict(case), **found}


def _start(site: Emulation, case: FloodCase) -> None:
    """Start a flood, and return when it is under way."""
    rogues = {rogue.name: rogue.ip for rogue in (NEAR, FAR)}
    address = rogues | {h.name: str(h.ip) for h in site.realised.network.hosts}
    hardware = dict.fromkeys(rogues, FLOOD_MAC) | {h.name: h.mac for h in site.realised.network.hosts}
    if case.kind == "tcp":
        port, server = str(TCP_PORTS[CASES.index(case) % len(TCP_PORTS)]), f"iperf3-server-{case.name}"
        site.spawn(server, ["iperf3", "--server", "--one-off", "--forceflush", "--port", port], host=case.to)
        eventually(lambda: "listening" in site.tail(server), within_s=30, what="the flood's server listens")
        client = ["iperf3", "--client", address[case.to], "--port", port, "--parallel", "64", "--time", "60"]
        site.spawn("flood", [*client, "--tos", str(case.dscp << 2)], host=case.by)
        return
    sender = commands.module(
        "scenarios.floods.sender", "--interface", f"{case.by}-eth0", "--kind", case.kind,
        "--rate", str(case.rate_bps), "--source", address[case.name_of or case.by], "--target", address[case.to],
        "--target-mac", hardware[case.to], "--dscp", str(case.dscp),
    )  # fmt: skip
    site.spawn("flood", sender, host=case.by)
    eventually(lambda: "flooding" in site.tail("flood"), within_s=30, what="the flood begins")


def _limit_s(plan: dict[str, Any], network: Network) -> float:
    """Return the least time that a part can take at the sender's rate on a warm connection."""
    (entry,) = (a for a in plan["installed"]["allocations"] if a["path"][0] == SENDER)
    rtt_s = network.path_rtt_us(network.path(SENDER, RECEIVER)) / 1e6
    payload_bps: int = entry["payload_bps"]
    return PART_BYTES * 8 / payload_bps + rtt_s


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json and logs")
    parser.add_argument("--quick", action="store_true", help="half of the cases")
    parser.add_argument("--only", default="", metavar="REGEX", help="these cases, and the undisturbed ones")
    args = parser.parse_args()
    cases = [c for c in (QUICK if args.quick else CASES) if not c.kind or re.search(args.only, c.name)]

    def scenario(folder: Path) -> None:
        seen = run(folder, cases)
        found = aims(seen, frozenset(case.name for case in QUICK), PARTNER)
        write_report(folder, seen | stated(found))

    return kept("floods", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
