"""What is kept of the machine that a cell was measured on."""

import os
from pathlib import Path

from mininet_tests.lab.cells import Cell


def surroundings() -> Cell:
    """Return the memory that is used, and the kernel."""
    rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(rows[key].split()[0]) for key in ("MemTotal", "MemAvailable"))
    return {"memory_used_mib": (total - free) // 1024, "kernel": os.uname().release}
