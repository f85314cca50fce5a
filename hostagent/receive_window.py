"""The namespace's TCP buffers: wide enough for the plan's windows, and put back as they were.

A receiver announces a window as large as its buffer lets it, and that buffer begins at ``tcp_rmem[1]``; with the
usual 128 KiB the first second of a long transfer is lost (measured: 64 MB there opens 33.6 MB after the first
segment). A sender keeps a whole window until it is confirmed, up to ``tcp_wmem[2]``. Both are per network namespace.
What was there is written down before it is changed, so that the next start puts it back if the agent is killed.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import structlog

SYSCTL = Path("/proc/sys/net/ipv4")
CORE = Path("/proc/sys/net/core")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
BUFFER_PER_WINDOW = 2  # half of a receive buffer is announced (tcp_adv_win_scale 1, and its successor's first guess)
# tcp_sndbuf_expand: twice what a segment occupies, a 9000-byte one rounded up to 16 KiB; with smaller segments the
# kernel itself stays below this ceiling
SEND_BUFFER_PER_SEGMENT_BYTES = 2 * (16384 + 256)
LARGEST_BYTES = 2**31 - 1  # the sysctls are int

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Buffers:
    """One of tcp_rmem and tcp_wmem, bytes."""

    least: int
    default: int
    largest: int

    @classmethod
    def parsed(cls, text: str) -> "Buffers":
        """Return the three numbers of the sysctl.

        Raises:
            ValueError: not three integers.
        """
        least, default, largest = (int(word) for word in text.split())
        return cls(least, default, largest)

    def __str__(self) -> str:
        """Return the sysctl's text."""
        return f"{self.least}\t{self.default}\t{self.largest}"


def receiving(was: Buffers, window_bytes: int) -> Buffers:
    """Return tcp_rmem that opens ``window_bytes`` from the first segment on; never less than it was.

    >>> receiving(Buffers(4096, 131072, 6291456), 32_000_000)
    Buffers(least=4096, default=64000000, largest=64000000)
    """
    wanted = min(window_bytes * BUFFER_PER_WINDOW, LARGEST_BYTES)
    return Buffers(was.least, max(was.default, wanted), max(was.largest, wanted))


def sending(was: Buffers, window_segments: int) -> Buffers:
    """Return tcp_wmem that keeps a window of ``window_segments`` of one connection; never less than it was."""
    wanted = min(window_segments * SEND_BUFFER_PER_SEGMENT_BYTES, LARGEST_BYTES)
    return Buffers(was.least, was.default, max(was.largest, wanted))


class TcpBuffers:
    """This namespace's tcp_rmem and tcp_wmem, with what they were."""

    def __init__(self, state_file: Path, sysctl: Path = SYSCTL, core: Path = CORE) -> None:
        """Put back what a killed agent of the same boot has left.

        Raises:
            OSError: a sysctl or the state file cannot be read or written.
        """
        self._state_file = state_file
        self._sysctl = sysctl
        self._core = core
        self._boot_id = BOOT_ID.read_text().strip()
        self._set: dict[str, Buffers] = {}
        if state_file.exists():
            self._restore(*self._left_behind())
        self._was = {name: self._now(name) for name in ("tcp_rmem", "tcp_wmem")}

    def fit(self, receive_window_bytes: int, send_window_segments: int) -> None:
        """Make room for the plan's windows; 0 leaves or puts back the host's own setting.

        Raises:
            OSError: a sysctl or the state file cannot be written.
        """
        wanted = {
            "tcp_rmem": receiving(self._was["tcp_rmem"], receive_window_bytes),
            "tcp_wmem": sending(self._was["tcp_wmem"], send_window_segments),
        }
        if wanted == (self._was | self._set):
            return
        self._save(wanted)
        for name, buffers in wanted.items():
            self._write(name, buffers)
        self._set = wanted
        log.info("buffers.set", **{name: str(buffers).replace("\t", " ") for name, buffers in wanted.items()})
        self._warn(receive_window_bytes)

    def close(self) -> None:
        """Put back what was there.

        Raises:
            OSError: a sysctl cannot be written.
        """
        if self._set:
            self._restore(self._was, self._set)
            self._set = {}

    def _now(self, name: str) -> Buffers:
        return Buffers.parsed((self._sysctl / name).read_text())

    def _write(self, name: str, buffers: Buffers) -> None:
        (self._sysctl / name).write_text(str(buffers))

    def _save(self, wanted: dict[str, Buffers]) -> None:
        state = {
            "boot_id": self._boot_id,
            "was": {name: str(buffers) for name, buffers in self._was.items()},
            "set": {name: str(buffers) for name, buffers in wanted.items()},
        }
        fresh = self._state_file.with_suffix(".new")
        fresh.write_text(json.dumps(state))
        fresh.replace(self._state_file)

    def _left_behind(self) -> tuple[dict[str, Buffers], dict[str, Buffers]]:
        """Return what was there and what was set by an agent that did not put it back; nothing of another boot."""
        state = json.loads(self._state_file.read_text())
        if state["boot_id"] != self._boot_id:
            return {}, {}
        was = {name: Buffers.parsed(text) for name, text in state["was"].items()}
        return was, {name: Buffers.parsed(text) for name, text in state["set"].items()}

    def _restore(self, was: dict[str, Buffers], ours: dict[str, Buffers]) -> None:
        """Put back what is still as we set it; what somebody else has set since stays."""
        for name, buffers in was.items():
            if self._now(name) == ours.get(name):
                self._write(name, buffers)
        self._state_file.unlink(missing_ok=True)
        log.info("buffers.restored", **{name: str(buffers).replace("\t", " ") for name, buffers in was.items()})

    def _warn(self, receive_window_bytes: int) -> None:
        """Say which kernel-wide limits are lower than the windows; they are the administrator's to change."""
        wanted_bytes = receive_window_bytes * BUFFER_PER_WINDOW
        limits = {"net.core.rmem_max": self._core / "rmem_max", "net.ipv4.tcp_mem": self._sysctl / "tcp_mem"}
        for name, path in limits.items():
            if not path.exists():  # only the first namespace shows the kernel-wide ones
                continue
            limit_bytes = int(path.read_text().split()[-1]) * (4096 if name.endswith("tcp_mem") else 1)
            if limit_bytes < wanted_bytes:
                log.warning("buffers.limited", by=name, limit_bytes=limit_bytes, wanted_bytes=wanted_bytes)
