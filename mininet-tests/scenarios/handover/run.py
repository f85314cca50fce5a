"""How long the circuit is idle while it changes hands: an image comes and goes, on a new and on a warm connection.

Run inside ``isolated.sh``, best in the lab. Writes what it saw to ``handover.json``, its figures to ``report.json``.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.probes.arrivals import Arrivals
from mininet_tests.scenarios.handover.aims import aims
from mininet_tests.scenarios.handover.report import report
from mininet_tests.site.emulation import Emulation, MoreSettings, controller_config, emulation, now_us
from mininet_tests.site.far_end import EVERYWHERE, put_far
from mininet_tests.site.host_ports import Ports
from mininet_tests.site.lsst import BACKGROUND, DATABASE, FLOWS, IMAGE_HOSTS, RECEIVER, SENDERS
from mininet_tests.site.tcp_flows import SWITCH_S, Drain, Feeder, TcpStream
from mininet_tests.site.topos import PacketModel, line_drops, port_drops
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.reports import write_report
from topology.units import duration_us, rate_bps
from topology.wire import Layer, converted_bps

WARM_BYTES = 20_000
LEAD_S, TAIL_S = 0.7, 1.0


class Scene:
    """A site with its standing flows under way."""

    def __init__(self, site: Emulation, part_bytes: int) -> None:
        self.site, self.part_bytes = site, part_bytes
        self.feeder, self.drain = Feeder(), Drain()
        self.ports = Ports(site, RECEIVER, self.drain)
        self.arrivals = Arrivals(site, RECEIVER, SENDERS)

    def standing(self) -> None:
        """Let background and database run, until they fill the circuit."""
        streams = self.ports.all_opened((DATABASE, BACKGROUND))
        self.feeder.feed(streams)
        network = self.site.realised.network
        limit_bps = converted_bps(network.circuits[0].rate_bps, Layer.WIRE, Layer.PAYLOAD, network.framing)
        eventually(
            lambda: self.arrivals.bps(1_000_000) > 0.97 * limit_bps, within_s=60, what="the standing flows fill it"
        )

    def image(self, name: str, *, warm: bool) -> dict[str, Any]:
        """Announce an image, send it, and release it; return the times."""
        streams = self.warm() if warm else []
        time.sleep(LEAD_S)
        drops = self._drops()
        marks = self.begun(name)
        if not warm:
            streams = self.ports.all_opened(IMAGE_HOSTS)
        marks = self.finished(name, streams, marks)
        resent = sum(s.told.retransmitted_segments for s in streams)
        time.sleep(TAIL_S)
        marks["end_us"] = now_us()
        after = self._drops()
        self.drain.remove(streams)
        for stream in streams:
            stream.close()
        return {"name": name, "warm": warm, "marks": marks, "retransmitted_segments": resent,
                "drops": {port: after[port] - drops[port] for port in after}}  # fmt: skip

    def begun(self, name: str) -> dict[str, int]:
        """Announce an image; return the times."""
        marks = {"announced_us": now_us()}
        promise = self.site.announce(name, 2 * self.part_bytes, IMAGE_HOSTS, RECEIVER)
        marks["promised_us"] = marks["announced_us"] + round(promise["promised_in_s"] * 1e6)
        return marks | {"begun_us": now_us()}

    def finished(self, name: str, streams: list[TcpStream], marks: dict[str, int]) -> dict[str, int]:
        """Send an image and release it; return the times."""
        self.feeder.feed(streams, self.part_bytes)
        eventually(lambda: all(s.unconfirmed_bytes == 0 for s in streams), within_s=120, what="the image is confirmed")
        marks = marks | {"confirmed_us": now_us()}
        self.site.release(name)
        return marks | {"released_us": now_us()}

    def warm(self) -> list[TcpStream]:
        """Return new connections of the image's hosts that have carried something."""
        streams = self.ports.all_opened(IMAGE_HOSTS)
        self.feeder.feed(streams, WARM_BYTES)
        eventually(lambda: all(s.unconfirmed_bytes == 0 for s in streams), within_s=30, what="it is warm")
        return streams

    def _drops(self) -> dict[str, int]:
        realised = self.site.realised
        return port_drops(realised) | line_drops(realised, realised.network.circuits[0].name)

    def close(self) -> None:
        """End its threads."""
        self.arrivals.stop()
        self.feeder.close()
        self.drain.close()


@contextmanager
def scene(circuit_bps: int, part_bytes: int, directory: Path, far_us: int = 0) -> Iterator[Scene]:
    """Give a site with its standing flows under way, its far end so far from the controller, there and back."""
    network = chile_illinois(rate_bps=circuit_bps)
    listen = controller_config(network, FLOWS)["listen"] | {"openflow": EVERYWHERE}
    settings = MoreSettings({"listen": listen}) if far_us else None
    with emulation(network, FLOWS, directory, packets=PacketModel(single=True), settings=settings) as site:
        if far_us:
            put_far(site, "ch1", RECEIVER, far_us)
        one = Scene(site, part_bytes)
        one.standing()
        yield one
        one.close()


def run(circuit_bps: int, part_bytes: int, directory: Path, far_us: int) -> dict[str, Any]:
    """Return what was seen, with a warm and with a new connection."""
    with scene(circuit_bps, part_bytes, directory, far_us) as one:
        with IdleMeter() as idle:
            images = [one.image(name, warm=name == "warm") for name in ("warm", "fresh")]
        steps, plan = one.site.get("/v1/transitions"), one.site.get("/v1/plan")
        return {"rate_bps": circuit_bps, "part_bytes": part_bytes, "far_us": far_us, "senders": SENDERS,
                "images": images, "transitions": steps, "received": one.arrivals.seen, "violations": plan["violations"],
                "cpu_idle_shares": idle.shares}  # fmt: skip


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=rate_bps, default=500_000_000, help="the circuit (default: 500 Mbit/s)")
    parser.add_argument("--part-bytes", type=int, default=37_500_000, help="what each of two senders sends")
    parser.add_argument(
        "--far", type=duration_us, default=0, help="from the controller to the far switch and back (default: 0 ms)"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for handover.json and logs")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)

    def scenario(folder: Path) -> None:
        seen = run(args.rate, args.part_bytes, folder, args.far)
        (folder / "handover.json").write_text(json.dumps(seen))
        found = report(seen)
        write_report(folder, found | stated(aims(found)))

    return kept("handover", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
