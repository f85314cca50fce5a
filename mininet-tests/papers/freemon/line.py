"""Measures the cells it is given on the long line, one after another. Run inside ``isolated.sh``, in the lab.

Started by ``run.py``. It does not know whether it is in the lab.
"""

import argparse
import functools
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

from controller.plan.policy import DEFAULT_POLICY
from mininet_tests.lab.cells import EXIT_AGAIN, EXIT_OK, Cell, asked, leave, tell
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.papers.freemon.guest import surroundings
from mininet_tests.papers.freemon.limits import SEGMENTS, Way, way_of
from mininet_tests.papers.freemon.programs import carried
from mininet_tests.papers.freemon.starts import Starts
from mininet_tests.papers.freemon.trace import binned, looking
from mininet_tests.papers.freemon.transfers import WARM_BYTES, Lossy, TimedTransfer, opened, timed, warmed
from mininet_tests.site.long_line_site import LongLineSite
from mininet_tests.site.tcp_flows import SWITCH_S, TCP_CONGESTION, TcpStream, until
from topology.protocol import Allocation, FlowClass
from topology.wire import PPM, Layer

IDLE_EVERY_S = 0.1  # a CPU that is full for less than that is seen in no longer interval
FIRST_PORT = 5001
OURS = "headway"
TAILS = ("tail_copies", "tail_coded")  # of a cell, settings of the agents
IMAGE, DATABASE, BACKGROUND = "image", "database", "background"
SETTLE_S = 5.0  # the standing flows alone
LEAST_RTT_US = 5000  # what a plan says of a path without latency: nine super-packets go on while one is sent again
LARGEST_RTT_MS = 800
RIVAL_SYSCTLS = {
    "net.ipv4.tcp_wmem": "4096 67108864 536870912",
    "net.ipv4.tcp_slow_start_after_idle": "0",
}


