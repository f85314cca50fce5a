"""A running site whose receiver has a slow disk, and files that are announced, sent and written there."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mininet_tests.lab.cells import Cell
from mininet_tests.papers.eckart.cells import (
    DISK_BPS,
    DISK_BYTES,
    HELD,
    PREDICTABLE_PPM,
    RATE_BPS,
    ROOM_BYTES,
    RTT_MS,
    counted_every_s,
    is_endless,
    slower,
)
from mininet_tests.probes.arrivals import Arrivals
from mininet_tests.site.command import HEADWAY
from mininet_tests.site.emulation import Emulation, MoreSettings, emulation
from mininet_tests.site.host_ports import Ports
from mininet_tests.site.lsst import BACKGROUND, FLOWS, IMAGE_HOSTS, RECEIVER, SENDERS
from mininet_tests.site.slow_disk import SlowDisk, slow_disk
from mininet_tests.site.tcp_flows import DRAIN_EACH_S, Drain, Feeder, TcpStream, until
from mininet_tests.site.topos import PacketModel, larger_packets
from mininet_tests.site.wiring import in_namespace
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois

STORE = "data"
ARCHIVE = {"name": "archive", "class": "background", "from": IMAGE_HOSTS[0], "to": RECEIVER}
FIRST_PORT = 5101
READY_S = 0.05  # from an announcement until its plan is in force: a promise allows for it
FULL = 0.9  # of what is planned for the background
MEASURED_BYTES = 250_000_000
SUPER_SEGMENTS = 16  # at the least, where lines are slower: by itself a sender puts what it sends in 1 ms into a packet


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
            planned_bps = by_flow(self.plan()).get(FLOWS[-1]["name"], 0)
            return 0 < FULL * planned_bps < self.arrivals.bps(500_000, BACKGROUND)

        eventually(is_full, within_s=60, what="the background has what is planned for it")
        if self.holds:
            eventually(lambda: self.store() is not None, within_s=20, what="the store is known")
            eventually(lambda: not (self.store() or {}).get("waiting"), within_s=60, what="nothing waits for it")

    def plan(self) -> Cell:
        """Return the plan that is desired now."""
        desired: Cell = (self.site.get("/v1/plan") or {"desired": {"allocations": [], "epoch": 0}})["desired"]
        return desired

    def store(self) -> Cell | None:
        """Return what the controller knows of the store; None if it knows of none."""
        found = self.site.get("/v1/receivers") or {"receivers": []}
        return next((one for one in found["receivers"] if one.get("store") == STORE), None)

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


def by_flow(plan: Cell) -> dict[str, int]:
    """Return what each flow of a plan may send, payload, bit/s."""
    return {one["name"]: one["payload_bps"] for one in plan["allocations"]}
