"""Two hosts on this kernel: network namespaces joined by a veth, real sockets, a real agent, a fake controller."""

import contextlib
import ctypes
import functools
import hashlib
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent import futures
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar

from hostagent.tests.fake_controller import FakeController
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocation, Allocations, FlowClass, Hello

T = TypeVar("T")
MBIT = 1_000_000
REPOSITORY = Path(__file__).parents[2]
LOOKS = 100
LOOK_WITHIN_S = 0.001
CLONE_NEWNET = 0x40000000
TCP_CONGESTION = 13
START = (
    "import sys; from pathlib import Path; from hostagent import settings; from hostagent.agent import daemon;"
    "sys.exit(daemon.run(settings.loaded(Path(sys.argv[1]))))"
)
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """What the kernel says of one sending socket."""

    unacked_segments: int
    rtt_us: int
    cwnd_segments: int
    pacing_bytes_per_s: int
    bytes_acked: int


def tcp_info(sender: socket.socket) -> TcpInfo:
    """Return what the kernel says of a socket; of one of Multipath TCP, of its first subflow."""
    data = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    (unacked,), words = struct.unpack_from("=I", data, 24), struct.unpack_from("=16I", data, 68)
    pacing, _most, acked = struct.unpack_from("=3Q", data, 104)
    return TcpInfo(unacked, words[0], words[3], pacing, acked)


class NamespaceHost:
    """A network namespace with one address of each family on a veth."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.address = f"10.77.0.{number}"
        self.address6 = f"fd77::{number}"
        self.interface = f"v{number}"
        _ip("netns", "add", name)

    def set_up(self) -> None:
        for command in (
            f"address add {self.address}/24 dev {self.interface}",
            f"address add {self.address6}/64 dev {self.interface} nodad",
            f"link set {self.interface} up",
            "link set lo up",
        ):
            self.ip(*command.split())

    def ip(self, *arguments: str) -> None:
        """Run one command of iproute2 in this namespace."""
        _ip("-n", self.name, *arguments)

    def inside(self, act: Callable[[], T]) -> T:
        """Return ``act()``, called by a thread in this namespace."""
        with futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(self._entered, act).result()

    def _entered(self, act: Callable[[], T]) -> T:
        with Path(f"/run/netns/{self.name}").open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        return act()

    def sysctl(self, name: str) -> str:
        """Return a net.ipv4 setting of this namespace."""
        path = Path("/proc/sys/net/ipv4") / name
        return " ".join(self.inside(path.read_text).split())

    def set(self, values: dict[str, str]) -> None:
        """Set sysctls of this namespace."""
        for key, value in values.items():
            self.inside(functools.partial(Path("/proc/sys", *key.split(".")).write_text, value))

    def remove(self) -> None:
        _ip("netns", "delete", self.name)


def connected(
    connecting: NamespaceHost, listening: NamespaceHost, *, family: int = socket.AF_INET, mapped: bool = False
) -> tuple[socket.socket, socket.socket]:
    """Return both ends of a new connection, that of the connecting host first.

    With ``mapped`` the accepting socket is an IPv6 one that sees the IPv4 peer as ::ffff:a.b.c.d.
    """
    address = listening.address if family == socket.AF_INET else listening.address6
    with listening.inside(
        lambda: (
            socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
            if mapped
            else socket.create_server((address, 0), family=family)
        )
    ) as listener:
        port = listener.getsockname()[1]
        end = connecting.inside(lambda: socket.create_connection((address, port)))
        accepted, _ = listener.accept()
    return end, accepted


def end_both(sender: socket.socket, receiver: socket.socket, threads: Iterable[threading.Thread]) -> None:
    """End a connection, wait for the threads that use it, and close both ends."""
    for end in (sender, receiver):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    sender.close()
    receiver.close()


class Draining(threading.Thread):
    """Reads a transfer as it comes, from now on, and keeps nothing of it but its SHA-256."""

    def __init__(self, receiver: socket.socket, size_bytes: int) -> None:
        super().__init__()
        self._receiver, self._left_bytes, self._sha256 = receiver, size_bytes, hashlib.sha256()
        self.start()

    def run(self) -> None:
        """Read all of it, or until the connection ends."""
        while self._left_bytes and (block := self._receiver.recv(min(self._left_bytes, 1 << 20))):
            self._sha256.update(block)
            self._left_bytes -= len(block)

    def digest(self, within_s: float) -> bytes:
        """Return the SHA-256 of what has come, by when all of it or so much time has."""
        self.join(within_s)
        return self._sha256.digest()


class Bulk:
    """One connection that sends as fast as it may: from ``source`` to ``sink``; the connecting side is chosen.

    ``family`` and ``mapped``: see ``connected``.
    """

    def __init__(
        self,
        source: NamespaceHost,
        sink: NamespaceHost,
        *,
        sender_connects: bool = True,
        family: int = socket.AF_INET,
        mapped: bool = False,
    ) -> None:
        connecting, listening = (source, sink) if sender_connects else (sink, source)
        ends = connected(connecting, listening, family=family, mapped=mapped)
        self.port: int = ends[0].getpeername()[1]
        self.sender, self.receiver = ends if sender_connects else ends[::-1]
        self.written_bytes = 0  # by drip
        self._threads = [threading.Thread(target=self._drain)]
        self._threads[0].start()

    def start(self) -> "Bulk":
        self._threads.append(threading.Thread(target=self._fill))
        self._threads[-1].start()
        return self

    def drip(self, count: int, every_s: float) -> None:
        """Send a few bytes again and again, as an application does that is slower than the line."""
        self._threads.append(threading.Thread(target=self._drip, args=(bytes(count), every_s)))
        self._threads[-1].start()

    def _drip(self, block: bytes, every_s: float) -> None:
        due_s = time.monotonic()
        try:
            while True:
                self.sender.sendall(block)
                self.written_bytes += len(block)
                due_s += every_s
                time.sleep(max(0.0, due_s - time.monotonic()))
        except OSError:
            return

    def _fill(self) -> None:
        block = bytes(1 << 18)
        try:
            while True:
                self.sender.sendall(block)
        except OSError:
            return

    def _drain(self) -> None:
        block = bytearray(1 << 20)
        try:
            while self.receiver.recv_into(block):
                pass
        except OSError:
            return

    @property
    def algorithm(self) -> str:
        """The sender's congestion control."""
        return self.sender.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).split(b"\0")[0].decode()

    @algorithm.setter
    def algorithm(self, name: str) -> None:
        self.sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())

    @property
    def tos(self) -> int:
        return self.sender.getsockopt(socket.IPPROTO_IP, socket.IP_TOS)

    @property
    def info(self) -> TcpInfo:
        return tcp_info(self.sender)

    def close(self) -> None:
        end_both(self.sender, self.receiver, self._threads)


