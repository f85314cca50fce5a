"""What a gigabyte costs in CPU time under several congestion controls; run inside ``isolated.sh`` in the lab.

Sender and receiver are namespaces on a cable; the sender's interface has the bottleneck, the receiver's the delay of
the answers. Everything that the two hosts do is counted, so the same is counted for all contestants. In the lab a
nanosecond of CPU time is an instruction, so the same work costs the same on any machine.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from ipaddress import ip_network
from pathlib import Path
from statistics import median

from hostagent.tests.rig import NamespaceHost, RunningAgent, two_hosts
from mininet_tests.lab.saturation import PROC_STAT, cpu_times
from mininet_tests.testing.eventually import eventually
from topology.protocol import Allocation, Allocations, FlowClass
from topology.wire import Framing, Layer, converted_bps, cwnd_segments

RTT_MS = 20


@dataclass(frozen=True, slots=True)
class Load:
    """How many connections share which line, bit/s on the wire, and for how long that is measured."""

    connections: int
    wire_bps: int
    measured_s: float

    @property
    def plan_bps(self) -> int:
        """The payload rate of the plan: a little below the line's, so that the plan is what limits."""
        return converted_bps(self.wire_bps, Layer.WIRE, Layer.PAYLOAD, Framing()) * 997 // 1000


