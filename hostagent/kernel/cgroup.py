"""The cgroup2 directory whose sockets the agent serves: configured, found, or the root one mounted for us alone."""

import ctypes
import os
from pathlib import Path

MOUNTS = Path("/proc/self/mounts")
# The mount calls of Linux 5.2 have the same numbers on every architecture (include/uapi/asm-generic/unistd.h).
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_FSCONFIG_CMD_CREATE = 6  # include/uapi/linux/mount.h
_CLOEXEC = 1  # FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC


def opened_cgroup(configured: Path | None) -> int:
    """Return a descriptor of the directory; the caller closes it.

    A container or a Mininet host may have a /sys of its own that hides every mount; the root cgroup is then mounted
    where only this descriptor leads (needs CAP_SYS_ADMIN).

    Raises:
        OSError: there is none, or it may not be opened.
    """
    if configured is not None:
        if not (configured / "cgroup.procs").exists():
            raise FileNotFoundError(2, "not a cgroup2 directory", str(configured))
        return os.open(configured, os.O_RDONLY | os.O_DIRECTORY)
    for path in mounted(MOUNTS.read_text()):
        if (path / "cgroup.procs").exists():
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    return _mounted_unseen()


def mounted(mounts: str) -> tuple[Path, ...]:
    """Return where cgroup2 is mounted, from the text of /proc/mounts.

    >>> mounted("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0")
    (PosixPath('/sys/fs/cgroup'),)
    """
    lines = (line.split() for line in mounts.splitlines())
    return tuple(Path(words[1]) for words in lines if len(words) > 2 and words[2] == "cgroup2")


def _mounted_unseen() -> int:
    """Return a descriptor of the root cgroup through a mount that is in no tree."""
    context = _syscall(_FSOPEN, b"cgroup2", _CLOEXEC)
    try:
        _syscall(_FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0)
        mount = _syscall(_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=mount)
    finally:
        os.close(mount)


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    answer: int = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "cgroup2")
    return answer
