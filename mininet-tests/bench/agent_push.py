"""How long a plan takes from the controller to the kernels: one host, and two hundred on one controller.

Run inside ``isolated.sh``. The controller's port, TLS and all, is the real one. One agent is real, kernel part and all:
its time ends when its confirmation is back at the controller, so it is an upper bound. The others are simulated in one
process, over real TLS: their time ends when they have the message, which they confirm too.
"""

import argparse
import gc
import json
import logging
import selectors
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from statistics import quantiles

import structlog
from websockets.client import ClientProtocol
from websockets.frames import Frame
from websockets.http11 import Response
from websockets.uri import parse_uri

from controller.security.tls import ServerTls
from controller.southbound.agents.hosts import HostSessions
from mininet_tests.lab import commands
from mininet_tests.site.certificates import certified
from mininet_tests.site.real_agent import real_agent
from mininet_tests.site.spoken_agents import agent_tls
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port
from topology.protocol import (
    ATTACH_PATH,
    Allocation,
    Allocations,
    Applied,
    Declined,
    Demand,
    FlowClass,
    Hello,
    Repaired,
    UpMessage,
    parsed_allocations,
    to_bytes,
)
from topology.telemetry import Telemetry

ADDRESS = "127.0.0.1"
LEASE_MS = 3000
HOSTS = 200
REAL = "dtn0"
PUSHES = {1: 300, HOSTS: 100}
BETWEEN_S = 0.1
ENTRIES = 4
MBIT = 1_000_000


class Controller:
    """The agents' port, and when each push was begun and confirmed; CLOCK_MONOTONIC, nanoseconds."""

    def __init__(self, folder: Path, port: int) -> None:
        """Listen."""
        self.up: set[str] = set()
        self.applied_ns: dict[tuple[str, int], int] = {}
        self.began_ns: dict[int, int] = {}
        self._missing = 0
        self._everywhere = threading.Event()
        stem = folder / "controllers" / ADDRESS
        tls = ServerTls(f"{stem}.key", f"{stem}.pem", str(folder / "ca.pem"), str(folder / "crl.pem"))
        self.sessions = HostSessions(self, LEASE_MS, tls)
        self.sessions.start(f"{ADDRESS}:{port}")

    def host_up(self, hello: Hello) -> Allocations:
        """Let everybody in."""
        self.up.add(hello.host)
        return Allocations(1, LEASE_MS)

    def host_down(self, host: str) -> None:
        """Note it."""
        self.up.discard(host)

    def host_again(self, hello: Hello) -> None:
        """No address changes."""

    def hosts_applied(self, said: Sequence[tuple[str, Applied]]) -> None:
        """Note when."""
        self.applied_ns |= {(host, applied.epoch): time.monotonic_ns() for host, applied in said}
        self._missing -= len(said)  # by one thread only
        if not self._missing:
            self._everywhere.set()

    def host_telemetry(self, host: str, telemetry: Telemetry) -> None:
        """It costs what it costs."""

    def host_declined(self, host: str, declined: Declined) -> None:
        """None is."""
        raise AssertionError(f"{host}: {declined.why}")

    def host_demand(self, host: str, demand: Demand) -> None:
        """No entry is watched."""

    def host_repaired(self, host: str, repaired: Repaired) -> None:
        """Nothing is broken."""
        raise AssertionError(f"{host}: {repaired.what}")

    def push(self, epoch: int, hosts: list[str]) -> None:
        """Give each host another plan, and wait until all have confirmed it."""
        plans = {host: Allocations(epoch, LEASE_MS, _entries(epoch)) for host in hosts}
        self._everywhere.clear()
        self._missing = len(hosts)
        self.began_ns[epoch] = time.monotonic_ns()
        for host, plan in plans.items():
            self.sessions.send(host, plan)
        if not self._everywhere.wait(timeout=10):
            raise AssertionError(f"epoch {epoch} is not in force everywhere after 10 s")


def _entries(epoch: int) -> tuple[Allocation, ...]:
    """Return a few allocations whose rates change with the epoch."""
    dests = [IPv4Network((0x0A010000 + 256 * n, 24)) for n in range(ENTRIES)]
    rate_bps = 100 * MBIT + epoch * 8
    return tuple(Allocation(f"flow{n}", FlowClass.URGENT, dest, rate_bps, 1000) for n, dest in enumerate(dests))


