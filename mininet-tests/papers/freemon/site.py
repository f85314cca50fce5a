"""Measures the cells that need a whole site: controller, agents, Open vSwitch. Run inside ``isolated.sh``, in the lab.

Started by ``run.py``. It does not know whether it is in the lab.
"""

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from mininet_tests.lab.cells import EXIT_AGAIN, EXIT_OK, Cell, asked, leave, tell
from mininet_tests.lab.kept import FAILURES
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.papers.freemon.guest import surroundings
from mininet_tests.papers.freemon.tools import tools
from mininet_tests.probes.series import at
from mininet_tests.scenarios.figure2 import run
from mininet_tests.scenarios.figure2.report import report
from mininet_tests.scenarios.handover.run import Scene
from mininet_tests.site.emulation import emulation, now_us
from mininet_tests.site.lsst import BACKGROUND, DATABASE, FLOWS, IMAGE_HOSTS, SENDERS
from mininet_tests.site.tcp_flows import SWITCH_S, until
from mininet_tests.site.topos import PacketModel, seed_lines
from mininet_tests.testing.networks import chile_illinois
from topology.wire import Layer, converted_bps


def night(cell: Cell, folder: Path) -> Cell:
    """Return the times of one image after another, and what background had of that which they and the database left."""
    network = chile_illinois(rate_bps=cell["rate_bps"])
    packets = PacketModel(single=False, loss_ppm=round(cell["loss_percent"] * 10_000))
    with emulation(network, FLOWS, folder, packets=packets) as site:
        seed_lines(site.realised, cell["seed"])
        scene = Scene(site, cell["size_bytes"] // 2)
        scene.standing()
        streams = scene.warm()
        images, fell = [], []
        began_us = now_us()
        with IdleMeter() as meter:
            for number in range(cell["runs"]):
                _wait_until_us(began_us + number * cell["cycle_us"])
                before = site.fallbacks
                marks = scene.begun(f"image-{number}")
                images.append(scene.finished(f"image-{number}", streams, marks))
                fell.append(site.fallbacks.in_a_run_since(before))
                print(f"paper: image {number + 1} of {cell['runs']}", flush=True)
            _wait_until_us(began_us + cell["runs"] * cell["cycle_us"])
        ended_us = now_us()
        scene.close()
    moved = _moved(scene.arrivals.seen, began_us, ended_us)
    payload_bps = converted_bps(cell["rate_bps"], Layer.WIRE, Layer.PAYLOAD, network.framing)
    return {
        "runs_seen": [
            {"s": (m["confirmed_us"] - m["announced_us"]) / 1e6, "fallback": on_fallback}
            for m, on_fallback in zip(images, fell, strict=True)
        ],
        "circuit_bytes": payload_bps * (ended_us - began_us) // 8_000_000,
        "moved_bytes": moved,
        "idle_share": min(meter.shares),
    }


def _wait_until_us(when_us: int) -> None:
    until(time.monotonic() + (when_us - now_us()) / 1e6)


def _moved(seen: list[tuple[int, dict[str, int]]], from_us: int, to_us: int) -> dict[str, int]:
    """Return the payload of background, database and images that arrived between two times."""
    times = [t for t, _ in seen]
    columns = {host: [counts[host] for _, counts in seen] for host in SENDERS}
    moved = {h: round(at(times, v, to_us) - at(times, v, from_us)) for h, v in columns.items()}
    images = sum(moved[host] for host in IMAGE_HOSTS)
    return {"background": moved[BACKGROUND], "database": moved[DATABASE], "images": images}


def both(cell: Cell, folder: Path) -> Cell:
    """Return how long the image took beside background and database, and how full the circuit was meanwhile."""
    scenario = run.Scenario(
        rate_bps=cell["rate_bps"],
        part_bytes=cell["size_bytes"] // 2,
        lead_s=cell["lead_s"],
        tail_s=cell["lead_s"],
        single_packets=False,
        seed=cell["seed"],
    )
    found = report(run.run(scenario, folder), {"rtt_ms": cell["rtt_ms"], "loss_set": cell["loss_percent"] / 100})
    urgent = found["urgent"]
    return {
        "runs_seen": [{"s": urgent["seconds"], "fallback": found["fallbacks"] > 0}],
        "share_limit_s": urgent["limit_seconds"],
        "utilisation": found["utilisation"],
        "violations": found["plan"]["violations"],
        "idle_share": found["cpu"]["least_idle_share"],
    }


KINDS: dict[str, Callable[[Cell, Path], Cell]] = {"night": night, "both": both, "tools": tools}


def main() -> None:
    """Measure, and tell of each cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder with the cells that are asked for")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)
    for cell in asked(args.out):
        with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
            try:
                tell(cell, KINDS[cell["experiment"]](cell, Path(scratch)) | surroundings())
            except FAILURES as error:
                traceback.print_exc()
                tell(cell, {"failed": str(error)})
                leave(EXIT_AGAIN)
    leave(EXIT_OK)


if __name__ == "__main__":
    main()
