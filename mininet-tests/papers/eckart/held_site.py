"""Measures the cells that need a whole site: one whose receiver has a slow disk, held to it or not.

Run inside ``isolated.sh``, in the lab; started by ``run.py``. It does not know whether it is in the lab.
"""

import argparse
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mininet_tests.lab.cells import EXIT_AGAIN, EXIT_OK, Cell, asked, leave, tell
from mininet_tests.lab.kept import FAILURES
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.papers.eckart.cells import (
    DISK_BPS,
    DISK_BYTES,
    HELD,
    OURS,
    PREDICTABLE_PPM,
    RATE_BPS,
    ROOM_BYTES,
    RTT_MS,
    SLOWED_BPS,
    counted_every_s,
    is_endless,
    slower,
)
from mininet_tests.papers.freemon.guest import surroundings
from mininet_tests.probes.arrivals import Arrivals
from mininet_tests.site.emulation import HEADWAY, Emulation, MoreSettings, emulation, now_us
from mininet_tests.site.host_ports import Ports
from mininet_tests.site.lsst import BACKGROUND, FLOWS, IMAGE_HOSTS, RECEIVER, SENDERS
from mininet_tests.site.slow_disk import SlowDisk, slow_disk
from mininet_tests.site.tcp_flows import DRAIN_EACH_S, SWITCH_S, Drain, Feeder, TcpStream, until
from mininet_tests.site.topos import PacketModel, in_namespace, larger_packets
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois

STORE = "data"
ARCHIVE = {"name": "archive", "class": "background", "from": IMAGE_HOSTS[0], "to": RECEIVER}
FIRST_PORT = 5101
LOOK_S, FINE_S = 0.2, 0.002
READY_S = 0.05  # from an announcement until its plan is in force: a promise allows for it
HELD_WITHIN_S = 90.0  # a change soon after those of the cell before waits for 64 s at most
FULL = 0.9  # of what is planned for the background
MEASURED_BYTES = 250_000_000
SOCKETS = 16  # one has its memory back only when a datagram has left the line's port, and would send what that does
KEPT_EVERY = 20  # of what was counted
SUPER_SEGMENTS = 16  # at the least, where lines are slower: by itself a sender puts what it sends in 1 ms into a packet
ENDLESS_BYTES, ROUND_BYTES = 1 << 40, DISK_BYTES // 2  # a flow without end writes its file over and over


@dataclass(frozen=True, slots=True)
class DiskSite:
    """A running site with its disk, and who counts what arrives."""

    site: Emulation
    disk: SlowDisk
    arrivals: Arrivals
    feeder: Feeder
    measured: dict[str, Any]
    holds: bool

    def writer(self, name: str, port: int, size_bytes: int, *more: str) -> "subprocess.Popen[bytes]":
        """Start the program at the receiver that writes a file; return it when it listens."""
        address = str(self.site.realised.network.host(RECEIVER).ip)
        command = [sys.executable, "-m", "mininet_tests.site.disk_writer", "--listen", address, "--port", str(port)]
        file = ["--file", str(self.disk.path / name), "--bytes", str(size_bytes)]
        started = self.site.spawn(f"writer-{name}", [*command, *file, *more], host=RECEIVER)
        eventually(lambda: "listening" in self.site.tail(f"writer-{name}"), within_s=30, what="the writer listens")
        return started

    def connected(self, host: str, port: int) -> TcpStream:
        """Return a connection to the writer; its other end is that program's."""
        net, address = self.site.realised.net, (str(self.site.realised.network.host(RECEIVER).ip), port)
        end = in_namespace(net[host].pid, lambda: socket.create_connection(address, timeout=20))
        end.setblocking(False)
        return TcpStream(end, end)

    def settled(self) -> None:
        """Wait until the background has all that is planned for it again, and the disk is idle."""

        def is_full() -> bool:
            planned_bps = _planned_bps(self).get(FLOWS[-1]["name"], 0)
            return 0 < FULL * planned_bps < self.arrivals.bps(500_000, BACKGROUND)

        eventually(is_full, within_s=60, what="the background has what is planned for it")
        if self.holds:
            eventually(lambda: _store(self) is not None, within_s=20, what="the store is known")
            eventually(lambda: not (_store(self) or {}).get("waiting"), within_s=60, what="nothing waits for it")

    def arrived(self, from_us: int, until_us: int) -> list[tuple[int, dict[str, int]]]:
        """Return what was counted between two times."""
        return [one for one in self.arrivals.seen if from_us <= one[0] <= until_us]


