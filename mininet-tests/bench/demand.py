"""How soon the controller hears that a flow wants its rate, that it sends at it, and that its flight has ended.

Run inside ``isolated.sh``; milliseconds. Two hosts on this kernel, without delay between them: what is
measured is the kernel part, the ring buffer, the agent and its stream.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from statistics import median, quantiles

from hostagent.log import log
from hostagent.tests.rig import MBIT, Bulk, NamespaceHost, RunningAgent, two_hosts
from mininet_tests.site.tcp_flows import SWITCH_S
from mininet_tests.testing.aims import stated
from mininet_tests.testing.reports import write_report
from topology.protocol import Allocation, Allocations, Demand, FlowClass

ROUNDS, LEASE_MS, NAME = 100, 3000, "urgent/left"
RATE_BPS, STANDBY_BPS, WRITE_BYTES = 400 * MBIT, 20 * MBIT, 400_000


class DemandBench:
    """A sender with its agent, a receiver that notes when the last byte has come."""

    def __init__(self, left: NamespaceHost, right: NamespaceHost, folder: Path) -> None:
        left.set({"net.ipv4.tcp_tso_rtt_log": "0"})
        self.agent = RunningAgent(left, folder)
        self.epoch = 0
        self.plan(STANDBY_BPS)
        self.bulk = Bulk(left, right)
        self.bulk.sender.sendall(bytes(3000))
        self.until(lambda: self.bulk.info.bytes_acked > 3000)

    def plan(self, rate_bps: int, size_bytes: int = 0) -> float:
        """Bring a plan into force; return when the agent said so."""
        self.epoch += 1
        entry = Allocation(
            NAME,
            FlowClass.URGENT,
            ip_network("10.77.0.2/32"),
            rate_bps,
            2000,
            standby_bps=STANDBY_BPS,
            size_bytes=size_bytes,
        )
        applied = self.agent.controller.applied_at_s
        self.agent.controller.send(Allocations(self.epoch, LEASE_MS, (entry,)))
        self.until(lambda: self.epoch in applied)
        return applied[self.epoch]

    def heard(self, wants: bool) -> float:
        """Return when the controller heard it under the present epoch."""
        demand, at_s = Demand(self.epoch, NAME, wants, not wants), self.agent.controller.demand_at_s
        again = Demand(self.epoch, NAME, wants, True)
        self.until(lambda: demand in at_s or again in at_s)
        return at_s.get(demand) or at_s[again]

    @staticmethod
    def until(probe: Callable[[], object]) -> None:
        """Wait, looking often."""
        deadline_s = time.monotonic() + 5
        while not probe():
            if time.monotonic() > deadline_s:
                raise TimeoutError
            time.sleep(0.0002)

    def round(self, size_bytes: int) -> tuple[float, float, float]:
        """Return the times from write to demand, from the new epoch to its rate, and from the last byte to the end."""
        bulk = self.bulk
        self.plan(STANDBY_BPS, size_bytes)
        self.heard(wants=False)
        before = bulk.info.bytes_acked
        wrote_s = time.monotonic()
        bulk.sender.sendall(bytes(WRITE_BYTES))
        wanted_s = self.heard(wants=True)
        sent = bulk.info.bytes_acked
        applied_s = self.plan(RATE_BPS, size_bytes)
        self.until(lambda: bulk.info.bytes_acked > sent + 100_000)
        grown_s = time.monotonic()
        self.until(lambda: bulk.info.bytes_acked >= before + WRITE_BYTES)
        last_s = time.monotonic()
        return wanted_s - wrote_s, grown_s - applied_s, self.heard(wants=False) - last_s


def shown(times_s: list[float]) -> dict[str, float]:
    """Return median and 99th percentile, milliseconds."""
    return {"p50": round(1000 * median(times_s), 2), "p99": round(1000 * quantiles(times_s, n=100)[98], 2)}


def main() -> int:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/demand"), help="folder (default: %(default)s)")
    out: Path = parser.parse_args().out
    log.least = "error"
    sys.setswitchinterval(SWITCH_S)
    left, right = two_hosts()
    with tempfile.TemporaryDirectory() as folder:
        rig = DemandBench(left, right, Path(folder) / "agent")
        try:
            sized = [rig.round(WRITE_BYTES) for _ in range(ROUNDS)]
            pausing = [rig.round(0) for _ in range(ROUNDS)]
        finally:
            rig.bulk.close()
            rig.agent.close()
            left.remove()
            right.remove()
    result = {
        "write_to_demand_ms": shown([one[0] for one in sized + pausing]),
        "epoch_to_100_kB_at_its_rate_ms": shown([one[1] for one in sized + pausing]),
        "last_byte_to_end_announced_size_ms": shown([one[2] for one in sized]),
        "last_byte_to_end_after_a_pause_ms": shown([one[2] for one in pausing]),
    }
    write_report(out, result | stated({}))  # no aims are stated of it
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