ROUNDS = 2  # in the lab two rounds differ by a percent
WARM_UP_S = 2.0
LOADS = (Load(1, 1_000_000_000, 20.0), Load(100, 400_000_000, 5.0))  # more fills the lab's CPU under cubic and bbr
PORT = 5201
CONTESTANTS = ("cubic", "cubic paced", "bbr", "headway")
LEASE_MS = 3000
TICKS_PER_S = 100
DATA_SENT = re.compile(r"^TcpExt:(.*)\nTcpExt:(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds per gigabyte of payload, and the payload rate, of one round."""

    cpu_s_per_gb: float
    payload_bps: float
    idle_share: float


def tuned(sender: NamespaceHost, receiver: NamespaceHost, load: Load) -> None:
    """Give the line its rate and its delay, and the hosts room for the windows."""
    frames = converted_bps(load.wire_bps, Layer.WIRE, Layer.FRAME, Framing())
    for host, commands in (
        (
            sender,
            (
                "tc qdisc add dev {} root handle 1: htb default 1",
                f"tc class add dev {{}} parent 1: classid 1:1 htb rate {frames}bit burst 128k quantum 60000",
                "tc qdisc add dev {} parent 1:1 bfifo limit 5mb",
            ),
        ),
        (receiver, (f"tc qdisc add dev {{}} root netem delay {RTT_MS}ms limit 100000",)),
    ):
        for command in (
            *commands,
            "sysctl -qw net.ipv4.tcp_rmem=4096\t16000000\t64000000",
            "sysctl -qw net.ipv4.tcp_wmem=4096\t65536\t64000000",
            "sysctl -qw net.ipv4.tcp_no_metrics_save=1",
        ):
            words = [word.format(host.interface) for word in command.split(" ")]
            subprocess.run(["ip", "netns", "exec", host.name, *words], check=True)


def cost(sender: NamespaceHost, receiver: NamespaceHost, algorithm: str, load: Load) -> Cost:
    """Return what one round costs while the transfers run steadily.

    Raises:
        AssertionError: the transfers did not start.
    """
    server = subprocess.Popen(
        ["ip", "netns", "exec", receiver.name, "iperf3", "--server", "--one-off", "--port", str(PORT)],
        stdout=subprocess.DEVNULL,
    )
    options = [] if algorithm == "headway" else ["--congestion", algorithm.split(" ", maxsplit=1)[0]]
    if algorithm.endswith(" paced"):
        options += ["--fq-rate", str(load.plan_bps // load.connections)]
    duration = ["--time", str(int(WARM_UP_S + load.measured_s + 4)), "--interval", "0", "--length", "128K"]
    command = ["iperf3", "--client", receiver.address, "--port", str(PORT), "-P", str(load.connections)]
    command += [*duration, *options]
    client: list[subprocess.Popen[bytes]] = []

    def sending() -> bool:
        if not client or client[0].poll() is not None:
            client[:] = [
                subprocess.Popen(
                    ["ip", "netns", "exec", sender.name, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            ]
        return _sent_bytes(sender) > before + 1_000_000

    before = _sent_bytes(sender)
    eventually(sending, within_s=20, what="iperf3 sends")
    try:
        time.sleep(WARM_UP_S)
        return _measured(sender, load.measured_s)
    finally:
        for process in (*client, server):
            process.terminate()
            process.wait()


def _measured(sender: NamespaceHost, over_s: float) -> Cost:
    began_s, bytes_before, cpu_before = time.monotonic(), _sent_bytes(sender), cpu_times(PROC_STAT.read_text())
    time.sleep(over_s)
    took_s, moved = time.monotonic() - began_s, _sent_bytes(sender) - bytes_before
    # Idle time is kept exactly, busy time is guessed from ticks: so busy is what is not idle.
    idle_s = (cpu_times(PROC_STAT.read_text()).idle_ticks - cpu_before.idle_ticks) / TICKS_PER_S
    return Cost((took_s - idle_s) / (moved / 1e9), moved * 8 / took_s, idle_s / took_s)


def _sent_bytes(host: NamespaceHost) -> int:
    """Return the payload that a namespace has sent in full segments, those sent again aside."""
    ((names, values),) = DATA_SENT.findall(host.inside(Path("/proc/thread-self/net/netstat").read_text))
    counted: dict[str, int] = dict(zip(names.split(), map(int, values.split()), strict=True))
    return counted["TCPOrigDataSent"] * Framing().mss_bytes


def run(folder: Path) -> dict[str, object]:
    """Return the cost of each contestant under each load, the contestants by turns."""
    seen = {str(load.connections): _costs(folder, load) for load in LOADS}
    rounds = [cost for by_name in seen.values() for costs in by_name.values() for cost in costs]
    return {
        "loads": {str(load.connections): asdict(load) for load in LOADS},
        "rtt_ms": RTT_MS,
        "rounds": ROUNDS,
        "cpu_s_per_gb": _medians(seen, lambda cost: cost.cpu_s_per_gb),
        "payload_bps": _medians(seen, lambda cost: round(cost.payload_bps)),
        "least_idle_share": min(cost.idle_share for cost in rounds),
    }


def _costs(folder: Path, load: Load) -> dict[str, list[Cost]]:
    """Return what each round cost each contestant."""
    sender, receiver = two_hosts()
    tuned(sender, receiver, load)
    window = cwnd_segments(load.plan_bps, RTT_MS * 1000, Framing().mss_bytes) * 102 // 100
    plan = Allocation("bench", FlowClass.URGENT, ip_network(f"{receiver.address}/32"), load.plan_bps, window)
    agent = RunningAgent(sender, folder / f"agent{load.connections}")
    costs: dict[str, list[Cost]] = {name: [] for name in CONTESTANTS}
    try:
        for epoch in range(1, ROUNDS * len(CONTESTANTS) + 1):
            name = CONTESTANTS[epoch % len(CONTESTANTS)]
            agent.obey(Allocations(epoch, LEASE_MS, (plan,) if name == "headway" else ()))
            costs[name].append(cost(sender, receiver, name, load))
            print(f"{name}, {load.connections} connections: {costs[name][-1]}", file=sys.stderr, flush=True)
    finally:
        agent.close()
        sender.remove()
        receiver.remove()
    return costs


def _medians(seen: dict[str, dict[str, list[Cost]]], of: Callable[[Cost], float]) -> dict[str, dict[str, float]]:
    """Return a figure of each contestant by the number of connections."""
    return {name: {number: median(map(of, by_name[name])) for number, by_name in seen.items()} for name in CONTESTANTS}


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for agent_cpu.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
        seen = run(Path(scratch))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "agent_cpu.json").write_text(json.dumps(seen, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
