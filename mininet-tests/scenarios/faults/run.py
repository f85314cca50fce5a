"""What breaks around the plan while traffic runs: switches, OpenFlow, controller, database; one and two at once.

Run inside ``isolated.sh``. Each case breaks something, mends it and waits until all is as before; ``report.json`` says
what the traffic noticed. It does not know whether it is in the lab.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mininet_tests.lab import commands
from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.probes.invariant_watch import InvariantWatch
from mininet_tests.probes.switch_state import SwitchesSeen, applied_messages
from mininet_tests.scenarios.faults.aims import aims
from mininet_tests.site.emulation import Emulation, emulation, now_us
from mininet_tests.site.faults import SEGMENT_BYTES, SiteFaults, Traffic
from mininet_tests.site.lsst import FLOWS, RECEIVER
from mininet_tests.site.standing import CONVERGES_WITHIN_S, PORTS, RATE_BPS, settled
from mininet_tests.site.tcp_flows import SWITCH_S, until
from mininet_tests.site.topos import PacketModel, port_drops
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois

IMAGER = "base20"
AFTER_S = 1.0  # watched after all is as before
FLOWING_OVER_S, FLOWING_SHARE = 1.0, 0.9
AWAY_S = 4.0  # longer than a lease


@dataclass(frozen=True, slots=True)
class FaultCase:
    """One fault: what breaks, how it is mended, and how long it lasts in between."""

    break_it: Callable[[], object]
    mend: Callable[[], object]
    lasts_s: float = 0.0


def cases(site: Emulation, faults: SiteFaults) -> dict[str, FaultCase]:
    """Return every case by name."""
    ovs = site.ovs

    def kill_both() -> None:
        faults.kill("controller")
        faults.end_switch(orderly=False)

    def start_both() -> None:
        ovs.start_switch()
        faults.start_controller()

    def silence_both() -> None:
        ovs.stop_database()
        faults.cut_openflow()

    def announced_while_cut() -> None:
        faults.block_openflow()
        site.announce("image", 50_000_000, [IMAGER], RECEIVER)

    def nothing() -> None:
        """Nothing is left to mend."""

    return {
        "openflow cut": FaultCase(faults.cut_openflow, nothing, 0.5),
        "openflow silent": FaultCase(faults.block_openflow, faults.unblock_openflow, AWAY_S),
        "openflow silent, plan changes": FaultCase(announced_while_cut, faults.unblock_openflow, AWAY_S),
        "plan changes back": FaultCase(lambda: site.release("image"), nothing),
        "vswitchd killed": FaultCase(lambda: faults.end_switch(orderly=False), ovs.start_switch),
        "vswitchd restarted": FaultCase(lambda: faults.end_switch(orderly=True), ovs.start_switch),
        "vswitchd away": FaultCase(lambda: faults.end_switch(orderly=False), ovs.start_switch, AWAY_S),
        "controller killed": FaultCase(lambda: faults.kill("controller"), faults.start_controller),
        "controller away": FaultCase(lambda: faults.kill("controller"), faults.start_controller, 2 * AWAY_S),
        "database away": FaultCase(ovs.stop_database, ovs.start_database, AWAY_S),
        "database and openflow": FaultCase(silence_both, ovs.start_database, AWAY_S),
        "controller and vswitchd": FaultCase(kill_both, start_both),
    }


def run(names: list[str], directory: Path) -> dict[str, Any]:
    """Return what each case did to the traffic.

    Raises:
        AssertionError: something did not come about in time.
        RuntimeError: a program ended with an error.
    """
    network = chile_illinois(RATE_BPS)  # so that whatever is lost is a fault's
    # Super-packets: the line's figures are not the question here, and programs and samples fill the CPU already.
    with emulation(
        network, FLOWS, directory, packets=PacketModel(single=False), without_agent=frozenset({"base21"})
    ) as site:
        traffic = Traffic(site)
        for host, port in PORTS.items():
            traffic.open(host, host, RECEIVER, port)
            traffic.feed(host)
        with InvariantWatch(traffic, RECEIVER) as watch, IdleMeter() as idle:
            settled(traffic)
            every = cases(site, SiteFaults(site))
            seen = {name: _played(traffic, watch, name, every[name]) for name in names or every}
        traffic.close()
    return {
        "circuit_wire_bps": RATE_BPS,
        "lease_s": 3.0,
        "faults": seen,
        "violations": len(watch.found),
        "violated": [f"{found.at_us} {found.text}" for found in watch.found[:100]],
        "samples": len(watch.samples),
        "cpu_least_idle_share": min(idle.shares),
    }


def flowing(traffic: Traffic, watch: InvariantWatch) -> bool:
    """Return whether, in the last second, as much has arrived of all standing traffic as its hosts may send."""
    return all(
        watch.arrived_bps(host, FLOWING_OVER_S) >= FLOWING_SHARE * 8 * traffic.streams[host].told.pacing_bytes_per_s
        for host in PORTS
    )


def _played(traffic: Traffic, watch: InvariantWatch, name: str, case: FaultCase) -> dict[str, Any]:
    """Return what one case did; it begins when all that runs is at its rate, and ends when it is so again."""
    site = traffic.site
    eventually(lambda: flowing(traffic, watch), within_s=CONVERGES_WITHIN_S, what="the traffic is at its rate")
    log = site.directory / "logs" / "controller.log"
    rules, log_bytes = SwitchesSeen.now(site.realised), log.stat().st_size
    told = {host: stream.told for host, stream in traffic.streams.items()}
    drops, samples, found = port_drops(site.realised), len(watch.samples), len(watch.found)
    broken_us = now_us()
    case.break_it()
    until(broken_us / 1e6 - time.time() + time.monotonic() + case.lasts_s)
    mended_us = now_us()
    case.mend()
    settled(traffic)
    settled_us = now_us()
    until(time.monotonic() + AFTER_S)
    eventually(lambda: flowing(traffic, watch), within_s=CONVERGES_WITHIN_S, what="the traffic is at its rate again")
    after = SwitchesSeen.now(site.realised)
    seen = {
        "lasted_ms": (mended_us - broken_us) / 1000,
        "settled_after_ms": (settled_us - mended_us) / 1000,
        "flowing_after_ms": (now_us() - mended_us) / 1000,
        "worst_gap_ms": {host: watch.longest_gap_ms(host, broken_us, now_us()) for host in PORTS},
        "resent_bytes": {
            host: (stream.told.retransmitted_segments - told[host].retransmitted_segments) * SEGMENT_BYTES
            for host, stream in traffic.streams.items()
        },
        "edge_drops_packets": {port: count - drops[port] for port, count in port_drops(site.realised).items()},
        "fell_back": fell_back(watch, samples),
        "messages": applied_messages(log, log_bytes),
        "rules": after.rules,
        "rules_put_again": after.younger_than(rules),
        "state_as_before": after.state == rules.state,
        "violations": [each.text for each in watch.found[found:]],
        "samples": len(watch.samples) - samples,
        "samples_without_switch": sum(sample.meters is None for sample in watch.samples[samples:]),
    }
    print(f"faults: {name}: {json.dumps(seen)}", flush=True)
    return seen


def fell_back(watch: InvariantWatch, since: int) -> list[str]:
    """Return the hosts whose connection ran by the host's own algorithm in some sample."""
    return sorted({name for sample in watch.samples[since:] for name in sample.on_their_own})


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json and logs")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="only this one, and so on")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)

    def scenario(folder: Path) -> None:
        replayed = commands.isolated(*commands.module("scenarios.faults.switches"))
        printed = subprocess.run(replayed, check=True, stdout=subprocess.PIPE, text=True).stdout
        seen = run(args.case, folder) | {"points": json.loads(printed)["points"]}
        (folder / "report.json").write_text(json.dumps(seen | stated(aims(seen)), indent=2) + "\n")

    return kept("faults", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
