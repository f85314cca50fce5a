"""How soon all agents are attached: to a controller that has just started, and after all have lost it at once.

The controller is a process of its own, with its REST API, its database and TLS; half of the hosts have something to
send. Its agents are simulated in another process, over real TLS with a certificate each, and try again and report each
second as agents do: one is attached when it has the controller's answer to its ``Hello``. No switch is there, so each
plan is made beside faults. Beside the time, which other load lengthens, the controller's CPU time from its
start on.
"""

import argparse
import contextlib
import json
import os
import platform
import selectors
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from hostagent.agent.agent import REPORT_S
from mininet_tests.bench.agent_push import ADDRESS, Simulated
from mininet_tests.lab import commands
from mininet_tests.site.certificates import certified
from mininet_tests.site.running import Running
from mininet_tests.site.spoken_agents import agent_tls
from mininet_tests.testing.aims import Aim, at_most, stated
from mininet_tests.testing.loopback import free_port
from mininet_tests.testing.networks import star
from mininet_tests.testing.reports import write_report
from topology.network import Host, Network
from topology.network_text import section_of
from topology.telemetry import Telemetry

SIZES = (200, 1_000)
CIRCUITS = 10
WITHIN_S = 10.0
TRY_AGAIN_S = 0.1
SIDE_BY_SIDE = 8  # handshakes that agents of one process have under way
LOOK_S = 0.02
NOTHING_TO_TELL = Telemetry(0, 0)
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def configured(folder: Path, network: Network, rest: int, agents: int, senders: Sequence[Host]) -> Path:
    """Write the configuration of a controller some of whose hosts send to the one in the middle."""
    tls = certified(folder, ADDRESS, network.host_names)
    flows = {f"raw-{h.name}": {"class": "background", "from": h.name, "to": "archive"} for h in senders}
    listen = {"openflow": f"{ADDRESS}:{free_port()}", "rest": f"{ADDRESS}:{rest}", "agents": f"{ADDRESS}:{agents}"}
    said = {"network": section_of(network), "listen": listen, "store": f"sqlite:///{folder}/headway.db"}
    config = folder / "controller.yaml"
    config.write_text(yaml.safe_dump({**said, "tls": tls, "flows": [{"name": n, **f} for n, f in flows.items()]}))
    return config


def attached(host: str, context: ssl.SSLContext, port: int) -> Simulated:
    """Return an agent that has called until somebody answered."""
    while True:
        try:
            return Simulated(host, context, port)
        except (OSError, EOFError):
            time.sleep(TRY_AGAIN_S)


def simulate(folder: Path, port: int, hosts: list[str]) -> None:
    """Be the agents of some hosts; say that they are ready, then when the last is attached, each time all were lost.

    By CLOCK_MONOTONIC, as the controller's start is noted.
    """
    contexts = {host: agent_tls(folder, host) for host in hosts}
    print(json.dumps(time.monotonic()), flush=True)
    while True:
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool, selectors.DefaultSelector() as selector:
            calling = deque(pool.submit(attached, host, contexts[host], port) for host in hosts)
            with contextlib.suppress(EOFError, OSError):
                be_agents(calling, selector)
            for key in [*selector.get_map().values()]:
                key.data.sock.close()


def be_agents(calling: "deque[Future[Simulated]]", selector: selectors.BaseSelector) -> None:
    """Answer for those that are attached, and tell their counters; say when the last is.

    Raises:
        EOFError, OSError: the controller has hung up.
    """
    telling: deque[tuple[float, Simulated]] = deque()
    silent = len(calling)
    while True:
        while calling and calling[0].done():
            agent = calling.popleft().result()
            selector.register(agent.sock, selectors.EVENT_READ, agent)
            telling.append((time.monotonic(), agent))
        for key, _ in selector.select(LOOK_S):
            known = len(key.data.received_ns)
            while data := key.data.read():
                key.data.take(data, time.monotonic_ns())
            silent -= not known and bool(key.data.received_ns)
            if not known and not silent:
                print(json.dumps(time.monotonic()), flush=True)
        while telling and telling[0][0] <= time.monotonic():
            _, agent = telling.popleft()
            agent.say(NOTHING_TO_TELL)
            telling.append((time.monotonic() + REPORT_S, agent))


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def measured(count: int) -> dict[str, Any]:
    """Return how soon so many agents are attached to a new controller, and to the next one after its death."""
    network = star(count - 1, CIRCUITS)
    found: dict[str, Any] = {"agents": count}
    with tempfile.TemporaryDirectory() as name:
        folder, rest, port = Path(name), free_port(), free_port()
        controller = Running(configured(folder, network, rest, port, network.hosts[1::2]), f"http://{ADDRESS}:{rest}")
        (folder / "hosts.json").write_text(json.dumps([host.name for host in network.hosts]))
        command = commands.module("bench.attach", "--simulate", str(folder), "--port", str(port))
        agents = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert agents.stdout is not None  # noqa: S101 (for mypy)
        try:
            agents.stdout.readline()  # they are ready, and call already
            for what in ("start", "lost"):
                began = time.monotonic()
                controller.start()
                up, spent = time.monotonic(), cpu_s(controller.pid)
                all_attached = json.loads(agents.stdout.readline())
                found[what] = {
                    "answers_s": round(up - began, 2),
                    "attached_s": round(all_attached - began, 2),
                    "cpu_s": round(cpu_s(controller.pid), 2),
                    "cpu_s_before_it_answers": round(spent, 2),
                }
                controller.end(signal.SIGKILL)
        finally:
            agents.kill()
            agents.wait()
            controller.end(signal.SIGKILL)
    return found


def aims(sizes: list[dict[str, Any]]) -> dict[str, Aim]:
    """Return the aims of a report: of the time, and of the CPU time, which other load does not hide."""
    found = {}
    for one in sizes:
        for key, what in (("start", "the controller's start"), ("lost", "all have lost it")):
            told = f"{one['agents']} agents, all attached after {what}"
            found[f"{told}, s"] = at_most(one[key]["attached_s"], WITHIN_S)
            found[f"{told}, the controller's CPU s"] = at_most(one[key]["cpu_s"], WITHIN_S)
    return found


def main() -> None:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/attach"), help="folder (default: %(default)s)")
    parser.add_argument("--agents", type=int, nargs="+", default=SIZES, help="how many (default: %(default)s)")
    parser.add_argument("--simulate", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.simulate:
        simulate(asked.simulate, asked.port, json.loads((asked.simulate / "hosts.json").read_text()))
        return
    sizes = []
    for count in asked.agents:
        print(f"bench: {count} agents", file=sys.stderr, flush=True)
        sizes.append(measured(count))
        print(json.dumps(sizes[-1]), flush=True)
    machine = {"python": platform.python_version(), "kernel": platform.release(), "cpu": platform.machine()}
    write_report(asked.out, {"sizes": sizes, "machine": machine, **stated(aims(sizes))})
    print(f"written: {asked.out / 'report.json'}")


if __name__ == "__main__":
    main()
