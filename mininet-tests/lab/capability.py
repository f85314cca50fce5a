"""Whether this machine's own kernel can carry the emulation; if not, the launcher takes the lab."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

MODULES = ("openvswitch", "sch_netem", "sch_htb", "sch_tbf", "act_mirred", "cls_matchall", "nf_tables")
"""Modules whose features the scenarios use."""
BTF = Path("/sys/kernel/btf/vmlinux")
LOADED = Path("/proc/modules")


def native_problem() -> str | None:
    """Return None if the scenarios can run right here, else one sentence on what is missing.

    Loads the kernel modules on the way, as Open vSwitch and tc would.
    """
    if os.geteuid() != 0:
        return "not root: network namespaces, Open vSwitch and BPF need it"
    release = os.uname().release
    if missing := [name for name in MODULES if not _available(name, release)]:
        return f"the kernel {release} has no {', '.join(missing)}, and modprobe cannot load what is missing"
    if not BTF.exists():
        return f"the kernel {release} has no BTF ({BTF}): the host agent's BPF program cannot be loaded"
    return None


def loaded_names(listing: str) -> frozenset[str]:
    """Return the names of the modules in the text of ``/proc/modules``."""
    return frozenset(line.split(" ", 1)[0] for line in listing.splitlines())


def built_in_names(listing: str) -> frozenset[str]:
    """Return the names of the modules in the text of ``modules.builtin``, one path a line."""
    return frozenset(Path(line).stem.replace("-", "_") for line in listing.splitlines())


def _available(name: str, release: str) -> bool:
    if LOADED.exists() and name in loaded_names(LOADED.read_text()):
        return True
    # A built-in module shows here only if it has parameters; the list beside the modules names all of them.
    built_in = Path("/lib/modules") / release / "modules.builtin"
    if Path("/sys/module", name).exists() or (built_in.exists() and name in built_in_names(built_in.read_text())):
        return True
    try:
        done = subprocess.run(["modprobe", "-q", name], capture_output=True, timeout=30, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
