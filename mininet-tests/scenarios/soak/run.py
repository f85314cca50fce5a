"""Random announcements, reservations and faults on the LSST path, with the invariant watched from outside all the time.

Run inside ``isolated.sh``. The same seed is the same sequence. ``report.json`` is written after every few events, so
that a soak that is interrupted leaves what it has; ``--first N`` goes on from there.
"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.probes.invariant_watch import InvariantWatch
from mininet_tests.scenarios.soak.aims import aims
from mininet_tests.scenarios.soak.events import OWN_PORTS, RESERVABLE, events
from mininet_tests.scenarios.soak.play import LOOK_S, PromisedTransfer, Soak, SoakFault, stream_name
from mininet_tests.site.emulation import emulation
from mininet_tests.site.faults import SiteFaults, Traffic
from mininet_tests.site.lsst import DATABASE, FLOWS, RECEIVER
from mininet_tests.site.standing import PORTS, RATE_BPS, settled
from mininet_tests.site.tcp_flows import SWITCH_S
from mininet_tests.site.topos import PacketModel, line_drops
from mininet_tests.testing.aims import stated
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.reports import write_report

IMAGE_PORTS = {"base20": 5101, "base21": 5201}
RESERVED_PORT = 5401
LAYERS_EVERY_S = 0.2
KEPT_EVERY = 10  # events


def run(args: argparse.Namespace, directory: Path) -> None:
    """Play the events; ``report.json`` is in ``args.out`` afterwards.

    Raises:
        AssertionError: the site did not come up.
        RuntimeError: a program ended with an error, or an answer makes no sense.
    """
    network = chile_illinois(RATE_BPS)
    rtt_s = network.path_rtt_us(network.path("base20", RECEIVER)) / 1e6
    sequence = events(args.seed, args.count, args.spacing, RATE_BPS, rtt_s)
    with emulation(network, FLOWS, directory, packets=PacketModel(single=False, loss_ppm=args.loss_ppm)) as site:
        traffic = Traffic(site)
        for host, port in (PORTS | IMAGE_PORTS).items():
            traffic.open(host, host, RECEIVER, port)
        for port, (sender, receiver) in enumerate(RESERVABLE[:2], start=RESERVED_PORT):
            traffic.open(stream_name(sender, receiver), sender, receiver, port)
        for (sender, receiver), port in OWN_PORTS.items():
            traffic.open(stream_name(sender, receiver, port), sender, receiver, port)
        for host in PORTS:
            traffic.feed(host)
        settled(traffic)
        # A report is made beside the events: while they waited for it, what is confirmed meanwhile would count as late.
        with (
            InvariantWatch(traffic, RECEIVER, args.layers_every) as watch,
            IdleMeter() as idle,
            ThreadPoolExecutor(1) as beside,
        ):
            soak, began_s = Soak(traffic, SiteFaults(site)), time.monotonic()
            soak.wait(1.0)
            for event in islice(sequence, args.first, None):
                soak.play(event)
                done = event.number + 1
                _say(args, soak, watch, done, time.monotonic() - began_s)
                if done % KEPT_EVERY == 0:
                    beside.submit(_keep_so_far, args, soak, watch, done)
            soak.finish()
        seen = report(args, soak, watch, args.count)
        seen |= {"complete": True, "line_drops_packets": line_drops(site.realised, "chile-illinois")}
        _keep(args, seen | {"cpu_least_idle_share": min(idle.shares), "duration_s": time.monotonic() - began_s})
        traffic.close()


def report(args: argparse.Namespace, soak: Soak, watch: InvariantWatch, done: int) -> dict[str, Any]:
    """Return what has come of the events so far."""
    late = [transfer for transfer in soak.transfers if lateness_ms(transfer) > LOOK_S * 1000]
    unexplained = [
        t for t in late if not any(f.covers(t.began_us, max(t.promised_us, t.confirmed_us)) for f in soak.hit)
    ]
    drops = dropped(soak.drops)
    outside = [d for d in drops if not any(fault.covers(d[0], d[1]) for fault in soak.hit)]
    gaps = {host: gap_ms(watch, soak.hit, host) for host in PORTS}
    return {
        "seed": args.seed,
        "events": done - args.first,
        "transitions": done - args.first - len(soak.hit),
        "faults": len(soak.hit),
        "violations": len(watch.found),
        "unexplained_drops": sum(count for _, _, count, _ in outside),
        "worst_gap_ms": gaps[DATABASE]["in_all"],  # the background may be made to wait, this one may not
        "late_promises": len(unexplained),
        "promises": len(soak.transfers),
        "worst_lateness_ms": max((lateness_ms(t) for t in soak.transfers), default=0.0),
        "late_by_a_fault": len(late) - len(unexplained),
        "unconfirmed": [t.name for t in soak.transfers if not t.confirmed_us],
        "unsettled": [f"{fault.kind} at {fault.broken_us}" for fault in soak.hit if not fault.settled_us],
        "drops_by_faults": sum(count for _, _, count, _ in drops) - sum(count for _, _, count, _ in outside),
        "answers": dict(soak.counts),
        "gaps_ms": gaps,
        "samples": len(watch.samples),
        "violated": [f"{found.at_us} {found.text}" for found in watch.found[:100]],
        "stood_at_violations": [found.stood for found in watch.found[:10]],
        "dropped": outside[:100],
        "late": [_transfer(t) | {"stood": t.stood} for t in unexplained],
        "transfers": [_transfer(t) for t in soak.transfers],
        "hit": [_fault(fault) for fault in soak.hit],
    }


def lateness_ms(transfer: PromisedTransfer) -> float:
    """Return by how much a transfer was later than promised, negative if it was earlier; 0 while it is under way."""
    return (transfer.confirmed_us - transfer.promised_us) / 1000 if transfer.confirmed_us else 0.0


def dropped(samples: list[tuple[int, dict[str, int]]]) -> list[tuple[int, int, int, str]]:
    """Return (from, to, packets, place) wherever a count of drops grew; one that fell has begun anew."""
    found = []
    for (from_us, before), (to_us, after) in pairwise(samples):
        for place, count in after.items():
            grown = count - before.get(place, 0) if count >= before.get(place, 0) else count
            if grown:
                found.append((from_us, to_us, grown, place))
    return found


def gap_ms(watch: InvariantWatch, hit: list[SoakFault], host: str) -> dict[str, float]:
    """Return the longest time in which nothing of a standing flow arrived, in all and where no fault was near."""
    times = [at_us for at_us, _ in watch.arrived[host]][1:]
    longest = sorted(watch.gaps(host, times[0], times[-1]), reverse=True)
    alone = (gap_us for gap_us, a, b in longest if not any(fault.covers(a, b) for fault in hit))
    return {"in_all": longest[0][0] / 1000, "without_faults": next(alone, 0) / 1000}


def _transfer(transfer: PromisedTransfer) -> dict[str, Any]:
    return {
        "name": transfer.name,
        "began_us": transfer.began_us,
        "promised_ms": (transfer.promised_us - transfer.began_us) / 1000,
        "late_ms": lateness_ms(transfer),
    }


def _fault(fault: SoakFault) -> dict[str, Any]:
    return {
        "kind": fault.kind,
        **fault.what,
        "broken_us": fault.broken_us,
        "mended_ms": (fault.mended_us - fault.broken_us) / 1000 if fault.mended_us else None,
        "settled_ms": (fault.settled_us - fault.broken_us) / 1000 if fault.settled_us else None,
    }


def _say(args: argparse.Namespace, soak: Soak, watch: InvariantWatch, done: int, passed_s: float) -> None:
    left_s = passed_s / (done - args.first) * (args.count - done)
    print(
        f"soak: {done} of {args.count}, {len(soak.transfers)} promises, {len(soak.hit)} faults, "
        f"{len(watch.found)} violations; about {left_s:.0f} s of its own time left",
        flush=True,
    )


def _keep_so_far(args: argparse.Namespace, soak: Soak, watch: InvariantWatch, done: int) -> None:
    _keep(args, report(args, soak, watch, done) | {"complete": False})


def _keep(args: argparse.Namespace, seen: dict[str, Any]) -> None:
    write_report(args.out, seen | stated(aims(seen)))


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json and logs")
    parser.add_argument("--seed", type=int, default=1, help="of the sequence (default: %(default)s)")
    parser.add_argument("--count", type=int, default=200, help="events (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with event N (default: %(default)s)")
    parser.add_argument("--spacing", type=float, default=4.0, metavar="S", help="mean seconds between two events")
    parser.add_argument(
        "--layers-every",
        type=float,
        default=LAYERS_EVERY_S,
        metavar="S",
        help="between two looks at sockets, meters and queues (default: %(default)s)",
    )
    parser.add_argument("--loss-ppm", type=int, default=0, help="of the line, each way (default: %(default)s)")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)
    return kept("soak", args.out, partial(run, args))


if __name__ == "__main__":
    sys.exit(main())