class RunningAgent:
    """An agent as a process of its own in a host's namespace, with its controller.

    ``settings``: what its configuration has besides what every agent of a test has.
    """

    def __init__(self, host: NamespaceHost, folder: Path, **settings: Any) -> None:
        self.host = host
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.controller = FakeController(folder / "c.sock")
        self._config = folder / "agent.yaml"
        self._config.write_text(
            json.dumps(
                {"host": host.name, "controllers": [self.controller.address], "run_dir": str(folder.parent)} | settings
            )
        )
        self.process = self._started()

    def _started(self) -> "subprocess.Popen[bytes]":
        command = ["ip", "netns", "exec", self.host.name, sys.executable, "-c", START, str(self._config)]
        heard = len(self.controller.all_of(Hello))  # before it starts: it may be quicker than this thread
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(command, cwd=REPOSITORY, stdout=log, stderr=log)

        def attached() -> bool:
            assert process.poll() is None, self.log
            return len(self.controller.all_of(Hello)) > heard

        eventually(attached, within_s=30, what="the agent says hello")
        return process

    def restart(self) -> None:
        self.process = self._started()

    def obey(self, message: Allocations) -> None:
        """Send a plan and wait until it is in force."""
        self.controller.send(message)
        eventually(lambda: self.controller.applied(message.epoch), within_s=10, what=f"epoch {message.epoch} in force")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def hang(self) -> None:
        """Stop it in the middle of what it does; return when none of its threads runs any more."""
        halted(self.process.pid)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def terminate(self) -> int:
        """End the agent in order; return its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=20)

    def close(self) -> None:
        self.terminate()
        self.controller.stop()


def halted(pid: int) -> None:
    """Stop a process by SIGSTOP; return when all its threads have stopped.

    The signal is one thread's first: on a busy machine the others still run for a while.
    """
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: set(_states(pid)) == {"T"}, within_s=10, what=f"all threads of {pid} have stopped")


def _states(pid: int) -> list[str]:
    """Return the state letter of each thread (proc(5), third field of stat; the name before it may have spaces)."""
    return [path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")]


def two_hosts() -> tuple[NamespaceHost, NamespaceHost]:
    """Return two new hosts joined by a veth."""
    number = next(_numbers)
    left, right = NamespaceHost(f"hw{os.getpid()}l{number}", 1), NamespaceHost(f"hw{os.getpid()}r{number}", 2)
    _ip("link", "add", left.interface, "netns", left.name, "type", "veth", "peer", right.interface, "netns", right.name)
    left.set_up()
    right.set_up()
    return left, right


def allocation(dest: str, rate_mbps: int, window_segments: int = 400, **more: Any) -> Allocation:
    """Return one allocation named after its destination."""
    dest_net = ip_network(dest)
    return Allocation(dest, FlowClass.URGENT, dest_net, rate_mbps * MBIT, window_segments, **more)


def measured_bps(bulks: list[Bulk], over_s: float) -> float:
    """Return the payload rate that receivers confirmed, all connections together, bit/s."""
    began_s, before = _confirmed(bulks)
    eventually(lambda: time.monotonic() - began_s >= over_s, within_s=over_s + 5, what="the measurement")
    ended_s, after = _confirmed(bulks)
    return (after - before) * 8 / (ended_s - began_s)


def _confirmed(bulks: list[Bulk]) -> tuple[float, int]:
    """Return a time and what was confirmed by then, bytes; not far apart, though others want the processor."""
    for _ in range(LOOKS):
        before_s = time.monotonic()
        confirmed = sum(bulk.info.bytes_acked for bulk in bulks)
        after_s = time.monotonic()
        if after_s - before_s < LOOK_WITHIN_S:
            return (before_s + after_s) / 2, confirmed
    raise TimeoutError(f"{LOOKS} looks at the counters took {LOOK_WITHIN_S} s or more each")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
