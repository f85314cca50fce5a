"""What the host lacks for the agent, each as one line: what, where, what to do."""

import ctypes
import os
import re
from dataclasses import dataclass
from pathlib import Path

from hostagent.kernel import cgroup
from hostagent.kernel.loader import LIBRARY

LEAST_KERNEL = (6, 0)  # the first that lets a BPF congestion control set the pacing rate (commit 41c95dd6a604)
BTF = Path("/sys/kernel/btf/vmlinux")
STATUS = Path("/proc/self/status")
CLOCKS = Path("/proc/self/timens_offsets")
_CAP_SYS_ADMIN = 21  # include/uapi/linux/capability.h; contains the two newer ones
NEEDS = ("kernel", "BTF", "capabilities", "libbpf", "cgroup2", "clocks")
_CAPABILITIES = {"CAP_BPF": 39, "CAP_PERFMON": 38, "CAP_NET_ADMIN": 12}


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found on the host.

    Attributes:
        kernel: release, as in ``uname -r``.
        capabilities: effective set, a bit mask.
        btf: whether the kernel describes its types.
        libbpf: whether the library can be loaded.
        cgroup: whether there is a cgroup2 directory to attach to.
        shifted_clocks: those that a time namespace shifts: BPF counts by the host's.
    """

    kernel: str
    capabilities: int
    btf: bool
    libbpf: bool
    cgroup: bool
    shifted_clocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lack:
    """One thing that the host lacks; ``need`` is one of ``NEEDS``."""

    need: str
    what: str
    where: str
    remedy: str

    def __str__(self) -> str:
        """Return the line for the operator."""
        return f"{self.what} ({self.where}): {self.remedy}"


def lacking(facts: Facts) -> tuple[Lack, ...]:
    """Return all that is missing, nothing if the agent can run. Pure."""
    lacks = []
    version = re.match(r"(\d+)\.(\d+)", facts.kernel)
    if version is None or (int(version[1]), int(version[2])) < LEAST_KERNEL:
        lacks.append(Lack("kernel", "the kernel is too old", f"uname -r: {facts.kernel}", "boot Linux 6.0 or newer"))
    if not facts.btf:
        remedy = "boot one with CONFIG_DEBUG_INFO_BTF=y"
        lacks.append(Lack("BTF", "the kernel has no type information", str(BTF), remedy))
    missing = [name for name, bit in _CAPABILITIES.items() if not _has(facts.capabilities, name, bit)]
    if missing:
        names = " ".join(missing)
        remedy = f"run as root or with AmbientCapabilities={names}"
        lacks.append(Lack("capabilities", f"{names} missing", str(STATUS), remedy))
    if not facts.libbpf:
        remedy = "install libbpf (Debian: apt install libbpf1)"
        lacks.append(Lack("libbpf", f"no {LIBRARY}", "the library path", remedy))
    if not facts.cgroup:
        remedy = "mount -t cgroup2 none /sys/fs/cgroup, or name a cgroup2 directory as `cgroup:` in the configuration"
        lacks.append(Lack("cgroup2", "no cgroup2 directory", "/proc/mounts", remedy))
    if facts.shifted_clocks:
        names = " and ".join(facts.shifted_clocks)
        lacks.append(
            Lack("clocks", f"{names} not the host's", str(CLOCKS), "run the agent in the host's time namespace")
        )
    return tuple(lacks)


def facts(cgroup_dir: Path | None) -> Facts:
    """Look at this host.

    Args:
        cgroup_dir: the configured directory, None to look for one.
    """
    return Facts(
        kernel=os.uname().release,
        capabilities=_effective(STATUS.read_text()),
        btf=BTF.exists(),
        libbpf=_loads(LIBRARY),
        cgroup=_opens_cgroup(cgroup_dir),
        shifted_clocks=_shifted(CLOCKS.read_text()) if CLOCKS.exists() else (),
    )


def _opens_cgroup(configured: Path | None) -> bool:
    try:
        os.close(cgroup.opened_cgroup(configured))
    except OSError:
        return False
    return True


def _shifted(offsets: str) -> tuple[str, ...]:
    """Return the clocks that have an offset; a line has a name, seconds and nanoseconds: time_namespaces(7)."""
    lines = (line.split() for line in offsets.splitlines())
    return tuple(name for name, *offset in lines if any(int(part) for part in offset))


def _effective(status: str) -> int:
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return int(found[1], 16) if found else 0


def _has(capabilities: int, name: str, bit: int) -> bool:
    implied = name != "CAP_NET_ADMIN" and capabilities >> _CAP_SYS_ADMIN & 1
    return bool(capabilities >> bit & 1 or implied)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
