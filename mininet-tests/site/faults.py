"""Traffic in our own hands on a running site, and what can break there: each fault with its cure."""

import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from mininet_tests.site.command import run
from mininet_tests.site.emulation import Emulation, in_lab, started_again
from mininet_tests.site.ends import address_of
from mininet_tests.site.tcp_flows import Drain, Feeder, TcpStream, opened
from mininet_tests.site.topos import OPENFLOW_PORT
from mininet_tests.site.wiring import in_namespace
from topology.network import Hop, Link
from topology.wire import Layer

T = TypeVar("T")

SEGMENT_BYTES = 1448
LOSING = """table inet losing {{
  chain coming {{
    type filter hook input priority -400
    iifname != "{management}" numgen random mod 100 < {percent} drop
  }}
}}
"""
OTHER_NUMBER = 100
SILENT_OPENFLOW = f"""table inet openflow {{
  chain passing {{ type filter hook input priority 0; tcp dport {OPENFLOW_PORT} drop; tcp sport {OPENFLOW_PORT} drop; }}
}}
"""


@dataclass(frozen=True, slots=True)
class ReachableHost:
    """A host as the opener of connections sees it: an address, and a way inside."""

    pid: int
    address: str
    address6: str = ""

    def inside(self, act: Callable[[], T]) -> T:
        """Return what ``act`` returns in the host's namespace."""
        return in_namespace(self.pid, act)


@dataclass(slots=True)
class Traffic:
    """Warm connections by name; fed and drained by threads of this process.

    Attributes:
        site: where.
        streams: one connection a name.
        links: by name, the directed links that its data crosses.
    """

    site: Emulation
    streams: dict[str, TcpStream] = field(default_factory=dict)
    links: dict[str, tuple[str, ...]] = field(default_factory=dict)
    feeder: Feeder = field(default_factory=Feeder)
    drain: Drain = field(default_factory=Drain)

    def place(self, host: str) -> ReachableHost:
        """Return a host."""
        realised = self.site.realised
        known = realised.network.host(host)
        return ReachableHost(realised.node(host).pid, address_of(known, 4), address_of(known, 6))

    def open(self, name: str, sender: str, receiver: str, port: int, *, ipv6: bool = False) -> TcpStream:
        """Return a new connection that nobody uses yet."""
        (stream,) = opened((self.place(sender), self.place(receiver)), port, 1, ipv6=ipv6)
        self.drain.add([stream])
        path = self.site.realised.network.path(sender, receiver)
        self.links[name] = tuple(str(Hop(*hop)) for hop in pairwise(path))
        self.streams[name] = stream
        return stream

    def frame_bps(self) -> dict[str, dict[str, int]]:
        """Return by link what the agents let each connection send now, bit/s of frames.

        One that has nothing to send, or that no agent holds, is not there.
        """
        framing = self.site.realised.network.framing
        payload, frame = framing.segment_bytes(Layer.PAYLOAD), framing.segment_bytes(Layer.FRAME)
        by_link: dict[str, dict[str, int]] = {}
        for name, stream in list(self.streams.items()):
            if stream.unconfirmed_bytes and held(stream):
                bps = 8 * stream.told.pacing_bytes_per_s * frame // payload
                for link in self.links[name]:
                    by_link.setdefault(link, {})[name] = bps
        return by_link

    def feed(self, name: str, size_bytes: int | None = None) -> None:
        """Write so much, or without end."""
        self.feeder.feed([self.streams[name]], size_bytes)

    def on_their_own(self) -> tuple[str, ...]:
        """Return the connections with something to send that no agent holds."""
        return tuple(n for n, stream in list(self.streams.items()) if stream.unconfirmed_bytes and not held(stream))

    def close(self) -> None:
        """End the threads and the connections."""
        self.feeder.close()
        self.drain.close()
        for stream in self.streams.values():
            stream.close()


def held(stream: TcpStream) -> bool:
    """Return whether the agent's algorithm runs a connection."""
    return stream.algorithm.startswith("headway")


