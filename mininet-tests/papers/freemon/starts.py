"""Senders that start at one instant into one port, each by an interface of its own: Freemon's section V.A.

What keeps them from the port's buffer is a cell's ``way``: ``headway``, whose agent paces each to its share; ``htb``, a
class of the Hierarchical Token Bucket on each sender's interface; ``pause``, a port that stops the interfaces while its
queue is long; or ``window``, nothing but the window. What else a sender has to say, to somebody on this side of the
port, is a ping by the first interface.
"""

import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from mininet_tests.lab.cells import Cell
from mininet_tests.papers.antony.line import Nics
from mininet_tests.papers.freemon.cells import TEN_SENDERS
from mininet_tests.papers.freemon.limits import Way
from mininet_tests.papers.freemon.transfers import LINE_BURST_S
from mininet_tests.site.back_pressure import Plugs, PortQueue, PortWatch
from mininet_tests.site.long_line_site import LongLineSite
from mininet_tests.site.tcp_flows import TcpStream
from topology.wire import Layer

MARKS_BYTES = 1_000_000, 500_000  # of the port's queue: interfaces are stopped, and go on
CLASS_BURST_BYTES = 15_000
PING_EVERY_S = 0.005
_PORT = "up1"
_TIME_MS = re.compile(r"time=([\d.]+) ms")


class Starts:
    """The senders' interfaces on a site's line."""

    def __init__(self, site: LongLineSite) -> None:
        """Add as many as any cell has."""
        self._site = site
        self._nics = Nics(site.line, max(TEN_SENDERS), single_packets=False)
        self._queue = PortQueue(site.line.near, _PORT)
        self._plugs: Plugs | None = None

    def ports(self, cell: Cell) -> list[int]:
        """Return the senders' own ports."""
        return [nic.port for nic in self._nics.nics[: cell["senders"]]]

    def prepared(self, cell: Cell, way: Way) -> list[TcpStream]:
        """Return a new connection of each sender, its interface and the port as a cell has them."""
        line, count, frame_bps = self._site.line, cell["senders"], way.bps(Layer.FRAME)
        line.widen()
        line.narrow(frame_bps, cell["buffer_bytes"], LINE_BURST_S)
        devices = [nic.device for nic in self._nics.nics[:count]]
        line.sender.run("tc", "-batch", "-", text="\n".join(f"qdisc replace dev {d} root noqueue" for d in devices))
        if cell["way"] == "htb":
            batch = [c for d in devices for c in held(d, line.receiver.address, frame_bps // count, frame_bps)]
            line.sender.run("tc", "-batch", "-", text="\n".join(batch))
        else:
            self._nics.set_rate(count, frame_bps, LINE_BURST_S)
        self._nics.set_window(count, None)  # the routes; windows are the agent's
        if cell["way"] == "pause":
            line.sender.run("modprobe", "sch_plug")
            self._plugs = Plugs(line.sender, devices)
        else:
            self._plugs = None
        streams = self._nics.connected(count)
        self._site.drain.add(streams)
        return streams

    @contextmanager
    def watched(self, cell: Cell) -> Iterator[Cell]:
        """Watch the port, stop the interfaces if the cell says so, and ping; yield what is filled in at the end."""
        seen: Cell = {}
        watch = PortWatch(self._queue, self._plugs, MARKS_BYTES)
        try:
            with self._pinging() as times_ms:
                yield seen
        finally:
            watch.close()
        seen["most_queued_bytes"] = watch.most_bytes
        seen["ping_most_ms"] = max(times_ms)
        if cell["way"] == "pause":
            seen |= {"stops": watch.stops, "stopped_s": watch.stopped_s}

    @contextmanager
    def _pinging(self) -> Iterator[list[float]]:
        """Ping the near end by the first interface; yield the round trips, which are there at the end."""
        nic, times_ms = self._nics.nics[0], list[float]()
        command = ["ping", "-n", "-i", str(PING_EVERY_S), "-I", nic.device, nic.gateway]
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(["ip", "netns", "exec", self._site.line.sender.name, *command], stdout=output)
            try:
                yield times_ms
            finally:
                process.send_signal(signal.SIGINT)
                process.wait()
            output.seek(0)
            times_ms += round_trips_ms(output.read())


def held(device: str, address: str, share_bps: int, nic_bps: int) -> Iterator[str]:
    """Yield what ``tc -batch`` is told, so that what a sender sends to an address has its share of a port.

    Args:
        device: its interface.
        address: of the receiver.
        share_bps: in Ethernet frames.
        nic_bps: of the interface, for everything else.
    """
    yield f"qdisc replace dev {device} root handle 10: htb default 2"
    for minor, rate_bps in ((1, share_bps), (2, nic_bps)):
        burst = f"burst {CLASS_BURST_BYTES} cburst {CLASS_BURST_BYTES}"
        yield f"class add dev {device} parent 10: classid 10:{minor} htb rate {rate_bps}bit {burst} quantum 60000"
        yield f"qdisc add dev {device} parent 10:{minor} bfifo limit 100000000"
    yield f"filter add dev {device} parent 10: protocol ip u32 match ip dst {address} flowid 10:1"


def round_trips_ms(said: str) -> list[float]:
    r"""Return the round trips that ``ping`` has told of.

    >>> round_trips_ms("64 bytes from 10.78.1.254: icmp_seq=1 ttl=64 time=0.046 ms\n64 bytes from ... time=96 ms\n")
    [0.046, 96.0]
    """
    return [float(time_ms) for time_ms in _TIME_MS.findall(said)]
