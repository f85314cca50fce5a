"""What breaks around the plan while traffic runs: switches, OpenFlow, controller, database; one and two at once.

Run inside ``isolated.sh``. Each case breaks something, mends it and waits until all is as before; ``report.json`` says
what the traffic noticed. It does not know whether it is in the lab.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mininet_tests.lab import commands
from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.probes.invariant_watch import InvariantWatch
from mininet_tests.probes.switch_state import SwitchesSeen, applied_messages
from mininet_tests.scenarios.faults.aims import aims
from mininet_tests.scenarios.faults.cases import IMAGE, IMAGE_PORT, IMAGER, FaultCase, cases
from mininet_tests.scenarios.faults.pair import pair
from mininet_tests.scenarios.faults.points import GROUPS
from mininet_tests.site.emulation import Emulation, emulation, now_us
from mininet_tests.site.faults import SEGMENT_BYTES, SiteFaults, Traffic
from mininet_tests.site.lsst import FLOWS, RECEIVER
from mininet_tests.site.standing import CONVERGES_WITHIN_S, PORTS, RATE_BPS, settled
from mininet_tests.site.tcp_flows import SWITCH_S, until
from mininet_tests.site.topos import PacketModel, port_drops
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.reports import write_report

AFTER_S = 1.0  # watched after all is as before
ONE_PERCENT = "one-percent"  # of the longpath scenario
PAIR = "pair"  # what is promised to one pair twice; a case like others, by its name
FLOWING_OVER_S, FLOWING_SHARE = 1.0, 0.9


def run(names: list[str], directory: Path, layers_every_s: float) -> dict[str, Any]:
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
        traffic.open(IMAGE, IMAGER, RECEIVER, IMAGE_PORT)
        with InvariantWatch(traffic, RECEIVER, layers_every_s) as watch, IdleMeter() as idle:
            settled(traffic)
            every = cases(traffic, SiteFaults(site))
            two = pair(traffic) if not names or PAIR in names else None
            seen = {name: _played(traffic, watch, name, every[name]) for name in names or every if name in every}
        traffic.close()
    return {
        "circuit_wire_bps": RATE_BPS,
        "lease_s": 3.0,
        "faults": seen,
        PAIR: two,
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
    rules, log_bytes = _unchanged(site, log)
    told = {host: stream.told for host, stream in traffic.streams.items()}
    drops, samples, found = port_drops(site.realised), len(watch.samples), len(watch.found)
    broken_us = now_us()
    case.break_it()
    until(time.monotonic() + case.lasts_s)
    looked = case.look()
    mended_us = now_us()
    case.mend()
    settled(traffic)
    settled_us = now_us()
    until(time.monotonic() + AFTER_S)
    eventually(lambda: flowing(traffic, watch), within_s=CONVERGES_WITHIN_S, what="the traffic is at its rate again")
    after = SwitchesSeen.now(site.realised)
    seen = looked | {
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
        "most_sockets_bps": most_sockets_bps(watch, samples),
        "samples": len(watch.samples) - samples,
        "samples_without_switch": sum(sample.meters is None for sample in watch.samples[samples:]),
    }
    print(f"faults: {name}: {json.dumps(seen)}", flush=True)
    return seen


def _unchanged(site: Emulation, log: Path) -> tuple[SwitchesSeen, int]:
    """Return what the switches hold, read while no step of a plan is taken, and how long the controller's log is."""
    deadline_s = time.monotonic() + CONVERGES_WITHIN_S
    while time.monotonic() < deadline_s:
        log_bytes, rules = log.stat().st_size, SwitchesSeen.now(site.realised)
        with log.open("rb") as text:
            text.seek(log_bytes)
            if b"transition.step" not in text.read() and SwitchesSeen.now(site.realised).state == rules.state:
                return rules, log_bytes
    raise AssertionError("the plan goes on changing")


def fell_back(watch: InvariantWatch, since: int) -> list[str]:
    """Return the hosts whose connection ran by the host's own algorithm in some sample."""
    return sorted({name for sample in watch.samples[since:] for name in sample.on_their_own})


def _one_percent(folder: Path) -> Any:
    """Return what came of some transfers of which one percent is lost, on a line of its own."""
    command = commands.module("scenarios.longpath.run", "--out", str(folder / "longpath"), "--rounds", "1", ONE_PERCENT)
    subprocess.run(commands.isolated(*command), check=True)
    seen = json.loads((folder / "longpath" / f"{ONE_PERCENT}.json").read_text())
    return seen | {"sent_again_segments": seen["retransmitted_segments"]}


def most_sockets_bps(watch: InvariantWatch, since: int) -> int:
    """Return the most that the hosts' sockets were let send onto one link at once, bit/s of frames."""
    by_link = (hosts for sample in watch.samples[since:] for hosts in sample.hosts_bps.values())
    return max((sum(hosts.values()) for hosts in by_link), default=0)


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json and logs")
    parser.add_argument(
        *("--case", "-c"),
        action="append",
        default=[],
        metavar="NAME",
        help=f"only this one, and so on; {PAIR} and {ONE_PERCENT} are such, too",
    )
    parser.add_argument(
        "--layers-every",
        type=float,
        default=0.1,
        metavar="SECONDS",
        help="between two looks at all layers (default: 0.1)",
    )
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)

    def scenario(folder: Path) -> None:
        replayed = commands.isolated(*commands.module("scenarios.faults.switches", *GROUPS))
        printed = subprocess.run(replayed, check=True, stdout=subprocess.PIPE, text=True).stdout
        seen = run(args.case, folder, args.layers_every) | {
            "points": json.loads(printed)["points"],
            "one_percent": None,
        }
        if not args.case or ONE_PERCENT in args.case:
            seen["one_percent"] = _one_percent(folder)
        write_report(folder, seen | stated(aims(seen)))

    return kept("faults", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