class SiteFaults:
    """What can break on a site, and be mended; each returns at once or when it is done."""

    def __init__(self, site: Emulation) -> None:
        self.site = site

    # ---- the controller and the agents ----

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Kill a program of ours."""
        process = self.site.processes[name]
        process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            process.wait(20)

    def start_controller(self) -> None:
        """Start the controller again."""
        started_again(self.site, "controller")

    def start_agent(self, host: str) -> None:
        """Start a host's agent again."""
        started_again(self.site, "agent", host)

    # ---- the switch ----

    def restart_switch(self, *, orderly: bool) -> None:
        """End ovs-vswitchd and start it at once, as its supervisor does."""
        self.end_switch(orderly=orderly)
        self.site.ovs.start_switch()

    def end_switch(self, *, orderly: bool) -> None:
        """End ovs-vswitchd; the kernel's datapath stays."""
        if orderly:
            self.site.ovs.end_switch()
        else:
            self.site.ovs.kill_switch()

    def cut_openflow(self) -> None:
        """End the OpenFlow connections of all switches, from outside."""
        subprocess.run(["ss", "-K", "dst", "127.0.0.1", "dport", "=", str(OPENFLOW_PORT)], check=True, stdout=-3)

    def block_openflow(self) -> None:
        """Let nothing of OpenFlow pass: the connections are not closed, they are silent."""
        _nft(SILENT_OPENFLOW)

    def unblock_openflow(self) -> None:
        """Let it pass again."""
        _nft("delete table inet openflow")

    # ---- ports of hosts ----

    def cut_port(self, host: str) -> None:
        """Take the switch's port to a host down."""
        run("ip", "link", "set", self._port(host).port_name, "down")

    def mend_port(self, host: str) -> None:
        """Take it up again."""
        run("ip", "link", "set", self._port(host).port_name, "up")

    def renumber_port(self, host: str) -> None:
        """Give the switch's port to a host a number that is nobody's."""
        self._request_number(host, OTHER_NUMBER + self._port(host).port_no)

    def number_port(self, host: str) -> None:
        """Give it its own again."""
        self._request_number(host, self._port(host).port_no)

    def _request_number(self, host: str, port_no: int) -> None:
        self.site.ovs.vsctl("--no-wait", "set", "interface", self._port(host).port_name, f"ofport_request={port_no}")

    def _port(self, host: str) -> Link:
        return next(link for _, head, link in self.site.realised.network.links() if head == host)

    def lose(self, host: str, percent: int) -> None:
        """Let a host lose a part of the packets of data that come in, wherever they are from."""
        self._inside(host, LOSING.format(management=f"{host}-m", percent=percent))

    def lose_nothing(self, host: str) -> None:
        """Let it lose none of them any more."""
        self._inside(host, "delete table inet losing")

    def _inside(self, host: str, rules: str) -> None:
        pid = str(self.site.realised.net[host].pid)
        subprocess.run(["mnexec", "-a", pid, "nft", "-f", "-"], input=rules, text=True, check=True)

    # ---- the database of promises ----

    def hold_database(self) -> Callable[[], None]:
        """Hold the controller's database, so that no save of its own comes to an end; return what lets it go."""
        holder = sqlite3.connect(self.site.directory.absolute() / "headway.db", isolation_level=None, timeout=60)
        holder.execute("BEGIN IMMEDIATE")
        return holder.close

    # ---- the clock ----

    def set_clock(self, by_s: int) -> None:
        """Set the machine's wall clock forward or back.

        Raises:
            RuntimeError: this is not the lab's machine, but that of somebody who wants to know what time it is.
        """
        if not in_lab():
            raise RuntimeError("the wall clock is set in the lab only: it is the whole machine's")
        time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + by_s * 1_000_000_000)

    # ---- the management network ----

    def cut_management(self, host: str) -> None:
        """Cut a host off its controller; its data goes on."""
        self.site.realised.net[host].cmd(f"ip link set {host}-m down")

    def mend_management(self, host: str) -> None:
        """Join it again."""
        self.site.realised.net[host].cmd(f"ip link set {host}-m up")


def _nft(rules: str) -> None:
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
