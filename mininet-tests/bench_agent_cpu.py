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
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from eventually import eventually
from saturation import PROC_STAT, cpu_times

from hostagent.tests.rig import Host, RunningAgent, two_hosts
from topology.protocol import Allocation, Allocations, FlowClass
from topology.wire import Framing, Layer, converted_bps, cwnd_segments

WIRE_BPS = 400_000_000
RTT_MS = 20
ROUNDS = 3
WARM_UP_S = 2.0
MEASURED_S = {1: 60.0, 100: 5.0}  # idle time costs nothing in the lab; both are about as many instructions
PORT = 5201
CONTESTANTS = ("cubic", "bbr", "headway")
LEASE_MS = 3000
TICKS_PER_S = 100
DATA_SENT = re.compile(r"^TcpExt:(.*)\nTcpExt:(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds per gigabyte of payload, and the payload rate, of one round."""

    cpu_s_per_gb: float
    payload_bps: float
    idle_share: float


def tuned(sender: Host, receiver: Host) -> None:
    """Give the line its rate and its delay, and the hosts room for the windows."""
    frames = converted_bps(WIRE_BPS, Layer.WIRE, Layer.FRAME, Framing())
    for host, commands in (
        (
            sender,
            (
                "tc qdisc add dev {} root handle 1: htb default 1",
                f"tc class add dev {{}} parent 1: classid 1:1 htb rate {frames}bit burst 128k cburst 128k",
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


def cost(sender: Host, receiver: Host, algorithm: str, connections: int) -> Cost:
    """Return what one round costs while the transfers run steadily.

    Raises:
        AssertionError: the transfers did not start.
    """
    server = subprocess.Popen(
        ["ip", "netns", "exec", receiver.name, "iperf3", "--server", "--one-off", "--port", str(PORT)],
        stdout=subprocess.DEVNULL,
    )
    options = ["--congestion", algorithm] if algorithm != "headway" else []
    duration = ["--time", str(int(WARM_UP_S + MEASURED_S[connections] + 4)), "--interval", "0", "--length", "128K"]
    command = ["iperf3", "--client", receiver.address, "--port", str(PORT), "-P", str(connections), *duration, *options]
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
        return _measured(sender, MEASURED_S[connections])
    finally:
        for process in (*client, server):
            process.terminate()
            process.wait()


def _measured(sender: Host, over_s: float) -> Cost:
    began_s, bytes_before, cpu_before = time.monotonic(), _sent_bytes(sender), cpu_times(PROC_STAT.read_text())
    time.sleep(over_s)
    took_s, moved = time.monotonic() - began_s, _sent_bytes(sender) - bytes_before
    # Idle time is kept exactly, busy time is guessed from ticks: so busy is what is not idle.
    idle_s = (cpu_times(PROC_STAT.read_text()).idle_ticks - cpu_before.idle_ticks) / TICKS_PER_S
    return Cost((took_s - idle_s) / (moved / 1e9), moved * 8 / took_s, idle_s / took_s)


def _sent_bytes(host: Host) -> int:
    """Return the payload that a namespace has sent in full segments, those sent again aside."""
    names, values = DATA_SENT.search(host.inside(Path("/proc/thread-self/net/netstat").read_text)).groups()
    counted = dict(zip(names.split(), map(int, values.split()), strict=True))
    return counted["TCPOrigDataSent"] * Framing().mss_bytes


def run(folder: Path) -> dict[str, object]:
    """Return the cost of each contestant, the contestants by turns."""
    sender, receiver = two_hosts()
    tuned(sender, receiver)
    payload_bps = converted_bps(WIRE_BPS, Layer.WIRE, Layer.PAYLOAD, Framing()) * 997 // 1000
    window = cwnd_segments(payload_bps, RTT_MS * 1000, Framing().mss_bytes) * 102 // 100
    plan = Allocation("bench", FlowClass.URGENT, f"{receiver.address}/32", payload_bps, window)
    costs: dict[str, dict[int, list[Cost]]] = {name: {n: [] for n in MEASURED_S} for name in CONTESTANTS}
    agent = RunningAgent(sender, folder / "agent")
    epoch = 0
    try:
        for _ in range(ROUNDS):
            for connections in MEASURED_S:
                for name in CONTESTANTS:
                    epoch += 1
                    agent.obey(Allocations(epoch, LEASE_MS, (plan,) if name == "headway" else ()))
                    seen = cost(sender, receiver, name, connections)
                    print(f"{name:8} {connections:3} connections: {seen}", file=sys.stderr, flush=True)
                    costs[name][connections].append(seen)
    finally:
        agent.close()
        sender.remove()
        receiver.remove()
    return {
        "wire_bps": WIRE_BPS,
        "rtt_ms": RTT_MS,
        "rounds": ROUNDS,
        "cpu_s_per_gb": {
            name: {str(n): median(c.cpu_s_per_gb for c in rounds) for n, rounds in by_number.items()}
            for name, by_number in costs.items()
        },
        "payload_bps": {
            name: {str(n): round(median(c.payload_bps for c in rounds)) for n, rounds in by_number.items()}
            for name, by_number in costs.items()
        },
        "least_idle_share": min(c.idle_share for by in costs.values() for rounds in by.values() for c in rounds),
    }


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