class Measuring:
    """A site with its agents, and the cells that are measured on it."""

    def __init__(self, folder: Path, cell: Cell) -> None:
        """Build a site for a cell, and for those that are like it."""
        way = way_of(cell)
        largest_rtt_ms = max(LARGEST_RTT_MS * 10**9 // way.rate_bps, cell["rtt_ms"])
        single = cell.get("single_packets", False)
        settings: dict[str, object] = {key: cell[key] for key in TAILS if key in cell}
        self._site = LongLineSite(
            *(folder, largest_rtt_ms, way.payload_bps),
            single_packets=single,
            mtu_bytes=way.mtu_bytes,
            settings=settings,
        )
        self._line = Lossy(self._site)
        self._next_port = FIRST_PORT
        self._starts: Starts | None = None  # until a cell needs it

    def seen(self, cell: Cell) -> Cell:
        """Return what a cell has come to."""
        way = way_of(cell)
        policed_bps = way.bps(Layer.FRAME) * cell.get("policed_permille", 1000) // 1000
        moved = {key: cell.get(key, 0) for key in ("jitter_ms", "shuffled_ms")}
        self._line.set(way, policed_bps=policed_bps, **moved)
        with IdleMeter(IDLE_EVERY_S) as meter:
            runs = list(KINDS[cell["experiment"]](self, cell, way))
        shares = [share for run in runs for share in run.pop("idle_shares", ())] or meter.shares
        return {
            "runs_seen": runs,
            "idle_share": min(shares),
            "mean_idle_share": sum(shares) / len(shares),
        } | surroundings()

    def table(self, cell: Cell, way: Way) -> list[Cell]:
        """Return the transfers of a cell of the paper's tables."""
        rate_bps = way.rate_bps * cell.get("plan_permille", 1000) // 1000
        plan = Way(rate_bps, cell.get("plan_rtt_ms", way.rtt_ms), way.mtu_bytes)
        port = self._planned(plan, 1, local=cell["connection"] == "receiver connects")[0]
        if cell["connection"] == "reused":
            streams, _ = opened(self._site, port, 1)
            return self._on(streams, cell, way)
        return [self._on_new(port, cell, way, number) for number in range(cell["runs"])]

    def rivals(self, cell: Cell, way: Way) -> list[Cell]:
        """Return the transfers of a contestant: ours by the plan, the others by what suits them best."""
        ours = cell["algorithm"] == OURS
        port = self._planned(way, 1 if ours else 0)[0]
        self._suit(cell)
        if "program" in cell:
            return [self._lossy([], cell, way, number) for number in range(cell["runs"])]
        streams = self._image_streams(cell, way, port)
        return self._on(streams, cell, way, WARM_BYTES if ours else cell["size_bytes"])

    def load(self, cell: Cell, way: Way) -> list[Cell]:
        """Return the transfers of a contestant while background and database run by the same algorithm."""
        ours, shares = cell["algorithm"] == OURS, image_shares()
        standby = DEFAULT_POLICY.standby_ppm
        before = shares | {BACKGROUND: shares[BACKGROUND] + shares[IMAGE] - standby, IMAGE: standby}
        ports = dict(zip(shares, self._planned(way, 0, len(shares)), strict=True))
        self._plan_shares(way, ports, before if ours else {})
        self._suit(cell)
        streams = {
            IMAGE: [] if "program" in cell else self._image_streams(cell, way, ports[IMAGE]),
            DATABASE: self._contestant(cell, ports[DATABASE], 1),
            BACKGROUND: self._contestant(cell, ports[BACKGROUND], cell["background_connections"]),
        }
        standing = streams[DATABASE] + streams[BACKGROUND]
        streams[DATABASE][0].ask_for(way.payload_bps * shares[DATABASE] // PPM // 8)
        if streams[IMAGE]:
            warmed(self._site, streams[IMAGE], WARM_BYTES if ours else cell["size_bytes"], way.rtt_ms / 1000)
        seen = []
        for number in range(cell["runs"]):
            self._lose(cell, number)
            self._site.feeder.feed(standing)
            until(time.monotonic() + SETTLE_S)
            change = functools.partial(self._plan_shares, way, ports, shares) if ours else None
            seen.append(self._beside(streams, cell, way, change) | {"database_ppm": shares[DATABASE]})
            self._site.feeder.feed(standing, 0)
            self._plan_shares(way, ports, before if ours else {})
            self._line.none()
            until(time.monotonic() + SETTLE_S)
        for some in streams.values():
            self._site.close(some)
        return seen

    def _beside(
        self, streams: dict[str, list[TcpStream]], cell: Cell, way: Way, change: Callable[[], None] | None
    ) -> Cell:
        """Return a transfer beside standing flows, with their rates meanwhile; the change of plan is part of it."""
        then_s, then = self._delivered(streams)
        if change is not None:
            change()
        changed_s = time.monotonic() - then_s
        others = streams[DATABASE] + streams[BACKGROUND]
        seen = self._transferred(streams[IMAGE], cell, way, others, quiet=False)
        now_s, now = self._delivered(streams)
        rates = {f"{name}_bps": (now[name] - then[name]) * 8 / (now_s - then_s) for name in (DATABASE, BACKGROUND)}
        return seen | rates | {"s": seen["s"] + changed_s}

    def _delivered(self, streams: dict[str, list[TcpStream]]) -> tuple[float, dict[str, int]]:
        """Return the time, and what has arrived of each flow."""
        return time.monotonic(), {name: sum(s.received_bytes for s in some) for name, some in streams.items()}

    def _suit(self, cell: Cell) -> None:
        """Give the sender the pacing that a contestant asks for, and buffers and settings that suit it."""
        sender = self._site.line.sender
        sender.run("tc", "qdisc", "replace", "dev", "up0", "root", cell["qdisc"] or "noqueue")
        if cell["algorithm"] != OURS:
            sender.set(RIVAL_SYSCTLS)
        if "program" in cell:  # others ask for theirs on their sockets: a namespace's default may not be just any
            sender.set({"net.ipv4.tcp_congestion_control": cell["algorithm"]})

    def _image_streams(self, cell: Cell, way: Way, port: int) -> list[TcpStream]:
        """Return the connections for the image."""
        streams = self._contestant(cell, port, cell["connections"])
        if cell["pooled"]:
            for stream in streams:
                stream.ask_for(way.bps(Layer.FRAME) // 8 // len(streams))  # fq counts frames
        return streams

    def _contestant(self, cell: Cell, port: int, count: int) -> list[TcpStream]:
        """Return new connections as a contestant has them; ours are as any, the agent takes them."""
        streams, _ = opened(self._site, port, count)
        for stream in streams if cell["algorithm"] != OURS else ():
            stream.sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cell["algorithm"].encode())
        return streams

    def ten(self, cell: Cell, way: Way) -> list[Cell]:
        """Return the transfers of several senders, each with an allocation and a connection of its own."""
        streams = [opened(self._site, port, 1)[0][0] for port in self._planned(way, cell["senders"])]
        return self._on(streams, cell, way)

    def starts(self, cell: Cell, way: Way) -> list[Cell]:
        """Return the transfers of several senders that start at once, each with its share's window.

        Held by Headway they are paced to their shares; else a window may leave as fast as its interface sends. The CPU
        is watched while they last: what makes the interfaces before fills it.
        """
        starts = self._starts = self._starts or Starts(self._site)
        share_bps = way.payload_bps // cell["senders"]
        rate_bps = share_bps if cell["way"] == OURS else way.payload_bps
        self._plan(way, dict.fromkeys(starts.ports(cell), rate_bps), local=True, window_bps=share_bps)
        streams = starts.prepared(cell, way)
        warmed(self._site, streams, WARM_BYTES, cell["rtt_ms"] / 1000)
        seen = []
        for number in range(cell["runs"]):
            with starts.watched(cell) as watched, IdleMeter(IDLE_EVERY_S) as meter:
                one = self._lossy(streams, cell, way, number)
            seen.append(one | watched | {"idle_shares": meter.shares})
        self._site.close(streams)
        return seen

    def _on(self, streams: list[TcpStream], cell: Cell, way: Way, warm_bytes: int = WARM_BYTES) -> list[Cell]:
        """Return a cell's transfers on connections that have been used."""
        warmed(self._site, streams, warm_bytes, cell["rtt_ms"] / 1000)
        seen = [self._lossy(streams, cell, way, number) for number in range(cell["runs"])]
        self._site.close(streams)
        return seen

    def _on_new(self, port: int, cell: Cell, way: Way, number: int) -> Cell:
        """Return a transfer on a new connection; the line loses nothing while it is opened."""
        streams, opened_s = opened(self._site, port, 1, sender_connects=cell["connection"] == "sender connects")
        seen = self._lossy(streams, cell, way, number) | {"opened_s": opened_s}
        self._site.close(streams)
        return seen

    def _lossy(self, streams: list[TcpStream], cell: Cell, way: Way, number: int) -> Cell:
        """Return one transfer; the line loses something only while it lasts."""
        self._lose(cell, number)
        dropped = self._site.line.dropped()
        coded = self._site.coded if cell.get("tail_coded") else None
        seen = self._transferred(streams, cell, way)
        if coded is not None:
            sender, receiver = self._site.coded
            seen |= {"parities": sender.parities - coded[0].parities, "rebuilt": receiver.rebuilt - coded[1].rebuilt}
        seen["queue_dropped"] = self._site.line.dropped() - dropped
        if cell["loss_percent"]:
            seen |= self._line.counts
            self._line.none()
        return seen

    def _lose(self, cell: Cell, number: int) -> None:
        if cell["loss_percent"]:
            how = {"run_length": cell.get("run_length")}
            self._line.lose(cell["loss_model"] or SEGMENTS, cell["loss_percent"], cell["seed"] + number, **how)

    def _transferred(
        self, streams: list[TcpStream], cell: Cell, way: Way, others: Sequence[TcpStream] = (), *, quiet: bool = True
    ) -> Cell:
        """Return one transfer, on connections or by a program; others may be under way."""
        if "program" in cell:
            with tempfile.TemporaryDirectory(prefix="headway-") as folder:
                return carried(self._site.line, cell, way, Path(folder), others)
        what, before = (
            TimedTransfer(cell["size_bytes"], way.limit_s(cell["size_bytes"]), way.rtt_ms / 1000),
            self._site.fallbacks,
        )
        if "bin_ms" in cell:
            return self._traced(streams, cell, what)
        seen: Cell = timed(self._site, streams, what, quiet=quiet)
        return seen | {"fallback": self._site.fallbacks.in_a_run_since(before)}

    def _traced(self, streams: list[TcpStream], cell: Cell, what: TimedTransfer) -> Cell:
        """Return one transfer and how it went over time."""
        before = self._site.fallbacks

        def look() -> tuple[int, int, int]:
            counts, readable = self._line.counts, sum(stream.received_bytes for stream in streams)
            return counts["arriving_segments"] - counts["dropped_segments"], counts["dropped_segments"], readable

        with looking(look) as looks:
            seen: Cell = timed(self._site, streams, what)
        seen["fallback"] = self._site.fallbacks.in_a_run_since(before)
        return seen | binned(looks, seen["s"], cell["bin_ms"], cell["size_bytes"])

    def _planned(self, way: Way, count: int, ports_count: int = 1, *, local: bool = False) -> list[int]:
        """Return ports; the first ``count`` have equal parts of the rate, the others no plan.

        They are the receiver's, or with ``local`` the sender's.
        """
        ports = [self._next_port + number for number in range(max(ports_count, count))]
        self._next_port += len(ports)
        self._plan(way, dict.fromkeys(ports[:count], way.payload_bps // max(1, count)), local=local)
        return ports

    def _plan_shares(self, way: Way, ports: dict[str, int], shares_ppm: dict[str, int]) -> None:
        self._plan(way, {ports[name]: way.payload_bps * ppm // PPM for name, ppm in shares_ppm.items()})

    def _plan(self, way: Way, rates_bps: dict[int, int], *, local: bool = False, window_bps: int | None = None) -> None:
        """Bring a plan into force: each port with a rate, and the window that the controller's policy gives it.

        Or with ``window_bps`` the window that it gives for that rate.
        """
        dest, rtt_us = ip_network(self._site.line.receiver.address), max(LEAST_RTT_US, round(way.rtt_ms * 1000))
        entries = []
        for port, rate_bps in rates_bps.items():
            window = DEFAULT_POLICY.window_segments(window_bps or rate_bps, rtt_us, way.framing.mss_bytes)
            entry = Allocation(f"port{port}", FlowClass.URGENT, dest, rate_bps, window, tail=self._site.tail)
            entries.append(replace(entry, local_port=port) if local else replace(entry, dest_port=port))
        self._site.plan(*entries)


def image_shares() -> dict[str, int]:
    """Return what the controller's policy gives the flows while an image is under way, parts per million.

    The urgent class has what the others' guarantees leave.
    """
    kept = {flow_class: policy.guarantee_ppm for flow_class, policy in DEFAULT_POLICY.classes.items()}
    del kept[FlowClass.URGENT]
    return {
        IMAGE: PPM - sum(kept.values()),
        DATABASE: kept[FlowClass.PREDICTABLE],
        BACKGROUND: kept[FlowClass.BACKGROUND],
    }


KINDS: dict[str, Callable[[Measuring, Cell, Way], list[Cell]]] = {
    "table": Measuring.table,
    "rivals": Measuring.rivals,
    "load": Measuring.load,
    "sensitivity": Measuring.table,
    "figure3": Measuring.table,
    "ten": Measuring.ten,
    "starts": Measuring.starts,
}


def main() -> None:
    """Measure, and tell of each cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder with the cells that are asked for")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)
    cell, *_ = wanted = asked(args.out)
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        try:
            measuring = Measuring(Path(scratch), cell)
            for cell in wanted:
                tell(cell, measuring.seen(cell))
        except (AssertionError, RuntimeError, OSError) as error:
            traceback.print_exc()
            tell(cell, {"failed": str(error)})  # the others need a site that is whole
            leave(EXIT_AGAIN)
    leave(EXIT_OK)


if __name__ == "__main__":
    main()
