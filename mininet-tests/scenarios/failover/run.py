"""Two circuits, for real: one dies under traffic of three classes and comes back; at both ends, or at one of them.

In one case the controller's database hangs meanwhile. Run inside ``isolated.sh``. Writes what it saw to
``failover.json``; ``report.py`` makes figures of it. It does not know whether it is in the lab.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.probes.arrivals import Arrivals
from mininet_tests.probes.sockets import Connections
from mininet_tests.scenarios.failover.aims import aims
from mininet_tests.scenarios.failover.report import report
from mininet_tests.site.cables import BOTH_ENDS, CircuitCable
from mininet_tests.site.emulation import Emulation, MoreSettings, emulation, now_us
from mininet_tests.site.faults import SiteFaults
from mininet_tests.site.saved_page import save_page
from mininet_tests.site.topos import PacketModel, line_drops, port_drops, read_back
from mininet_tests.site.wiring import in_namespace
from mininet_tests.testing.aims import stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois_2
from mininet_tests.testing.reports import write_report

RATE_BPS, DELAY_US = 100_000_000, 90_000  # of the circuit that dies; the other has half of it and a ninth more delay
RECEIVER, URGENT, PREDICTABLE, BACKGROUND = "arch", "base20", "base22", "base23"
PORTS = {URGENT: 5301, PREDICTABLE: 5302, BACKGROUND: 5303}
FLOWS = [{"name": "efd-replication", "class": "predictable", "from": PREDICTABLE, "to": RECEIVER}]
DIES, STAYS = "north", "south"
IMAGE_BYTES = 2_000_000_000  # more than is sent in the whole run
RESERVED_BPS = 20_000_000  # for the background, on the circuit that stays
RETURN_AFTER_S = 1
HELD_WITHIN_S = 30
SAMPLED_EVERY_S = 0.01
LOOKED_AT_S = 6  # after the death, when what is delivered was told and asked several times
HELD = "held"  # while the controller's database hangs
CASES = {"both": BOTH_ENDS, "near": (0,), "far": (1,), HELD: BOTH_ENDS}  # which ends of the line lose their carrier


@dataclass(frozen=True, slots=True)
class HeldDatabase:
    """A database that hangs.

    Attributes:
        let_go: ends that.
        write_status: what a write was answered meanwhile, of HTTP.
    """

    let_go: Callable[[], None]
    write_status: int


def run(directory: Path, names: Sequence[str], *, page: bool) -> dict[str, Any]:
    """Return all that was seen of these cases; with ``page``, save what the page shows of a dead circuit at the end.

    Raises:
        AssertionError: something did not come about in time.
        RuntimeError: a program ended with an error.
    """
    network = chile_illinois_2(RATE_BPS, DELAY_US)
    more = {
        "failover": {"return_after": f"{RETURN_AFTER_S} s"},
        "policy": {"urgent": {"guarantee": "0.1%", "cap": "100%"}},  # of the slower circuit, what a queue can be given
    }
    with emulation(
        network,
        FLOWS,
        directory,
        packets=PacketModel(single=True),
        without_agent=frozenset({"base21"}),
        settings=MoreSettings(more),
    ) as site:
        with Arrivals(site, RECEIVER, tuple(PORTS), SAMPLED_EVERY_S) as arrivals, IdleMeter() as idle:
            say("starting the traffic")
            _started(site)
            say("waiting for every flow to reach its plan")
            eventually(lambda: _at_plan(site, arrivals), within_s=60, what="every flow reaches its plan")
            cable = CircuitCable(site, DIES)
            cases = {}
            for name in names:
                say(f"the line dies: {name}")
                held = _held(site) if name == HELD else None
                cases[name] = _case(site, arrivals, cable, CASES[name], held)
                say(f"the line is used again: {name}")
            if page:
                cable.pull(BOTH_ENDS)
                time.sleep(LOOKED_AT_S)
                save_page(site, directory / "page")
                cable.plug()
        return {
            "rtt_ms": 2 * DELAY_US / 1000,
            "received": arrivals.seen,
            "cases": cases,
            "idle_shares": idle.shares,
            "events": _events(site),
            "transitions": site.get("/v1/transitions"),
        }


def _started(site: Emulation) -> None:
    """Announce the image, reserve for the background, and start all senders."""
    asked = {
        "from": BACKGROUND,
        "to": RECEIVER,
        "class": "background",
        "rate_bps": RESERVED_BPS,
        "start": datetime.fromtimestamp(time.time() + 1, UTC).isoformat(),
        "duration_s": 600,
        "constraints": {"exclude": [DIES]},
        "commit": True,
    }
    site.asked("POST", "/v1/reservations", asked)
    site.announce("image", IMAGE_BYTES, [URGENT], RECEIVER)
    address = str(site.realised.network.host(RECEIVER).ip)
    for host, port in PORTS.items():
        site.spawn(f"iperf3-server-{host}", ["iperf3", "--server", "--port", str(port)], host=RECEIVER)
    eventually(
        lambda: len(site.get("/v1/plan")["installed"]["allocations"]) == len(PORTS), within_s=60, what="the plan"
    )
    for host, port in PORTS.items():
        command = ["iperf3", "--client", address, "--port", str(port), "--time", "3600"]
        site.spawn(f"iperf3-{host}", command, host=host)


def _planned(plan: dict[str, Any]) -> dict[str, int]:
    """Return what a plan gives each sender, payload, bit/s."""
    return {one["from"]: one["payload_bps"] for one in plan["allocations"]}


def _at_plan(site: Emulation, arrivals: Arrivals) -> bool:
    """Return whether every flow has been at its plan for a second."""
    ended = [text for text in site.ended() if "iperf3" in text]
    if ended:
        raise RuntimeError("; ".join(ended))
    planned = _planned(site.get("/v1/plan")["desired"])
    return all(arrivals.bps(1_000_000, host) > 0.97 * planned[host] for host in PORTS)


def _held(site: Emulation) -> HeldDatabase:
    """Hold the controller's database, and return once the controller has noticed it.

    Raises:
        AssertionError: it does not notice.
    """
    let_go = SiteFaults(site).hold_database()
    tomorrow = datetime.fromtimestamp(time.time() + 86_400, UTC).isoformat()
    asked = {"from": BACKGROUND, "to": RECEIVER, "class": "background", "rate_bps": 1_000_000} | {
        "start": tomorrow,
        "duration_s": 60,
    }
    statuses: list[int] = []

    def is_noticed() -> bool:
        statuses.append(site.api.post("/v1/reservations", json=asked).status_code)
        return statuses[-1] == httpx.codes.SERVICE_UNAVAILABLE

    eventually(is_noticed, within_s=HELD_WITHIN_S, what=f"a write is answered 503: {statuses}")
    return HeldDatabase(let_go, statuses[-1])


def _case(
    site: Emulation, arrivals: Arrivals, cable: CircuitCable, ends: tuple[int, ...], held: HeldDatabase | None
) -> dict[str, Any]:
    """Let the circuit die and come back; return what was seen of it. A database that is held is let go in between."""
    before, prepared = _seen(site), site.get("/v1/circuits")
    died_us = cable.pull(ends)
    time.sleep(1.5)
    down = _seen(site)
    if held is not None:
        held.let_go()
    returned_us = now_us()
    cable.plug()
    eventually(lambda: _state(site) == "up", within_s=30, what="the circuit is used again")
    used_us = now_us()
    eventually(lambda: _at_plan(site, arrivals), within_s=30, what="every flow is back at its plan")
    time.sleep(1)
    after = _seen(site)
    return {
        "write_status_before": None if held is None else held.write_status,
        "before": before,
        "prepared": prepared,
        "died_us": died_us,
        "down": down,
        "returned_us": returned_us,
        "used_us": used_us,
        "after": after,
    }


def _state(site: Emulation) -> str:
    """Return how the controller says that the line is which dies."""
    return next(str(one["state"]) for one in site.get("/v1/circuits") if one["name"] == DIES)


def _seen(site: Emulation) -> dict[str, Any]:
    """Return the plan, what the switches hold, and all counters, now."""
    realised = site.realised
    diag: dict[str, Connections] = {h: in_namespace(realised.net[h].pid, Connections) for h in PORTS}
    return {
        "at_us": now_us(),
        "plan": site.get("/v1/plan"),
        "read_back": read_back(realised),
        "edge_drops": port_drops(realised),
        "line_drops": line_drops(realised, STAYS),
        "connections": {h: [asdict(c) for c in d.read() if c.remote_port == PORTS[h]] for h, d in diag.items()},
    }


def _events(site: Emulation) -> list[dict[str, Any]]:
    """Return the events that the controller has logged about circuits and promises."""
    log = (site.directory / "logs" / "controller.log").read_text()
    return [{"line": line} for line in log.splitlines() if "event=circuit." in line or "event=announcement." in line]


def say(text: str) -> None:
    """Show progress."""
    print(f"[{time.monotonic():8.1f} s] {text}", flush=True)


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for failover.json and logs")
    parser.add_argument(
        "--case", action="append", choices=CASES, help="which ends lose their carrier; again for another (default: all)"
    )
    parser.add_argument("--page", action="store_true", help="save the page with a dead circuit, in page/")
    args = parser.parse_args()

    def scenario(folder: Path) -> None:
        seen = run(folder, args.case or [*CASES], page=args.page)
        (folder / "failover.json").write_text(json.dumps(seen))
        found = report(seen)
        write_report(folder, found | stated(aims(found)))

    return kept("failover", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
