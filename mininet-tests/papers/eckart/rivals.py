"""Measures the rivals' cells on the bare line, each beside a flow as its own: no plan, no agent. In the lab.

Run inside ``isolated.sh``; started by ``tables.py``.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Self

from mininet_tests.lab.cells import EXIT_AGAIN, EXIT_OK, Cell, asked, leave, tell
from mininet_tests.lab.kept import FAILURES
from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.papers.eckart.cells import DISK_BPS, DISK_BYTES, PROGRAMS, RATE_BPS, ROOM_BYTES, RTT_MS
from mininet_tests.papers.freemon.guest import surroundings
from mininet_tests.papers.freemon.limits import Way
from mininet_tests.papers.freemon.programs import carried
from mininet_tests.site.long_line import LongLine
from mininet_tests.site.slow_disk import SlowDisk, slow_disk
from mininet_tests.site.tcp_flows import SWITCH_S, TCP_CONGESTION, Drain, Feeder, TcpStream, opened, until
from mininet_tests.testing.eventually import eventually
from topology.wire import Layer

BACKGROUND_PORT, FIRST_PORT = 4001, 5101
WAY = Way(RATE_BPS, RTT_MS)
BUFFER_S = 0.02  # of the port at the bottleneck
SETTLE_S, LOOK_S, FINE_S = 3.0, 0.02, 0.002
SYSCTLS = {"net.ipv4.tcp_wmem": "4096 67108864 536870912", "net.ipv4.tcp_slow_start_after_idle": "0"}
GIVE_UP_S = 300.0


class Watched:
    """The background flow, looked at a few times in a round trip, in a thread of its own."""

    def __init__(self, stream: TcpStream) -> None:
        """Make it; ``with`` looks."""
        self._stream, self._stop = stream, threading.Event()
        self._seen: list[tuple[float, int]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            self._seen.append((time.monotonic(), self._stream.received_bytes))

    def bytes(self, from_s: float, until_s: float) -> int:
        """Return what arrived of it between two times."""
        counts = [count for at_s, count in self._seen if from_s <= at_s <= until_s]
        return counts[-1] - counts[0] if counts else 0

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._stop.set()
        self._thread.join()


class BareLine:
    """The line with its bottleneck, a flow that fills it, and the disk."""

    def __init__(self, disk: SlowDisk, algorithm: str) -> None:
        """Build it, and let the background flow begin."""
        self.disk, self.line = disk, LongLine(RTT_MS, single_packets=False)
        frame_bps = WAY.bps(Layer.FRAME)
        self.line.narrow(frame_bps, int(frame_bps / 8 * BUFFER_S) + 70_000, 0.001)
        self.line.sender.set(SYSCTLS | {"net.ipv4.tcp_congestion_control": algorithm})
        self.line.sender.run("tc", "qdisc", "replace", "dev", "up0", "root", "fq")
        self.feeder, self.drain = Feeder(), Drain()
        self.background = opened((self.line.sender, self.line.receiver), BACKGROUND_PORT, 1)
        self.drain.add(self.background)
        self.feeder.feed(self.background)
        self._port = FIRST_PORT

    def seen(self, cell: Cell) -> Cell:
        """Return one file by a contestant, beside the flow that fills the line."""
        until(time.monotonic() + SETTLE_S)
        self._port += 1
        with tempfile.TemporaryDirectory(prefix="headway-") as folder, Watched(self.background[0]) as watched:
            way = self._by_program if cell["who"] in PROGRAMS else self._by_stream
            found = way(cell, Path(folder))
        began_s = found.pop("began_s")
        return {
            "files": [found],
            "background_bytes": watched.bytes(began_s, began_s + found["stored_s"]),
            "seconds_seen": found["stored_s"],
        }

    def _by_stream(self, cell: Cell, folder: Path) -> Cell:
        """Return one file by a connection to a program that writes it."""
        file = self.disk.path / "image"
        command = [sys.executable, "-m", "mininet_tests.site.disk_writer", "--listen", self.line.receiver.address]
        command += ["--port", str(self._port), "--file", str(file), "--bytes", str(cell["size_bytes"])]
        log = folder / "writer.log"
        with log.open("w") as output:
            writer = subprocess.Popen(["ip", "netns", "exec", self.line.receiver.name, *command], stdout=output)
        eventually(lambda: "listening" in log.read_text(), within_s=30, what="the writer listens")
        to = self.line.receiver.address, self._port
        end = self.line.sender.inside(lambda: socket.create_connection(to, timeout=20))
        end.setblocking(False)
        end.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cell["who"].encode())
        stream = TcpStream(end, end)
        began_s, across_s, again = time.monotonic(), 0.0, 0
        self.feeder.feed([stream], cell["size_bytes"])
        while writer.poll() is None:
            if not across_s and stream.unconfirmed_bytes == 0:
                across_s, again = time.monotonic(), stream.told.retransmitted_segments
            if time.monotonic() - began_s > GIVE_UP_S:
                raise RuntimeError(f"not stored after {GIVE_UP_S:g} s")
            time.sleep(FINE_S)
        self.feeder.forget([stream])
        end.close()
        file.unlink()
        told = json.loads(log.read_text().splitlines()[-1])
        return {"began_s": began_s, "across_s": across_s - began_s, "stored_s": told["stored_s"] - began_s,
                "cpu_s": told["cpu_s"], "longest_write_s": told["longest_write_s"], "held_up_s": told["held_up_s"],
                "again_segments": again}  # fmt: skip

    def _by_program(self, cell: Cell, folder: Path) -> Cell:
        """Return one file by a program."""
        target = self.disk.path / "image"
        target.unlink(missing_ok=True)
        asked_for = cell | {"program": cell["who"], "connections": 4}
        found = carried(self.line, asked_for, WAY, folder, self.background, target)
        target.unlink(missing_ok=True)
        return {"began_s": found["began_s"], "across_s": found["s"], "stored_s": found["stored_s"],
                "cpu_s": found["cpu_s"], "again_segments": found["again_segments"]}  # fmt: skip


def main() -> None:
    """Measure, and tell of each cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder with the cells that are asked for")
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_S)
    cell, *_ = wanted = asked(args.out)
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        try:
            with slow_disk(Path(scratch) / "disk", DISK_BPS, DISK_BYTES, ROOM_BYTES) as disk:
                line = BareLine(disk, "bbr" if cell["who"] == "bbr" else "cubic")
                for cell in wanted:
                    with IdleMeter() as meter:
                        seen = line.seen(cell)
                    tell(cell, seen | {"idle_share": min(meter.shares)} | surroundings())
        except (*FAILURES, OSError) as error:
            traceback.print_exc()
            tell(cell, {"failed": str(error)})
            leave(EXIT_AGAIN)
    leave(EXIT_OK)


if __name__ == "__main__":
    main()
