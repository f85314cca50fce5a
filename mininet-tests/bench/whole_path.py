"""The whole way of a change, from the request by REST to the last of 200 agents, all of them senders on one circuit.

Run inside ``isolated.sh``. The controller is a process of its own with its API, database, TLS and two userspace
switches of Open vSwitch, queues included. One agent is real, kernel part and all; the others are simulated in one
process, over TLS with a certificate each: they confirm what they are told at once, report each second, and want to send
what they have announced.

A time begins with the request and ends when the last host has what it is told last because of it, the real one in its
kernel: of an announcement that is the plan in which it has its whole rate, after the one in which it stands by. Beside
the times, which other load lengthens, the CPU time of the controller and of the process that stands for the hosts; that
of the controller has what the reports of all hosts take until the next request in it, which is told by itself.
"""

import argparse
import json
import os
import platform
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx
import yaml

from hostagent.agent.agent import REPORT_S
from mininet_tests.bench.agent_push import ADDRESS, Simulated
from mininet_tests.bench.attach import NOTHING_TO_TELL, configured, cpu_s
from mininet_tests.lab import commands
from mininet_tests.probes.agent_log import applied_s
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.real_agent import real_agent
from mininet_tests.site.running import Running, is_well
from mininet_tests.site.spoken_agents import agent_tls
from mininet_tests.site.userspace_switches import add_switches
from mininet_tests.testing.aims import Aim, at_most, stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port
from mininet_tests.testing.networks import star
from mininet_tests.testing.reports import write_report
from topology.protocol import Applied, Demand, parsed_allocations, to_bytes

AGENTS, ROUNDS, REAL = 200, 50, "h0"
MOST_MS = 40
SETTLED_S, READY_WITHIN_S, IDLE_S = 2.0, 300.0, 5.0
CIRCUIT_BPS = 10 * 10**9  # a queue of Open vSwitch carries no more than 34 Gbit/s
IMAGE_BYTES = 10**12
EPOCH, WATCHED = re.compile(rb'"epoch":(\d+)'), re.compile(rb'"standby_bps":\d')


class Announcer(Simulated):
    """An agent that does as little as can be for a message, and at once has what it has announced to send."""

    def told(self, message: bytes, at_ns: int) -> None:
        """Confirm it, and want what waits for demand."""
        found = EPOCH.search(message)
        if found is None or (epoch := int(found[1])) in self.received_ns:
            return
        self.received_ns[epoch] = at_ns
        self._protocol.send_text(to_bytes(Applied(epoch)))
        if WATCHED.search(message):
            for one in parsed_allocations(message).entries:
                if one.standby_bps == one.rate_bps:
                    self._protocol.send_text(to_bytes(Demand(epoch, one.name, wants=True, standing_by=False)))


def simulate(folder: Path, port: int) -> None:
    """Be all hosts but the real one until the controller hangs up; then say when each had each plan."""
    names = json.loads((folder / "hosts.json").read_text())
    agents = [Announcer(name, agent_tls(folder, name), port) for name in names if name != REAL]
    came: deque[tuple[Announcer, bytes, int]] = deque()
    reports = deque((time.monotonic(), agent) for agent in agents)
    with selectors.DefaultSelector() as selector:
        for agent in agents:
            selector.register(agent.sock, selectors.EVENT_READ, agent)
        try:
            while True:  # what has come is read, and its time noted, before anything is answered
                for key, _ in selector.select(0 if came else max(0.0, reports[0][0] - time.monotonic())):
                    came.append((key.data, key.data.read(), time.monotonic_ns()))
                if came:
                    agent, data, at_ns = came.popleft()
                    agent.take(data, at_ns)
                elif reports[0][0] <= time.monotonic():
                    agent = reports.popleft()[1]
                    agent.say(NOTHING_TO_TELL)
                    reports.append((time.monotonic() + REPORT_S, agent))
        except (EOFError, OSError):
            print(json.dumps({agent.host: sorted(agent.received_ns.values()) for agent in agents}))


