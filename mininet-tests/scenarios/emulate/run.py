"""Plays who sends what, and when, on an emulated network under the plan, and keeps what came of it.

Run inside ``isolated.sh``, by ``demo.py``. Writes ``report.json``; it does not know whether it is in the lab.
"""

import argparse
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mininet_tests.lab.kept import kept
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.scenarios.emulate.play import Play, Transfer, play_of
from mininet_tests.scenarios.emulate.report import PlanSeen, TransferSeen, report
from mininet_tests.site.emulation import Emulation, emulation, now_us
from mininet_tests.site.faults import Traffic
from mininet_tests.site.tcp_flows import SWITCH_S
from mininet_tests.site.topos import PacketModel, line_drops, port_drops, seed_lines
from mininet_tests.testing.networks import loaded
from mininet_tests.testing.progress import tell
from mininet_tests.testing.reports import write_report
from topology.network import Network
from topology.problems import Problems
from topology.yaml_text import values_of

NETWORK, PLAY = "network.yaml", "play.yaml"  # beside the report
FIRST_PORT = 5301
LOOK_S, COUNTED_S, PLAN_S = 0.002, 0.01, 0.2
AFTER_S = 1.0
STUCK_AFTER_S = 600.0
STARTS_SHARE = 0.7  # of the time, until all is up


@dataclass(slots=True)
class Player:
    """A play under way.

    Attributes:
        traffic: a warm connection for each transfer, by its name.
        play: what is to be done.
        seen: what has come of each transfer so far, by its name.
        plans: the plan in force, as often as it was asked for.
    """

    traffic: Traffic
    play: Play
    seen: dict[str, TransferSeen] = field(default_factory=dict)
    plans: list[PlanSeen] = field(default_factory=list)
    _began_s: float = 0.0
    _counted_s: float = 0.0
    _planned_s: float = 0.0

    @property
    def site(self) -> Emulation:
        """Where."""
        return self.traffic.site

    def play_all(self) -> None:
        """Play it to its end.

        Raises:
            RuntimeError: a promise was refused, or a program has ended.
            AssertionError: a transfer did not end.
        """
        for number, transfer in enumerate(self.play.transfers):
            self.traffic.open(
                transfer.name, transfer.sender, transfer.receiver, FIRST_PORT + number, ipv6=transfer.is_ipv6
            )
            path = self.site.realised.network.path(transfer.sender, transfer.receiver)
            rtt_s = self.site.realised.network.path_rtt_us(path) / 1e6
            self.seen[transfer.name] = TransferSeen(transfer.name, FIRST_PORT + number, rtt_s)
        self._began_s = time.monotonic()
        for transfer in self.play.transfers:
            if transfer.reserved:
                self._reserve(transfer)
        waiting = list(self.play.transfers)
        until_s = self._began_s + max(t.at_s + (t.lasts_s or 0) for t in waiting) + STUCK_AFTER_S
        while waiting or any(not seen.ended_us for seen in self.seen.values()):
            if time.monotonic() > until_s:
                raise AssertionError(
                    f"not at their end: {', '.join(n for n, one in self.seen.items() if not one.ended_us)}"
                )
            while waiting and self._now_s() >= waiting[0].at_s:
                self._begin(waiting.pop(0))
            self._look()
            time.sleep(LOOK_S)
        over_s = time.monotonic() + AFTER_S
        while time.monotonic() < over_s:
            self._look()
            time.sleep(LOOK_S)

    def _now_s(self) -> float:
        return time.monotonic() - self._began_s

    def _reserve(self, transfer: Transfer) -> None:
        flow_class, rate_bps = transfer.reserved or (None, 0)
        start = datetime.fromtimestamp(time.time() + max(transfer.at_s - self._now_s(), 0.0), UTC)
        answer = self.site.asked(
            "POST",
            "/v1/reservations",
            {
                "from": transfer.sender,
                "to": transfer.receiver,
                "class": flow_class,
                "rate_bps": rate_bps,
                "start": start.isoformat(),
                "duration_s": transfer.lasts_s,
                "commit": True,
                "connections": {"dest_port": self.seen[transfer.name].port},
            },
        )
        self.seen[transfer.name].promise = answer["id"]

    def _begin(self, transfer: Transfer) -> None:
        seen = self.seen[transfer.name]
        seen.began_us = now_us()
        if transfer.announced:
            asked = {
                "id": transfer.name,
                "class": transfer.announced,
                "bytes": transfer.size_bytes,
                "from": [transfer.sender],
                "to": transfer.receiver,
                "connections": {"dest_port": seen.port},
            }
            answer = self.site.asked("POST", "/v1/announcements", asked)
            seen.promise, seen.promised_us = transfer.name, seen.began_us + round(answer["promised_in_s"] * 1e6)
        self.traffic.feed(transfer.name, transfer.size_bytes)
        seen.stops_us = 0 if transfer.lasts_s is None else seen.began_us + round(transfer.lasts_s * 1e6)
        promised = f", promised in {(seen.promised_us - seen.began_us) / 1e6:.2f} s" if seen.promised_us else ""
        print(f"{transfer.name}: begins{promised}", flush=True)

    def _look(self) -> None:
        now_s, at_us = time.monotonic(), now_us()
        for name, seen in self.seen.items():
            if seen.began_us and not seen.ended_us:
                self._look_at(name, seen, at_us)
        if now_s >= self._counted_s + COUNTED_S:
            self._counted_s = now_s
            for name, seen in self.seen.items():
                if seen.began_us:
                    seen.received.append((now_us(), self.traffic.streams[name].received_bytes))
        if now_s >= self._planned_s + PLAN_S:
            self._planned_s = now_s
            self._look_at_plan()

    def _look_at(self, name: str, seen: TransferSeen, at_us: int) -> None:
        """Stop what has lasted as long as it should; note what is confirmed to its last byte."""
        stream = self.traffic.streams[name]
        if seen.stops_us and at_us >= seen.stops_us and stream.left_bytes is None:
            self.traffic.feed(name, 0)
            seen.ended_us = at_us
        elif not seen.stops_us and not stream.unconfirmed_bytes:
            seen.ended_us = at_us
            print(f"{name}: confirmed after {(at_us - seen.began_us) / 1e6:.2f} s", flush=True)
            if seen.promised_us:
                self.site.release(name)

    def _carried_by(self, transfer: Transfer) -> set[str]:
        """Return the names of what is a transfer's alone: its promise, or else the standing flows of its pair."""
        if _has_promise(transfer):
            return {self.seen[transfer.name].promise} - {""}
        ends = transfer.sender, transfer.receiver
        riding = [t for t in self.play.transfers if (t.sender, t.receiver) == ends and not _has_promise(t)]
        flows = {flow["name"] for flow in self.play.flows if (flow["from"], flow["to"]) == ends}
        return flows if len(riding) == 1 else set()

    def _look_at_plan(self) -> None:
        at_us, plan = now_us(), self.site.get("/v1/plan")
        if plan is None:
            raise RuntimeError(f"the controller does not answer; {'; '.join(self.site.ended())}")
        entries = plan["installed"]["allocations"]
        rates = {t.name: _planned_bps(t, self._carried_by(t), entries) for t in self.play.transfers}
        self.plans.append(PlanSeen(at_us, rates, tuple(plan["violations"])))
        done = sum(bool(seen.ended_us) for seen in self.seen.values())
        share = STARTS_SHARE + (1 - STARTS_SHARE) * done / len(self.seen)
        tell(share, f"{done} of {len(self.seen)} transfers are over")


