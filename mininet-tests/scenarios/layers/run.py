"""Does every layer count right? Each one alone as the bottleneck: the rate that was set against what arrives.

MTU 1500 and 9000, with VLAN tag and without, single packets and super-packets. Run inside ``isolated.sh``. Writes
``report.json``.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.probes.datagrams import datagram_bytes
from mininet_tests.scenarios.layers.aims import aims
from mininet_tests.scenarios.layers.probe import charged_bytes, connection, flood, segments_at_once
from mininet_tests.scenarios.layers.site import FLOW_CLASS, HOP, LINE_BPS, Bound, LayersSite, network, sites
from mininet_tests.site.tcp_flows import SWITCH_S
from mininet_tests.testing.aims import stated
from mininet_tests.testing.reports import write_report
from topology.wire import Layer, converted_bps

WARM_UP_S = 0.6  # of a connection: a few round trips
FLOOD_WARM_UP_S = 1.2  # what a meter has saved up is used by then: half a second of its rate, at FLOOD_TIMES
FLOOD_TIMES = 1.6


def set_bps(site: LayersSite, bound: Bound) -> tuple[int, Layer]:
    """Return the rate at which a layer was set, and where that counts."""
    link = site.plan.links[HOP]
    limits = link.classes[FLOW_CLASS]
    return {
        Bound.PACING: (site.entry.payload_bps, Layer.PAYLOAD),
        Bound.METER: (limits.meter_bps, Layer.FRAME),
        Bound.QUEUE: (limits.queue_bps, Layer.FRAME),
        Bound.PORT: (link.circuit_bps, Layer.FRAME),
        Bound.LINE: (LINE_BPS, Layer.WIRE),
    }[bound]


def measured(site: LayersSite, bound: Bound, over_s: float, *, single_packets: bool) -> dict[str, Any]:
    """Return one layer's figures: what was set, what should arrive of it, what did.

    A meter is asked by UDP that fills frames as TCP does, since TCP does not keep a policer busy; each datagram counts
    as the payload of a full segment.
    """
    site.bind(bound)
    framing = site.network.framing_of(HOP)
    rate_bps, layer = set_bps(site, bound)
    payload_bps = expected_bps = converted_bps(rate_bps, layer, Layer.PAYLOAD, framing)
    before = site.dropped()
    if bound is Bound.METER:
        at_once = segments_at_once(framing, single_packets=single_packets)
        with flood(site, int(rate_bps * FLOOD_TIMES), single_packets=single_packets) as arrivals:
            arrived_bps = arrivals.rate_bps(FLOOD_WARM_UP_S, over_s) * framing.mss_bytes / datagram_bytes(framing)
        expected_bps = rate_bps * at_once * framing.mss_bytes // charged_bytes(framing, at_once)
    else:
        with connection(site) as arrivals:
            arrived_bps = arrivals.rate_bps(WARM_UP_S, over_s)
    return {
        "layer": bound.value,
        "set_bps": rate_bps,
        "counted_at": layer.value,
        "payload_bps": payload_bps,
        "expected_payload_bps": expected_bps,
        "arrived_payload_bps": round(arrived_bps),
        "error": arrived_bps / expected_bps - 1,
        "above_set": arrived_bps / payload_bps - 1,
        "dropped": site.dropped() - before,
    }


def run(folder: Path, over_s: float, mtus_bytes: list[int]) -> dict[str, Any]:
    """Return all figures."""
    rows: list[dict[str, Any]] = []
    with sites(folder) as made, IdleMeter() as idle:
        for mtu_bytes in mtus_bytes:
            for vlan in (False, True):
                with made(network(mtu_bytes, vlan=vlan)) as site:
                    rows += [{"mtu_bytes": mtu_bytes, "vlan": vlan} | row for row in _rows(site, over_s, vlan=vlan)]
    return {"rows": rows, "idle_share": idle.verdict().least_idle_share, "seconds_each": over_s}


def _rows(site: LayersSite, over_s: float, *, vlan: bool) -> Iterator[dict[str, Any]]:
    """Yield the figures of one network: by what a packet is, by where its tag is if it has one, and by layer."""
    ways = [(True, False), (False, False), (True, True)] if vlan else [(True, False), (False, False)]
    for single_packets, tags_in_frames in ways:
        site.single_packets(single=single_packets)
        site.tags_in_frames(inside=tags_in_frames)
        what = {"single_packets": single_packets, "tags_in_frames": tags_in_frames}
        for bound in (Bound.QUEUE, Bound.PORT, Bound.LINE) if tags_in_frames else Bound:
            row = what | measured(site, bound, over_s, single_packets=single_packets)
            print(f"layers: {row}", flush=True)
            yield row


def _keep(folder: Path, out: Path) -> None:
    """Copy the report and the agents' logs."""
    for report in folder.glob("*.json"):
        shutil.copyfile(report, out / report.name)
    for log in folder.rglob("log"):
        shutil.copyfile(log, out / f"agent-{log.parent.parent.name}.log")


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json and logs")
    parser.add_argument("--seconds", type=float, default=1.2, help="of steady traffic for each figure")
    parser.add_argument("--mtu", type=int, nargs="+", default=[1500, 9000], help="the networks' MTUs, bytes")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        try:
            report = run(Path(scratch), args.seconds, args.mtu)
            write_report(Path(scratch), report | stated(aims(report)))
        finally:
            args.out.mkdir(parents=True, exist_ok=True)
            _keep(Path(scratch), args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
