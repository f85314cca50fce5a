"""The namespace's TCP buffers: wide enough for the plan's windows, and put back as they were.

A receiver announces a window as large as its buffer lets it, and that buffer begins at ``tcp_rmem[1]``; with the
usual 128 KiB the first second of a long transfer is lost (measured: 64 MB there opens 33.6 MB after the first
segment). A sender keeps a whole window until it is confirmed, up to ``tcp_wmem[2]``. Both are per network namespace.
``rmem_max`` and ``tcp_mem`` are the kernel's; only its first network namespace can change them.
What was there is written down before it is changed, so that the next start puts it back if the agent is killed.
Root is not needed: the kernel lets CAP_NET_ADMIN write these (net_ctl_permissions, net/sysctl_net.c).
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hostagent.doctor import buffers
from hostagent.doctor.buffers import Numbers
from hostagent.log import log

SYSCTL = Path("/proc/sys/net/ipv4")
CORE = Path("/proc/sys/net/core")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MEMORY = Path("/proc/meminfo")
OWN = ("tcp_rmem", "tcp_wmem")
KERNEL_WIDE = ("rmem_max", "tcp_mem")


@dataclass(frozen=True, slots=True)
class Windows:
    """What a plan needs buffers for.

    Attributes:
        receive_bytes: the window a receiving connection must be able to announce; 0 leaves the host's own setting.
        send_segments: the window of each allocation; one connection may have all of it.
        mss_bytes: payload of a segment.
    """

    receive_bytes: int
    send_segments: tuple[int, ...]
    mss_bytes: int

    @property
    def may_take_bytes(self) -> int:
        """The memory that the windows may take at most, with as many receiving connections as may lie full."""
        receive_bytes = min(buffers.BUFFER_PER_WINDOW * self.receive_bytes, buffers.LARGEST_BYTES)
        send_bytes = buffers.send_memory_bytes(sum(self.send_segments), self.mss_bytes)
        return send_bytes + buffers.PAUSED_READERS * receive_bytes


def wanted_sysctls(was: Mapping[str, Numbers], windows: Windows, host_bytes: int) -> dict[str, Numbers]:
    """Return the settings for a plan, none of them less than it was. Pure.

    Args:
        was: the host's own settings, by name; what is missing cannot be seen from here.
        windows: the plan's.
        host_bytes: the host's memory.
    """
    ours = {
        "tcp_rmem": buffers.receive_buffer(was["tcp_rmem"], windows.receive_bytes),
        "tcp_wmem": buffers.send_buffer(was["tcp_wmem"], max(windows.send_segments, default=0)),
    }
    if "rmem_max" in was:  # an application's SO_RCVBUF is doubled after it has been cut to this
        ours["rmem_max"] = buffers.at_least(was["rmem_max"], min(windows.receive_bytes, buffers.LARGEST_BYTES))
    if "tcp_mem" in was:
        ours["tcp_mem"] = buffers.pages_for(was["tcp_mem"], windows.may_take_bytes, host_bytes)
    return ours


class TcpBuffers:
    """This namespace's TCP buffers and the kernel's limits on them, with what they were."""

    def __init__(self, state_file: Path, sysctl: Path = SYSCTL, core: Path = CORE) -> None:
        """Put back what a killed agent of the same boot has left.

        Raises:
            OSError: a sysctl or the state file cannot be read or written.
        """
        self._state_file = state_file
        self._folders = {"tcp_rmem": sysctl, "tcp_wmem": sysctl, "tcp_mem": sysctl, "rmem_max": core}
        self._boot_id = BOOT_ID.read_text().strip()
        self._host_bytes = memory_bytes(MEMORY.read_text())["MemTotal"]
        self._set: dict[str, Numbers] = {}
        self._refused: set[str] = set()
        self.may_take_bytes = 0
        if state_file.exists():
            self._restore(*self._left_behind())
        first = (sysctl / "tcp_mem").exists()  # others do not show it; rmem_max they show since 6.12, but not to write
        self._was = {name: self._now(name) for name in (*OWN, *KERNEL_WIDE * first)}

    def fit(self, windows: Windows) -> None:
        """Make room for the plan's windows; 0 leaves or puts back the host's own setting.

        What somebody else has set since, as ``sysctl --system`` does, is the host's own from then on.

        Raises:
            OSError: the state file cannot be written.
        """
        self.may_take_bytes = windows.may_take_bytes
        others = self._taken_over()
        ours = wanted_sysctls(self._was, windows, self._host_bytes)
        changed = {name: to for name, to in ours.items() if to != (self._was | self._set)[name]}
        if changed.keys() <= self._refused:
            return
        self._save(ours)
        for name, to in changed.items():
            if self._written(name, to):
                self._set[name] = to
                if name in others:
                    log.warning("buffers.changed", setting=full(name), to=str(others[name]), again=str(to))
        log.info("buffers.set", **self.shown, may_take_bytes=windows.may_take_bytes)
        if windows.may_take_bytes > self._host_bytes // 2:
            log.warning("buffers.large", may_take_bytes=windows.may_take_bytes, memory_bytes=self._host_bytes)
        self._say_hidden(windows)

    def close(self) -> None:
        """Put back what was there.

        Raises:
            OSError: a sysctl cannot be written.
        """
        if self._state_file.exists():
            self._restore(self._was, self._set)
            self._set = {}

    @property
    def shown(self) -> dict[str, str]:
        """What is set now, by the setting's name."""
        return {name: str(numbers) for name, numbers in (self._was | self._set).items()}

    def _now(self, name: str) -> Numbers:
        return Numbers.parsed((self._folders[name] / name).read_text())

    def _taken_over(self) -> dict[str, Numbers]:
        """Take what somebody else has set for the host's own, and return it."""
        others = {}
        for name, as_left in (self._was | self._set).items():
            with contextlib.suppress(OSError):
                if (now := self._now(name)) != as_left:
                    others[name] = now
                    self._set.pop(name, None)
        self._was |= others
        return others

    def _write(self, name: str, to: Numbers) -> None:
        (self._folders[name] / name).write_text(str(to))

    def _written(self, name: str, to: Numbers) -> bool:
        """Set one and return whether that was allowed; if not, say so once, of the kernel's limits what would do it."""
        try:
            self._write(name, to)
        except OSError as error:
            if name not in self._refused:
                self._refused.add(name)
                self._say_refused(name, to, error)
            return False
        self._refused.discard(name)
        return True

    def _say_refused(self, name: str, to: Numbers, error: OSError) -> None:
        if name in OWN:
            log.warning("buffers.refused", why=str(error))
            return
        now = self._was[name]
        log.warning("buffers.limited", by=full(name), now=str(now), fix=command(name, to), why=error.strerror)

    def _say_hidden(self, windows: Windows) -> None:
        """Say once that the kernel's limit on all connections cannot be seen from this namespace."""
        if "tcp_mem" not in self._was and "tcp_mem" not in self._refused and windows.receive_bytes:
            self._refused.add("tcp_mem")
            needed = buffers.pages_for(Numbers((0, 0, 0)), windows.may_take_bytes, self._host_bytes)
            fix = f"{command('tcp_mem', needed)} in the host's first network namespace, if it is less there"
            log.warning("buffers.limited", by=full("tcp_mem"), now="not visible in this namespace", fix=fix)

    def _save(self, ours: dict[str, Numbers]) -> None:
        state = {
            "boot_id": self._boot_id,
            "was": {name: str(numbers) for name, numbers in self._was.items()},
            "set": {name: str(numbers) for name, numbers in ours.items()},
        }
        fresh = self._state_file.with_suffix(".new")
        fresh.write_text(json.dumps(state))
        fresh.replace(self._state_file)

    def _left_behind(self) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
        """Return what was there and what was set by an agent that did not put it back; nothing of another boot."""
        state = json.loads(self._state_file.read_text())
        if state["boot_id"] != self._boot_id:
            return {}, {}
        was = {name: Numbers.parsed(text) for name, text in state["was"].items()}
        return was, {name: Numbers.parsed(text) for name, text in state["set"].items()}

    def _restore(self, was: dict[str, Numbers], ours: dict[str, Numbers]) -> None:
        """Put back what is still as we set it; what somebody else has set since stays."""
        changed = {name: numbers for name, numbers in was.items() if numbers != ours.get(name, numbers)}
        for name, numbers in changed.items():
            if self._now(name) == ours[name]:
                self._write(name, numbers)
        self._state_file.unlink(missing_ok=True)
        log.info("buffers.restored", **{name: str(numbers) for name, numbers in changed.items()})


def full(name: str) -> str:
    """Return a setting's name as sysctl takes it.

    >>> full("rmem_max"), full("tcp_mem"), full("sctp.pf_enable")
    ('net.core.rmem_max', 'net.ipv4.tcp_mem', 'net.sctp.pf_enable')
    """
    if "." in name:
        return f"net.{name}"
    return f"net.ipv4.{name}" if name.startswith("tcp_") else f"net.core.{name}"


def command(name: str, to: Numbers) -> str:
    """Return the command that changes a setting until the next boot."""
    return f'sysctl -w {full(name)}="{to}"'


def memory_bytes(meminfo: str) -> dict[str, int]:
    """Return the amounts in the text of /proc/meminfo, bytes.

    >>> memory_bytes("MemTotal:       24 kB")
    {'MemTotal': 24576}
    """
    lines = (line.split() for line in meminfo.splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if words[-1] == "kB"}
