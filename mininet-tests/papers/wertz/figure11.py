"""A striped mover over four lanes, 1 to 16 streams in lock step and not, beside the model of it: the paper's figure 11.

Run inside ``isolated.sh``, best in the lab. Lanes are reserved, and streams are from their addresses in turn, as PFTP's
are. Windows of held connections are open, so the model beside it is that without slow start and set-up.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE, IdleMeter
from mininet_tests.papers.wertz.pftp import BLOCK_BYTES, FILE_BYTES, Pftp, mbytes_per_s
from mininet_tests.site.emulation import Emulation, MoreSettings, emulation
from mininet_tests.site.topos import PacketModel
from mininet_tests.testing.aims import Aim, at_least, stated, within
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import four_lanes
from mininet_tests.testing.progress import tell
from mininet_tests.testing.reports import write_report
from topology.units import rate_bps

SENDER, RECEIVER, PORT = "albu", "live", 6001
RATE_BPS = 10**9  # of a lane in the paper; file and blocks are in proportion, so the times are the same
WIDTHS = (1, 2, 4, 8, 16)
RESERVED_SHARE = 0.9  # of each circuit
UP_S, GIVE_UP_S, LASTS_S, STARTS_SHARE = 1.0, 300.0, 3_600, 0.2
LANES_OF = {"albu": "lane0", "albu.eth1": "lane1", "albu.eth2": "lane2", "albu.eth3": "lane3"}
OF_THE_MODEL = 0.03  # off, at most
FIGURES = {True: "figure_11_in_lock_step", False: "figure_11_without"}
MOVER = "mininet_tests.papers.wertz.mover"


def run(directory: Path, rate: int, widths: list[int]) -> dict[str, Any]:
    """Return what each transfer took, with the lanes' planned rate.

    Raises:
        AssertionError: something did not come about in time.
        RuntimeError: a program ended with an error.
    """
    tell(0.0, "the site comes up")
    more = MoreSettings({"policy": {"urgent": {"guarantee": "0.1%", "cap": "100%"}}})
    asked = [(width, lock_step) for width in widths for lock_step in (True, False)]
    found = []
    with (
        emulation(four_lanes(rate), [], directory, packets=PacketModel(single=False), settings=more) as site,
        IdleMeter() as idle,
    ):
        address = str(site.realised.network.host(RECEIVER).ip)
        lane_bps = _reserved(site, round(rate * RESERVED_SHARE))
        site.spawn("mover", [sys.executable, "-m", MOVER, "serve", address, str(PORT)], host=RECEIVER)
        time.sleep(UP_S)
        for number, (width, lock_step) in enumerate(asked):
            tell(STARTS_SHARE + (1 - STARTS_SHARE) * number / len(asked), f"{width} streams")
            pftp = Pftp(width, lock_step, slow_start=False, setup=0, block_bytes=BLOCK_BYTES * rate // RATE_BPS)
            took_s = _transfer(site, address, pftp, FILE_BYTES * rate // RATE_BPS)
            found.append({"streams": width, "lock_step": lock_step, "took_s": took_s, "lane_bps": lane_bps})
        idle_share = min(idle.shares)
    return {"rate_bps": rate, "idle_share": idle_share, "transfers": found}


def _reserved(site: Emulation, wire_bps: int) -> int:
    """Reserve as much of each circuit for a lane of its own; return what each carries, payload, bit/s."""
    begins = {"duration_s": LASTS_S, "to": RECEIVER, "rate_bps": wire_bps, "commit": True}
    for lane, circuit in LANES_OF.items():
        site.asked("POST", "/v1/reservations", begins | {"from": lane, "constraints": {"include": [circuit]}})

    def carried() -> set[int]:
        entries = site.get("/v1/plan")["desired"]["allocations"]
        return {one["payload_bps"] for one in entries} if len(entries) == len(LANES_OF) else set()

    def are_active() -> bool:
        reservations = site.get("/v1/reservations")["reservations"]
        return len(carried()) == 1 and {one["state"] for one in reservations} == {"active"}

    eventually(are_active, within_s=30, what="the lanes' reservations are in force, all at one rate")
    return carried().pop()


def _transfer(site: Emulation, address: str, pftp: Pftp, size_bytes: int) -> float:
    """Let the mover send a file; return how long it took, seconds.

    Raises:
        RuntimeError: it has failed, with what it said; or it takes too long.
    """
    name = f"pftp-{pftp.streams}-{'step' if pftp.lock_step else 'free'}"
    own = ",".join(str(site.realised.network.host(lane).ip) for lane in LANES_OF)
    command = [sys.executable, "-m", MOVER, "send", address, str(PORT), "--bytes", str(size_bytes), "--from", own]
    command += ["--streams", str(pftp.streams), "--block", str(pftp.block_bytes)]
    client = site.spawn(name, [*command, *(["--lock-step"] if pftp.lock_step else [])], host=SENDER)
    if client.wait(GIVE_UP_S):
        raise RuntimeError(f"{name}: exit code {client.returncode}: {site.tail(name)}")
    took_s: float = json.loads(site.tail(name).splitlines()[-1])["took_s"]
    return took_s


def report(seen: dict[str, Any]) -> dict[str, Any]:
    """Return the report: by streams, what was measured beside the model, MB/s as at 1 Gbit/s. Pure."""
    aims, rows = dict[str, Aim](), {name: list[dict[str, Any]]() for name in FIGURES.values()}
    scale = RATE_BPS / seen["rate_bps"]
    for one in seen["transfers"]:
        lane_bps = round(one["lane_bps"] * scale)
        model = mbytes_per_s(Pftp(one["streams"], one["lock_step"], slow_start=False, setup=0, lane_bps=lane_bps))
        rows[FIGURES[one["lock_step"]]].append(
            {
                "streams": one["streams"],
                "took_s": round(one["took_s"], 3),
                "mb_per_s": round(FILE_BYTES / one["took_s"] / 1e6, 1),
                "model_mb_per_s": round(model, 1),
            }
        )
        what = f"{one['streams']} streams {'in lock step' if one['lock_step'] else 'without'}: of the model"
        aims[what] = within(round(FILE_BYTES / one["took_s"] / 1e6 / model, 4), 1 - OF_THE_MODEL, 1 + OF_THE_MODEL)
    aims["CPU idle"] = at_least(seen["idle_share"], LEAST_IDLE_SHARE)
    return {"rate_bps": seen["rate_bps"], "idle_share": seen["idle_share"]} | rows | stated(aims)


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for figure11.json and logs")
    parser.add_argument("--rate", type=rate_bps, default=RATE_BPS // 10, help="of each lane (default: 100 Mbit/s)")
    parser.add_argument("--width", type=int, action="append", help="again for another (default: 1 2 4 8 16)")
    args = parser.parse_args()

    def scenario(folder: Path) -> None:
        seen = run(folder, args.rate, args.width or list(WIDTHS))
        (folder / "figure11.json").write_text(json.dumps(seen))
        write_report(folder, report(seen))

    return kept("pftp", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
