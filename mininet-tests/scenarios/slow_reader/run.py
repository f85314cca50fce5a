"""An image whose receiver reads slowly, beside background traffic: held to what is read, and not; the same site twice.

Run inside ``isolated.sh``, best in the lab. Writes what it saw to ``slow-reader.json``, its figures to ``report.json``.
It does not know whether it is in the lab.
"""

import argparse
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.probes.arrivals import Arrivals
from mininet_tests.scenarios.slow_reader.aims import aims
from mininet_tests.scenarios.slow_reader.report import report
from mininet_tests.site.emulation import Emulation, MoreSettings, emulation, now_us
from mininet_tests.site.host_ports import Ports
from mininet_tests.site.lsst import BACKGROUND, IMAGE_HOSTS, RECEIVER
from mininet_tests.site.tcp_flows import SWITCH_S, Drain, Feeder, TcpStream
from mininet_tests.site.topos import PacketModel
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.reports import write_report
from topology.units import rate_bps, size_bytes
from topology.wire import Layer, converted_bps

SENDER = IMAGE_HOSTS[0]
FLOWS: list[dict[str, Any]] = [{"name": "raw-images", "class": "background", "from": BACKGROUND, "to": RECEIVER}]
VARIANTS = {"not held": False, "held": True}
IMAGE = "image"
READ_BYTES = 65_536
LOOKS_EVERY_S = 0.1
TAIL_S = 1.0


class SlowReader:
    """Reads a connection at a rate, as a program does that writes to a disk of it; says when it had read all."""

    def __init__(self, stream: TcpStream, reads_bps: int, size_bytes: int) -> None:
        """Begin."""
        self.read_bytes, self.read_us = 0, 0
        self._stream, self._reads_bps, self._size_bytes = stream, reads_bps, size_bytes
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        block, end = bytearray(READ_BYTES), self._stream.receiver
        end.setblocking(True)
        due_s = time.monotonic()
        while self.read_bytes < self._size_bytes:
            got = end.recv_into(block)
            self.read_bytes += got
            due_s = max(due_s, time.monotonic() - 0.05) + got * 8 / self._reads_bps
            time.sleep(max(0.0, due_s - time.monotonic()))
        self.read_us = now_us()


def variant(rate: int, size: int, reads_bps: int, directory: Path, *, holds: bool) -> dict[str, Any]:
    """Return what was seen of one image."""
    network = chile_illinois(rate_bps=rate)
    idle_hosts = frozenset(h.name for h in network.hosts) - {SENDER, BACKGROUND, RECEIVER}
    with emulation(
        network, FLOWS, directory, packets=PacketModel(single=False), without_agent=idle_hosts,
        settings=MoreSettings({"hold_to_receivers": holds}),
    ) as site, Arrivals(site, RECEIVER, (SENDER, BACKGROUND)) as arrivals:  # fmt: skip
        feeder, drain = Feeder(), Drain()
        ports = Ports(site, RECEIVER, drain)
        limit_bps = converted_bps(rate, Layer.WIRE, Layer.PAYLOAD, network.framing)
        feeder.feed(ports.all_opened((BACKGROUND,)))
        eventually(lambda: arrivals.bps(1_000_000) > 0.9 * limit_bps, within_s=60, what="the background fills it")
        with IdleMeter() as idle:
            seen = _image(site, feeder, ports, size, reads_bps)
        time.sleep(TAIL_S)
        feeder.close()
        drain.close()
        return {**seen, "limit_bps": limit_bps, "received": arrivals.seen[::20], "cpu_idle_shares": idle.shares}


def _image(site: Emulation, feeder: Feeder, ports: Ports, size: int, reads_bps: int) -> dict[str, Any]:
    """Announce an image and send it to who reads slowly; return the times, and what was planned meanwhile."""
    marks, looks = {"announced_us": now_us()}, list[dict[str, Any]]()
    promise = site.announce(IMAGE, size, (SENDER,), RECEIVER)
    stream = ports.opened(SENDER, drained=False)
    eventually(lambda: _is_connected(stream), within_s=20, what="it is accepted")
    reader = SlowReader(stream, reads_bps, size)
    feeder.feed([stream], size)
    while not reader.read_us:
        looks.append({"at_us": now_us(), "planned_bps": _planned_bps(site), "read_bytes": reader.read_bytes,
                      "window_limited_us": stream.told.receive_window_limited_us})  # fmt: skip
        if stream.unconfirmed_bytes == 0:
            marks.setdefault("confirmed_us", now_us())
        time.sleep(LOOKS_EVERY_S)
    marks["read_us"] = reader.read_us
    resent = stream.told.retransmitted_segments
    site.release(IMAGE)
    stream.close()
    return {"marks": marks, "promised_in_s": promise["promised_in_s"], "looks": looks, "sent_again": resent,
            "violations": site.get("/v1/plan")["violations"]}  # fmt: skip


def _is_connected(stream: TcpStream) -> bool:
    """Return whether the other end has been accepted: a listener has no peer."""
    try:
        return bool(stream.receiver.getpeername())
    except OSError:
        return False


def _planned_bps(site: Emulation) -> dict[str, int]:
    """Return what each flow is planned for now, bit/s of payload."""
    plan = site.get("/v1/plan")
    return {one["name"]: one["payload_bps"] for one in plan["desired"]["allocations"]} if plan else {}


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=rate_bps, default=400_000_000, help="the circuit (default: 400 Mbit/s)")
    parser.add_argument("--size", type=size_bytes, default=300_000_000, help="of the image (default: 300 MB)")
    parser.add_argument("--reads", type=rate_bps, default=100_000_000, help="the reader (default: 100 Mbit/s)")
    parser.add_argument("--out", type=Path, required=True, help="folder for what was seen, and logs")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)

    def scenario(folder: Path) -> None:
        seen: dict[str, Any] = {"rate_bps": args.rate, "size_bytes": args.size, "reads_bps": args.reads}
        seen["variants"] = {
            name: variant(args.rate, args.size, args.reads, folder / name.replace(" ", "-"), holds=holds)
            for name, holds in VARIANTS.items()
        }
        (folder / "slow-reader.json").write_text(json.dumps(seen))
        found = report(seen)
        write_report(folder, found | stated(aims(found)))

    return kept("slow-reader", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