def run(folder: Path, rounds: int) -> dict[str, Any]:
    """Return how long announcements and their releases took, ms, and the CPU time of each side."""
    network, rest, port = star(AGENTS - 1, 1, CIRCUIT_BPS), free_port(), free_port()
    config = configured(folder, network, rest, port, network.hosts[1:])
    (folder / "hosts.json").write_text(json.dumps([host.name for host in network.hosts]))
    controller = Running(config, f"http://{ADDRESS}:{rest}")
    asked: dict[str, list[float]] = {"announced": [], "released": []}
    with PrivateOvs(Directories.standard()) as ovs:
        add_switches(ovs, network, yaml.safe_load(config.read_text())["listen"]["openflow"].rpartition(":")[2])
        controller.start()
        command = commands.module("bench.whole_path", "--simulate", str(folder), "--port", str(port))
        hosts = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        real = real_agent(REAL, folder, f"{ADDRESS}:{port}")
        try:
            with httpx.Client(base_url=controller.url, timeout=30) as http:
                eventually(lambda: is_well(http), within_s=READY_WITHIN_S, what="all is well")
                time.sleep(2 * SETTLED_S)
                idle_s = -cpu_s(controller.pid)
                time.sleep(IDLE_S)
                idle_s += cpu_s(controller.pid)
                before_s = [cpu_s(controller.pid), cpu_s(hosts.pid)]
                for number in range(rounds):
                    said = {"id": f"i{number}", "bytes": IMAGE_BYTES, "from": [f"h{number + 1}"], "to": "archive"}
                    asked["announced"].append(time.monotonic())
                    http.post("/v1/announcements", json=said).raise_for_status()
                    time.sleep(SETTLED_S)
                    asked["released"].append(time.monotonic())
                    http.delete(f"/v1/announcements/{said['id']}").raise_for_status()
                    time.sleep(SETTLED_S)
                spent_s = [cpu_s(controller.pid) - before_s[0], cpu_s(hosts.pid) - before_s[1]]
        finally:
            controller.end(signal.SIGKILL)
            real.terminate()
            real.wait()
            told, _ = hosts.communicate(timeout=60)
    began_s = time.time() - time.monotonic()
    of_kernel = [at_s - began_s for at_s in applied_s(folder / "agent.log")]
    came = {host: [at_ns / 1e9 for at_ns in times] for host, times in json.loads(told).items()} | {REAL: of_kernel}
    each = {"controller": spent_s[0], "hosts": spent_s[1]}
    return {what: shown(times, came) for what, times in asked.items()} | {
        "cpu_ms_a_change": {who: round(1e3 * seconds / (2 * rounds), 1) for who, seconds in each.items()},
        "cpu_ms_of_reports_meanwhile": round(1e3 * idle_s / IDLE_S * SETTLED_S, 1),
    }


def shown(asked_s: list[float], came_s: dict[str, list[float]]) -> dict[str, Any]:
    """Return how long it took, ms, until the last host had what it was told last in the time after each request.

    Raises:
        AssertionError: most hosts, or the real one, were told nothing.
    """
    last_ms, real_ms, told = [], [], []
    for began_s in asked_s:
        within = {
            host: [1e3 * (at_s - began_s) for at_s in times_s if began_s <= at_s < began_s + SETTLED_S]
            for host, times_s in came_s.items()
        }
        late_ms = {host: max(times_ms) for host, times_ms in within.items() if times_ms}
        if len(late_ms) < AGENTS / 2 or REAL not in late_ms:
            raise AssertionError(f"{len(late_ms)} hosts were told of a request within {SETTLED_S:g} s")
        told.append(len(late_ms))
        last_ms.append(max(late_ms.values()))
        real_ms.append(late_ms[REAL])
    return {
        "hosts_told": min(told),
        "last_host_ms": percentiles(last_ms),
        "kernel_of_the_real_one_ms": percentiles(real_ms),
    }


def percentiles(times_ms: list[float]) -> dict[str, float]:
    """Return median and 99th percentile, and the least and the most."""
    found = {
        "least": min(times_ms),
        "p50": median(times_ms),
        "p99": quantiles(times_ms, n=100)[98],
        "most": max(times_ms),
    }
    return {name: round(ms, 1) for name, ms in found.items()}


def aims(result: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    return {
        f"the last of {AGENTS} agents has what was {what}, p99, ms": at_most(
            result[what]["last_host_ms"]["p99"], MOST_MS
        )
        for what in ("announced", "released")
    }


def main() -> int:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/whole-path"), help="folder (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="announcements (default: %(default)s)")
    parser.add_argument("--simulate", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.simulate:
        simulate(asked.simulate, asked.port)
        return 0
    if os.geteuid():
        print("bench-whole-path: needs root: namespaces, BPF and Open vSwitch", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        result = run(Path(scratch), asked.rounds)
    machine = {"python": platform.python_version(), "kernel": platform.release(), "cpu": platform.machine()}
    result |= {"agents": AGENTS, "rounds": asked.rounds, "machine": machine}
    write_report(asked.out, result | stated(aims(result)))
    print(json.dumps(result, indent=2))
    print(f"written: {asked.out / 'report.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