class Simulated:
    """An agent without a kernel part: one TLS connection that confirms what it is told."""

    def __init__(self, host: str, context: ssl.SSLContext, port: int) -> None:
        """Dial, shake hands, say hello."""
        self.host, self.received_ns = host, dict[int, int]()
        self.sock = context.wrap_socket(socket.create_connection((ADDRESS, port)), server_hostname=ADDRESS)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._protocol = ClientProtocol(parse_uri(f"wss://{ADDRESS}:{port}{ATTACH_PATH}"))
        self._protocol.send_request(self._protocol.connect())
        self._flush()
        while data := self.sock.recv(1 << 16):
            if self._taken(data, 0):
                break
        else:
            raise EOFError
        self._protocol.send_text(to_bytes(Hello(host, "simulated", "none", epoch=0)))
        self._flush()
        self.sock.setblocking(False)

    def read(self) -> bytes:
        """Return what has come; empty if it is nothing yet.

        Raises:
            EOFError: the controller has hung up.
        """
        try:
            data = self.sock.recv(1 << 16)
        except ssl.SSLWantReadError:
            return b""
        if not data:
            raise EOFError
        return data

    def take(self, data: bytes, at_ns: int) -> None:
        """Note when each new plan came, and confirm it."""
        self._taken(data, at_ns)
        self._flush()

    def told(self, message: bytes, at_ns: int) -> None:
        """Take in allocations."""
        epoch = parsed_allocations(message).epoch
        if epoch not in self.received_ns:
            self.received_ns[epoch] = at_ns
            self._protocol.send_text(to_bytes(Applied(epoch)))

    def say(self, told: UpMessage) -> None:
        """Tell the controller something."""
        self._protocol.send_text(to_bytes(told))
        self._flush()

    def _taken(self, data: bytes, at_ns: int) -> bool:
        """Take in what has come; return whether the connection is open."""
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.data[:1] == b"{":
                self.told(bytes(event.data), at_ns)
            elif isinstance(event, Response):
                return True
        return False

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            self.sock.sendall(data)


def simulate(folder: Path, port: int) -> None:
    """Be all hosts but the real one until the controller hangs up; then say when each had each plan."""
    hosts = [f"dtn{n}" for n in range(1, HOSTS)]
    agents = {host: Simulated(host, agent_tls(folder, host), port) for host in hosts}
    with selectors.DefaultSelector() as selector:
        for agent in agents.values():
            selector.register(agent.sock, selectors.EVENT_READ, agent)
        try:
            came: deque[tuple[Simulated, bytes, int]] = deque()
            while True:
                # What has come is read, and its time noted, before anything is answered: the hosts that these stand for
                # would not wait for each other.
                ready = [key.data for key, _ in selector.select(0 if came else None)]
                came.extend((agent, agent.read(), time.monotonic_ns()) for agent in ready)
                if not ready:
                    agent, data, at_ns = came.popleft()
                    agent.take(data, at_ns)
        except (EOFError, OSError):
            print(json.dumps({host: agent.received_ns for host, agent in agents.items()}))


def run(folder: Path) -> dict[str, float]:
    """Return the percentiles of both, milliseconds."""
    port = free_port()
    certified(folder, ADDRESS, [f"dtn{number}" for number in range(HOSTS)])
    controller = Controller(folder, port)
    agent = real_agent(REAL, folder, f"{ADDRESS}:{port}")
    simulator: subprocess.Popen[bytes] | None = None
    epochs = iter(range(10, 10_000))
    times: dict[int, list[int]] = {}
    try:
        for hosts, pushes in PUSHES.items():
            if hosts > 1:
                command = commands.module("bench.agent_push", "--simulate", str(folder), "--port", str(port))
                simulator = subprocess.Popen(command, stdout=subprocess.PIPE)
            eventually(partial(_are_up, controller, hosts), within_s=60, what=f"{hosts} agents")
            times[hosts] = [_pushed(controller, next(epochs)) for _ in range(pushes)]
    finally:
        controller.sessions.stop()
        agent.terminate()
        agent.wait()
    assert simulator is not None  # noqa: S101
    received = json.loads(simulator.communicate(timeout=20)[0])
    spent = {n: [controller.applied_ns[REAL, e] - controller.began_ns[e] for e in times[n]] for n in PUSHES}
    for by_epoch in received.values():
        spent[HOSTS] += [by_epoch[str(e)] - controller.began_ns[e] for e in times[HOSTS]]
    return {f"{p}_{n}": _percentile_ms(spent[n], p) for n in PUSHES for p in ("p50", "p99")} | {
        "real_p99_among_200": _percentile_ms(spent[HOSTS][: PUSHES[HOSTS]], "p99")
    }


def _pushed(controller: Controller, epoch: int) -> int:
    """Push one plan to all; return its epoch."""
    time.sleep(BETWEEN_S)
    controller.push(epoch, sorted(controller.up))
    return epoch


def _are_up(controller: Controller, count: int) -> bool:
    return len(controller.up) == count


def _percentile_ms(times_ns: list[int], which: str) -> float:
    return round(quantiles(times_ns, n=100)[int(which[1:]) - 1] / 1e6, 3)


def main() -> int:
    """Run, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulate", type=Path, help="be the simulated hosts; the folder of the certificates")
    parser.add_argument("--port", type=int)
    args = parser.parse_args()
    if args.simulate:
        simulate(args.simulate, args.port)
        return 0
    quiet = structlog.make_filtering_bound_logger(logging.WARNING)
    structlog.configure(wrapper_class=quiet, logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    gc.freeze()  # as the controller does
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        print(json.dumps(run(Path(scratch)), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