def _has_promise(transfer: Transfer) -> bool:
    return bool(transfer.announced or transfer.reserved)


def _planned_bps(transfer: Transfer, names: set[str], entries: list[dict[str, Any]]) -> int | None:
    """Return the payload rate of the plan's entry for what a transfer rides on; None if there is none, or several."""
    found = [
        int(one["payload_bps"])
        for one in entries
        if one["from"] == transfer.sender and names & {carried.partition("/")[0] for carried in one["carries"]}
    ]
    return found[0] if len(found) == 1 else None


def run(network: Network, play: Play, packets: PacketModel, seed: int, directory: Path) -> dict[str, Any]:
    """Return the report of a play.

    Raises:
        AssertionError: something did not come about in time.
        RuntimeError: a promise was refused, or a program has ended with an error.
    """
    busy = frozenset(network.host(name).machine for name in play.hosts)
    idle_hosts = frozenset(host.machine for host in network.hosts) - busy
    tell(0.0, "the site comes up")
    with emulation(network, list(play.flows), directory, packets=packets, without_agent=idle_hosts) as site:
        seed_lines(site.realised, seed)
        tell(STARTS_SHARE, "all is up")
        traffic = Traffic(site)
        player = Player(traffic, play)
        with IdleMeter() as idle:
            player.play_all()
        drops = {
            "lines": {
                circuit.name: sum(line_drops(site.realised, circuit.name).values()) for circuit in network.circuits
            },
            "ports": port_drops(site.realised),
        }
        traffic.close()
    return report(play, player.seen, player.plans, min(idle.shares, default=0.0)) | {"drops_packets": drops}


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help=f"folder with {NETWORK} and {PLAY}, for report and logs"
    )
    parser.add_argument("--loss", action="append", default=[], metavar="CIRCUIT=PPM", help="of its packets, each way")
    parser.add_argument("--exact", action="store_true", help="every packet on its own")
    parser.add_argument("--seed", type=int, default=1, help="of the lines' losses")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)
    network = loaded(args.out / NETWORK)
    play = play_of(values_of((args.out / PLAY).read_text()), network, Problems())
    losses = {circuit: int(ppm) for circuit, _, ppm in (each.rpartition("=") for each in args.loss)}
    packets = PacketModel(args.exact, losses_ppm=losses)

    def scenario(folder: Path) -> None:
        seen = run(network, play, packets, args.seed, folder)
        write_report(folder, seen)

    return kept("emulate", args.out, scenario)


if __name__ == "__main__":
    sys.exit(main())