@contextmanager
def disk_site(cell: Cell, folder: Path) -> Iterator[DiskSite]:
    """Give the site of a cell, and of those like it: its disk measured first, as an operator does."""
    by = slower(cell)
    network = chile_illinois(rate_bps=RATE_BPS // by, delay_us=RTT_MS * 500)
    holds, endless = cell["who"] == HELD, is_endless(cell)
    with slow_disk(folder / "disk", DISK_BPS // by, DISK_BYTES, ROOM_BYTES // by) as disk:
        command = [str(HEADWAY), "agent", "check", "--store", str(disk.path), "--json"]
        command += ["--rate", f"{RATE_BPS // by} bit/s", "--bytes", str(MEASURED_BYTES // by)]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
        measured = json.loads(said.stdout)
        senders = [str(network.host(host).ip) + "/32" for host in SENDERS if host != BACKGROUND]
        store: dict[str, Any] = {"path": str(disk.path), "name": STORE, "from": senders}
        if not endless:  # what nobody has typed in is learnt
            store["rate"] = f"{measured['drain_bps']} bit/s"
        agents = {RECEIVER: {"stores": [store]}} if holds else {}
        flows = [one for one in FLOWS if one["from"] == BACKGROUND] + ([ARCHIVE] if endless else [])
        used = {RECEIVER, BACKGROUND, *IMAGE_HOSTS, *(() if endless else SENDERS)}
        policy = {"predictable": {"guarantee": f"{PREDICTABLE_PPM / 10_000:g}%", "cap": "5%"}}
        idle_hosts = frozenset(h.name for h in network.hosts) - used
        with emulation(
            network, flows, folder, packets=PacketModel(single=False), without_agent=idle_hosts,
            settings=MoreSettings({"hold_to_receivers": holds, "policy": policy}, agents),
        ) as site, Arrivals(site, RECEIVER, SENDERS, counted_every_s(cell)) as arrivals:  # fmt: skip
            if by > 1:  # else the lab has as much to do as at the full rates, and takes as long
                larger_packets(site.realised, (BACKGROUND, *IMAGE_HOSTS), SUPER_SEGMENTS)
            feeder, drain = Feeder(), Drain(DRAIN_EACH_S * by)
            feeder.feed(Ports(site, RECEIVER, drain).all_opened((BACKGROUND,)))
            yield DiskSite(site, disk, arrivals, feeder, measured, holds)
            feeder.close()
            drain.close()


class Sent:
    """One file that is announced, sent and written."""

    def __init__(self, on: DiskSite, name: str, host: str, size_bytes: int) -> None:
        """Get ready who writes it."""
        self.name, self._host, self._on = name, host, on
        self._port, self._size_bytes = FIRST_PORT + len(on.site.processes), size_bytes
        self._writer = on.writer(name, self._port, size_bytes)
        self.began_s = self.across_s = self._announced_s = 0.0
        self._resent = 0

    def begin(self) -> None:
        """Announce it, and begin to send it at once: what it is promised counts from the announcement."""
        self._announced_s = time.monotonic()
        self.promise = self._on.site.asked("POST", "/v1/announcements", {
            "id": self.name, "bytes": self._size_bytes, "from": [self._host], "to": RECEIVER,
            "connections": {"dest_port": self._port}})  # fmt: skip
        self.stream = self._on.connected(self._host, self._port)
        until(self._announced_s + READY_S)
        self.began_s = time.monotonic()
        self._on.feeder.feed([self.stream], self._size_bytes)

    def look(self) -> bool:
        """Return whether all of it is on the disk; note when all was across."""
        if not self.across_s and self.stream.unconfirmed_bytes == 0:
            self.across_s = time.monotonic()
            self._resent = self.stream.told.retransmitted_segments
        return self._writer.poll() is not None

    def ended(self) -> Cell:
        """Release it; return its times, in seconds since it began.

        Raises:
            RuntimeError: the program that writes it failed; with what it said.
        """
        self._on.site.release(self.name)
        self._on.feeder.forget([self.stream])
        self.stream.sender.close()
        said = self._on.site.tail(f"writer-{self.name}")
        if self._writer.returncode:
            raise RuntimeError(f"the writer: {said}")
        told = json.loads(said.splitlines()[-1])
        (self._on.disk.path / self.name).unlink()
        return {
            "announced_before_s": self.began_s - self._announced_s,
            "across_s": self.across_s - self.began_s,
            "stored_s": told["stored_s"] - self.began_s,
            "cpu_s": told["cpu_s"],
            "longest_write_s": told["longest_write_s"],
            "held_up_s": told["held_up_s"],
            "again_segments": self._resent,
            "promised_s": self.promise["promised_in_s"],
            "promised_stored_s": self.promise["stored_in_s"],
        }


def transfer(on: DiskSite, cell: Cell) -> Cell:
    """Return one file beside background traffic."""
    on.settled()
    return _files(on, [Sent(on, cell["name"], IMAGE_HOSTS[0], cell["size_bytes"])])


def several(on: DiskSite, cell: Cell) -> Cell:
    """Return some files at once, from three hosts."""
    on.settled()
    hosts = [host for host in SENDERS if host != BACKGROUND]
    names = [f"{cell['name']}-{number}" for number in range(cell["senders"])]
    return _files(on, [Sent(on, n, hosts[k % len(hosts)], cell["size_bytes"]) for k, n in enumerate(names)])


def _files(on: DiskSite, files: list[Sent]) -> Cell:
    """Return what was seen of some files that begin together, and what background traffic got until all is stored."""
    before = _store(on)
    began_us, first_s = now_us(), time.monotonic()
    for one in files:
        one.begin()
    looks, next_s = list[Cell](), 0.0
    while sum(one.look() for one in files) < len(files):  # each is looked at
        if time.monotonic() >= next_s:
            looks.append(_look(on, began_us))
            next_s = time.monotonic() + LOOK_S
        time.sleep(FINE_S)
    seen = [one.ended() for one in files]
    last_s = max(file.began_s - first_s + one["stored_s"] for file, one in zip(files, seen, strict=True))
    last_us = began_us + round(last_s * 1e6)
    counted = on.arrived(began_us, last_us)
    sent = [host for host in SENDERS if host != BACKGROUND]
    return {
        "files": seen, "looks": looks, "store": before, "measured": on.measured,
        "background_bytes": counted[-1][1][BACKGROUND] - counted[0][1][BACKGROUND],
        "seconds_seen": (counted[-1][0] - counted[0][0]) / 1e6,
        "arrived": [[(at - began_us) / 1e6, sum(c[h] - counted[0][1][h] for h in sent),
                     c[BACKGROUND] - counted[0][1][BACKGROUND]] for at, c in counted[::KEPT_EVERY]],
    }  # fmt: skip


def _look(on: DiskSite, began_us: int) -> Cell:
    """Return what is planned now, and what is known of the store."""
    plan = _plan(on)
    return {
        "s": (now_us() - began_us) / 1e6,
        "epoch": plan["epoch"],
        "planned_bps": _by_flow(plan),
        "store": _store(on),
    }


def _planned_bps(on: DiskSite) -> dict[str, int]:
    """Return what each flow is planned for now, payload."""
    return _by_flow(_plan(on))


def _by_flow(plan: Cell) -> dict[str, int]:
    return {one["name"]: one["payload_bps"] for one in plan["allocations"]}


def _plan(on: DiskSite) -> Cell:
    """Return the plan that is desired now."""
    desired: Cell = (on.site.get("/v1/plan") or {"desired": {"allocations": [], "epoch": 0}})["desired"]
    return desired


def _store(on: DiskSite) -> Cell | None:
    """Return what the controller knows of the store; None if it knows of none."""
    found = on.site.get("/v1/receivers") or {"receivers": []}
    return next((one for one in found["receivers"] if one.get("store") == STORE), None)


@contextmanager
def _endless(on: DiskSite, name: str) -> Iterator[TcpStream]:
    """Give a connection that writes to the disk all the time, under way; what it has written is gone afterwards."""
    port = FIRST_PORT + len(on.site.processes)
    writer = on.writer(name, port, ENDLESS_BYTES, "--over", str(ROUND_BYTES))
    stream = on.connected(IMAGE_HOSTS[0], port)
    on.feeder.feed([stream], ENDLESS_BYTES)
    yield stream
    on.feeder.forget([stream])
    stream.sender.close()
    writer.kill()
    writer.wait()
    (on.disk.path / name).unlink()


def slows(on: DiskSite, cell: Cell) -> Cell:
    """Return what was planned while a disk, of which nobody has said anything, became slow, and fast again."""
    on.settled()
    began_us, looks = now_us(), list[Cell]()
    changes = list[float]()
    with _endless(on, cell["name"]) as stream:
        for seconds, rate_bps in zip(cell["seconds"], (DISK_BPS, SLOWED_BPS, DISK_BPS), strict=True):
            on.disk.change(rate_bps)
            changes.append((now_us() - began_us) / 1e6)
            looks += _looks(on, began_us, seconds)
        return _course(on, stream, began_us, looks) | {"changes_s": changes}


def _looks(on: DiskSite, began_us: int, seconds: float) -> Iterator[Cell]:
    """Yield what is planned for some seconds, a few times in each."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        yield _look(on, began_us)
        until(time.monotonic() + LOOK_S)


def noisy(on: DiskSite, cell: Cell) -> Cell:
    """Return what was planned while a disk, of which nobody has said anything, has another rate each second or so."""
    on.settled()
    draw = random.Random(cell["seed"])
    began_us, looks, could_bits = now_us(), [_look(on, now_us())], 0.0
    with _endless(on, cell["name"]) as stream:
        began_s, before_bytes = time.monotonic(), on.disk.written_bytes
        until_s = began_s + cell["seconds"][0]
        while (from_s := time.monotonic()) < until_s:
            rate_bps = draw.randint(*cell["disk_bps"])
            on.disk.change(rate_bps)
            until(from_s + draw.uniform(*cell["lasts_s"]))
            could_bits += rate_bps * (time.monotonic() - from_s)
            looks.append(_look(on, began_us))
        written_bytes = on.disk.written_bytes - before_bytes
        course = _course(on, stream, began_us, looks)
        return course | {"written_bytes": written_bytes, "could_bytes": round(could_bits / 8)}


def killed(on: DiskSite, cell: Cell) -> Cell:
    """Return what was planned before and after the receiver's agent was killed."""
    on.settled()
    began_us, looks = now_us(), list[Cell]()
    with _endless(on, cell["name"]) as stream:
        looks += _looks(on, began_us, 10)

        def is_held() -> bool:
            look = _look(on, began_us)
            looks.append(look)
            return any(look["planned_bps"][one["flow"]] == one["planned_bps"] for one in look["store"]["holds"])

        eventually(is_held, within_s=HELD_WITHIN_S, what="the flow is held to the disk")
        agent = on.site.processes[f"agent-{RECEIVER}"]
        agent.kill()
        agent.wait()
        killed_s = (now_us() - began_us) / 1e6
        looks += _looks(on, began_us, 20)
        return _course(on, stream, began_us, looks) | {"killed_s": killed_s}


def _course(on: DiskSite, stream: TcpStream, began_us: int, looks: list[Cell]) -> Cell:
    counted = on.arrived(began_us, now_us())
    first, again = counted[0][1], stream.told.retransmitted_segments
    rows = [[(at - began_us) / 1e6, c[IMAGE_HOSTS[0]] - first[IMAGE_HOSTS[0]], c[BACKGROUND] - first[BACKGROUND]]
            for at, c in counted[::KEPT_EVERY]]  # fmt: skip
    return {"looks": looks, "arrived": rows, "again_segments": again, "measured": on.measured}


def overrun(on: DiskSite, cell: Cell) -> Cell:
    """Return one file while another host sends datagrams to its receiver for a second, two seconds after it began."""
    address = str(on.site.realised.network.host(RECEIVER).ip)
    on.site.spawn("udp-server", ["iperf3", "--server", "--port", "7001"], host=RECEIVER)
    on.settled()
    sent = Sent(on, cell["name"], IMAGE_HOSTS[0], cell["size_bytes"])
    client = ["iperf3", "--client", address, "--port", "7001", "--udp", "--length", "1400", "--time", "1", "--json"]
    client += ["--parallel", str(SOCKETS), "--bitrate", str(cell["udp_bps"] // SOCKETS)]
    late = ["sh", "-c", f"sleep 3; exec {' '.join(client)}"]
    on.site.spawn("udp-client", late, host=IMAGE_HOSTS[1])
    seen = _files(on, [sent])
    on.site.processes["udp-client"].wait(30)
    told = json.loads((on.site.directory / "logs/udp-client.log").read_text())
    return seen | {"udp": told.get("end", {}).get("sum", told)}


KINDS: dict[str, Callable[[DiskSite, Cell], Cell]] = {
    "transfer": transfer, "several": several, "slows": slows, "killed": killed, "noisy": noisy,
    "overrun": overrun,
}  # fmt: skip


def main() -> None:
    """Measure, and tell of each cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder with the cells that are asked for")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)
    cell, *_ = wanted = asked(args.out)
    assert cell["who"] in OURS  # noqa: S101
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        try:
            with disk_site(cell, Path(scratch)) as on:
                for cell in wanted:
                    with IdleMeter() as meter:
                        seen = KINDS[cell["experiment"]](on, cell)
                    tell(cell, seen | {"idle_share": min(meter.shares)} | surroundings())
        except FAILURES as error:
            traceback.print_exc()
            logs = {log.name: log.read_text()[-2000:] for log in Path(scratch).glob("logs/*.log")}
            print(json.dumps(logs, indent=1)[:6000], flush=True)
            tell(cell, {"failed": str(error)})
            leave(EXIT_AGAIN)
    leave(EXIT_OK)


if __name__ == "__main__":
    main()
