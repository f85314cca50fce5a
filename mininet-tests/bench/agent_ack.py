"""What the kernel part costs on each ACK, in this machine's own nanoseconds; run inside ``isolated.sh``.

The kernel counts its BPF programs' runs and their time (sysctl kernel.bpf_stats_enabled; two clock reads a run, which
are in the figure). All that the congestion control does for a transfer is divided by the ACKs it has served.
"""

import ctypes as c
import json
import sys
import tempfile
import time
from pathlib import Path

from hostagent.kernel.leftovers import ALGORITHM_PREFIX
from hostagent.kernel.loader import Libbpf, ProgramInfo
from hostagent.tests.rig import Bulk, RunningAgent, allocation, two_hosts
from topology.protocol import Allocations

STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
RATE_MBPS = 1000
OVER_S = 5.0
CONNECTIONS = (1, 100)
ON_ACK = "headway_cong_co"  # names have 15 characters; in bpf/headway.bpf.c


class _Info(c.Structure):
    """``struct bpf_prog_info`` up to its statistics (include/uapi/linux/bpf.h)."""

    _fields_ = (
        ("beginning", ProgramInfo),
        ("between", c.c_uint8 * (192 - c.sizeof(ProgramInfo))),
        ("run_time_ns", c.c_uint64),
        ("run_count", c.c_uint64),
    )


def statistics(lib: Libbpf) -> dict[str, tuple[int, int]]:
    """Return the time and the runs of each of our programs so far."""
    found = {}
    for program_id in lib.ids("prog"):
        fd = lib.number("bpf_prog_get_fd_by_id", program_id, doing="opening a program")
        info, size = _Info(), c.c_uint32(c.sizeof(_Info))
        lib.number("bpf_obj_get_info_by_fd", fd, c.byref(info), c.byref(size), doing="reading a program's statistics")
        name = info.beginning.name.decode()
        if name.startswith(ALGORITHM_PREFIX):
            found[name] = (info.run_time_ns, info.run_count)
    return found


def run(folder: Path, connections: int) -> float:
    """Return the nanoseconds for an ACK while so many connections share an allocation."""
    sender, receiver = two_hosts()
    agent = RunningAgent(sender, folder / f"agent{connections}")
    bulks: list[Bulk] = []
    try:
        agent.obey(Allocations(1, 3000, (allocation("10.77.0.0/24", RATE_MBPS, 20_000),)))
        bulks += [Bulk(sender, receiver).start() for _ in range(connections)]
        time.sleep(1)
        lib = Libbpf()
        before = statistics(lib)
        time.sleep(OVER_S)
        after = statistics(lib)
    finally:
        for bulk in bulks:
            bulk.close()
        agent.close()
        sender.remove()
        receiver.remove()
    spent_ns = sum(after[name][0] - before[name][0] for name in after)
    return spent_ns / (after[ON_ACK][1] - before[ON_ACK][1])


def main() -> int:
    """Run, and print what was seen."""
    was = STATS.read_text()
    STATS.write_text("1")
    try:
        with tempfile.TemporaryDirectory(prefix="headway-") as scratch:
            print(json.dumps({str(n): round(run(Path(scratch), n), 1) for n in CONNECTIONS}))
    finally:
        STATS.write_text(was)
    return 0


if __name__ == "__main__":
    sys.exit(main())
