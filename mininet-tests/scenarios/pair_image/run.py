"""Images are sent one after the other, and while one of them is under way the controller that leads is killed.

Run inside ``isolated.sh``, best in the lab. Writes what it saw to ``pair-image.json``, its figures to ``report.json``.
"""

import argparse
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.probes.arrivals import Arrivals
from mininet_tests.scenarios.pair_image.report import aims, report
from mininet_tests.scenarios.pair_image.site import PairOfControllers, site_of_a_pair
from mininet_tests.site.emulation import now_us
from mininet_tests.site.host_ports import Ports
from mininet_tests.site.lsst import BACKGROUND, DATABASE, FLOWS, IMAGE_HOSTS, RECEIVER, SENDERS
from mininet_tests.site.tcp_flows import SWITCH_S, Drain, Feeder, TcpStream
from mininet_tests.site.topos import line_drops, port_drops
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.reports import write_report
from topology.units import rate_bps

IMAGES = ("undisturbed", "undisturbed-again", "leader-killed")
WARM_BYTES = 20_000
REST_S = 2.0  # between two images
SENT_WITHIN_S = 120.0


class ImageRuns:
    """The site with its standing flows under way."""

    def __init__(self, pair: PairOfControllers, part_bytes: int, arrivals: Arrivals) -> None:
        self.pair, self.part_bytes, self.arrivals = pair, part_bytes, arrivals
        self.feeder, self.drain = Feeder(), Drain()
        self.ports = Ports(pair.site, RECEIVER, self.drain)
        self.feeder.feed(self.ports.all_opened((DATABASE, BACKGROUND)))

    def image(self, name: str, *, is_last: bool) -> dict[str, Any]:
        """Announce an image, send it on warm connections and release it; in the last, kill who leads. Return times."""
        site, drops = self.pair.site, self.drops()
        streams = self.ports.all_opened(IMAGE_HOSTS)
        self.feeder.feed(streams, WARM_BYTES)
        eventually(lambda: not _unconfirmed(streams), within_s=SENT_WITHIN_S, what="the connections are warm")
        time.sleep(REST_S)
        site.announce(name, 2 * self.part_bytes, IMAGE_HOSTS, RECEIVER)
        marks, before = {"begun_us": now_us()}, 0
        self.feeder.feed(streams, self.part_bytes)
        if is_last:
            before = self._loses_leader(streams, marks)
        eventually(lambda: not _unconfirmed(streams), within_s=SENT_WITHIN_S, what="the image is confirmed")
        marks["confirmed_us"] = now_us()
        site.release(name)
        resent = _resent(streams)
        after = self.drops()
        self.drain.remove(streams)
        for one in streams:
            one.close()
        return {"name": name, "marks": marks, "retransmitted_segments": resent, "since_death": resent - before,
                "drops": sum(after[port] - drops[port] for port in after)}  # fmt: skip

    def _loses_leader(self, streams: list[TcpStream], marks: dict[str, int]) -> int:
        """Kill who leads; return how many segments had been sent again before."""
        eventually(lambda: _unconfirmed(streams) < self.part_bytes, within_s=SENT_WITHIN_S, what="half of it is sent")
        resent, marks["killed_us"] = _resent(streams), now_us()
        self.pair.kill_first()
        eventually(self.pair.leads_now, within_s=SENT_WITHIN_S, what="the second controller leads")
        marks["led_us"] = now_us()
        return resent

    def drops(self) -> dict[str, int]:
        """Return packets dropped so far, by port."""
        realised = self.pair.site.realised
        return port_drops(realised) | line_drops(realised, realised.network.circuits[0].name)

    def close(self) -> None:
        """End its threads."""
        self.feeder.close()
        self.drain.close()


def _unconfirmed(streams: list[TcpStream]) -> int:
    return sum(one.unconfirmed_bytes for one in streams)


def _resent(streams: list[TcpStream]) -> int:
    return sum(one.told.retransmitted_segments for one in streams)


def run(circuit_bps: int, part_bytes: int, directory: Path) -> dict[str, Any]:
    """Return what was seen of three images."""
    with ExitStack() as parts:
        pair = parts.enter_context(site_of_a_pair(chile_illinois(rate_bps=circuit_bps), FLOWS, directory))
        arrivals = parts.enter_context(Arrivals(pair.site, RECEIVER, SENDERS))
        scene = ImageRuns(pair, part_bytes, arrivals)
        parts.callback(scene.close)
        time.sleep(REST_S)
        with IdleMeter() as idle:
            images = [scene.image(name, is_last=name == IMAGES[-1]) for name in IMAGES]
        logs = [log.read_text(errors="replace") for log in (directory / "logs").glob("agent-*.log")]
        return {
            "rate_bps": circuit_bps,
            "part_bytes": part_bytes,
            "senders": SENDERS,
            "image_hosts": IMAGE_HOSTS,
            "images": images,
            "received": arrivals.seen,
            "leases_over": sum(log.count("agent.lease_over") for log in logs),
            "fallbacks": pair.site.fallbacks.fell,
            "violations": pair.site.get("/v1/plan")["violations"],
            "cpu_idle_shares": idle.shares,
        }


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=rate_bps, default=200_000_000, help="the circuit (default: 200 Mbit/s)")
    parser.add_argument("--part-bytes", type=int, default=75_000_000, help="what each of two senders sends")
    parser.add_argument("--out", type=Path, required=True, help="folder for pair-image.json and logs")
    asked = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)

    def scenario(folder: Path) -> None:
        seen = run(asked.rate, asked.part_bytes, folder)
        (folder / "pair-image.json").write_text(json.dumps(seen))
        found = report(seen)
        write_report(folder, found | stated(aims(found)))

    return kept("pair-image", asked.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
