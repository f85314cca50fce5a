"""What dead agents left in the kernel, and the lock that tells the dead from the living.

A registered congestion control outlives a killed agent: nobody can register its name again, and sockets on it fall
back by themselves only when their lease ends. Each living agent holds a lock on ``agent-<id>.lock`` in the run
directory; a registration whose lock file is there and free is a dead agent's. One without a lock file is not touched:
its agent may have another run directory.
"""

import ctypes as c
import errno
import fcntl
import os
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from hostagent.errors import AlreadyRunning, BpfError
from hostagent.kernel.layout import SLOT
from hostagent.kernel.loader import Libbpf, MapInfo, ProgramInfo

SO_NETNS_COOKIE = 71  # include/uapi/asm-generic/socket.h, Linux 5.14
ALGORITHM_PREFIX = "headway"
REGISTRATION_MAP = b"hw_ops"  # names in bpf/headway.bpf.c
CONNECTIONS_MAP = b"hw_conns_8"
_STRUCT_OPS = 26  # BPF_MAP_TYPE_STRUCT_OPS
_SK_STORAGE = 24  # BPF_MAP_TYPE_SK_STORAGE
_ALGORITHM = re.compile(rb"headway([0-9a-f]{1,8})\0")
_MAX_MAPS_OF_PROGRAM = 16
_LOCK_PATIENCE_S = 0.5


@dataclass(frozen=True, slots=True)
class Namespace:
    """A network namespace, by the cookie the kernel gave it."""

    cookie: int

    @property
    def id(self) -> str:
        """The cookie's lower 32 bits in hex: what still fits into an algorithm's name of 15 characters."""
        return f"{self.cookie & 0xFFFFFFFF:x}"

    @property
    def algorithm(self) -> str:
        """The congestion control's name; such names are kernel-wide, hence one for each namespace."""
        return ALGORITHM_PREFIX + self.id

    @classmethod
    def of_this_process(cls) -> Self:
        """Return the namespace this process is in.

        Raises:
            OSError: the kernel is older than 5.14.
        """
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            return cls(int.from_bytes(probe.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8), "little"))


class RunLock:
    """The lock of this namespace's agent. The file stays when the agent goes: free, it says that the agent is dead."""

    def __init__(self, run_dir: Path, namespace: Namespace) -> None:
        """Take the lock.

        Raises:
            AlreadyRunning: another agent holds it.
            OSError: the run directory cannot be written.
        """
        run_dir.mkdir(parents=True, exist_ok=True)
        path = lock_path(run_dir, namespace.id)
        self.had_predecessor = path.exists()
        self._file = path.open("a")
        if not self._locked(time.monotonic() + _LOCK_PATIENCE_S):
            self._file.close()
            raise AlreadyRunning(namespace.id, f"it holds {path}")

    def _locked(self, until_s: float) -> bool:
        """Return whether the lock is ours; patient, because others that start now look at it for a moment."""
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until_s:
                    return False
                time.sleep(0.02)
            else:
                return True

    def close(self) -> None:
        """Free the lock."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class Registration:
    """A congestion control of ours in the kernel.

    Attributes:
        namespace_id: whose it is.
        map_id: the struct_ops map that registers it.
        value: that map's value; it holds the ids of the programs.
    """

    namespace_id: str
    map_id: int
    value: bytes


def lock_path(run_dir: Path, namespace_id: str) -> Path:
    """Return the lock file of a namespace's agent."""
    return run_dir / f"agent-{namespace_id}.lock"


def agent_is_dead(run_dir: Path, namespace_id: str) -> bool:
    """Return whether an agent with this run directory once ran in the namespace and does no more."""
    try:
        with lock_path(run_dir, namespace_id).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (FileNotFoundError, BlockingIOError):
        return False
    return True


def registrations(lib: Libbpf) -> Iterator[Registration]:
    """Yield our congestion controls in the kernel, of all namespaces; nothing without CAP_SYS_ADMIN.

    Raises:
        BpfError: the kernel refused something else.
    """
    try:
        map_ids = tuple(lib.ids("map"))
    except BpfError as error:
        if error.errno == errno.EPERM:
            return
        raise
    for map_id in map_ids:
        fd = _opened(lib, "map", map_id)
        if fd is None:
            continue
        try:
            info = MapInfo()
            _inform(lib, fd, info)
            if info.type != _STRUCT_OPS or info.name != REGISTRATION_MAP:
                continue
            value = c.create_string_buffer(info.value_bytes)
            lib.number("bpf_map_lookup_elem", fd, SLOT.pack(0), value, doing="reading a registration")
            named = _ALGORITHM.search(value.raw)
            if named:
                yield Registration(named[1].decode(), map_id, value.raw)
        finally:
            os.close(fd)


def unregister(lib: Libbpf, ops_fd: int) -> bool:
    """Take a congestion control out of the kernel's list, by its struct_ops map; return whether it was there.

    Sockets that run it keep it until they are switched.

    Raises:
        BpfError: the kernel refused.
    """
    try:
        lib.number("bpf_map_delete_elem", ops_fd, SLOT.pack(0), doing="unregistering a dead agent's congestion control")
    except BpfError as error:
        if error.errno not in (errno.ENOENT, errno.EINPROGRESS):  # unregistered already, kept by a socket
            raise
        return False
    return True


def found_and_unregistered(lib: Libbpf, registration: Registration) -> bool:
    """Take a congestion control that was found out of the kernel's list; return whether it was still there.

    Raises:
        BpfError: the kernel refused.
    """
    fd = _opened(lib, "map", registration.map_id)
    if fd is None:
        return False
    try:
        return unregister(lib, fd)
    finally:
        os.close(fd)


def connections_fd(lib: Libbpf, registration: Registration) -> int | None:
    """Return a descriptor of the storage in which a dead agent kept what its sockets had before; the caller closes it.

    A struct_ops map's value holds its programs' ids where the functions' addresses would be.
    """
    for at in range(0, len(registration.value) - 7, 8):
        word = int.from_bytes(registration.value[at : at + 8], "little")
        program_fd = _opened(lib, "prog", word) if 0 < word < 2**31 else None
        if program_fd is None:
            continue
        try:
            map_ids = _maps_of_ours(lib, program_fd)
        finally:
            os.close(program_fd)
        for map_id in map_ids:
            map_fd = _opened(lib, "map", map_id)
            if map_fd is None:
                continue
            if (storage_fd := own_storage(lib, map_fd)) is not None:
                return storage_fd
    return None


def own_storage(lib: Libbpf, map_fd: int) -> int | None:
    """Return a map's descriptor if it is what this version keeps of its sockets; else close it and return None.

    Raises:
        BpfError: the kernel refused.
    """
    info = MapInfo()
    _inform(lib, map_fd, info)
    if info.type == _SK_STORAGE and info.name == CONNECTIONS_MAP:
        return map_fd
    os.close(map_fd)
    return None


def _maps_of_ours(lib: Libbpf, program_fd: int) -> tuple[int, ...]:
    """Return the ids of the maps of one of our programs, nothing for a foreign one."""
    ids = (c.c_uint32 * _MAX_MAPS_OF_PROGRAM)()
    info = ProgramInfo(map_count=len(ids), map_ids=c.addressof(ids))
    _inform(lib, program_fd, info)
    if not info.name.startswith(ALGORITHM_PREFIX.encode()):
        return ()
    return tuple(ids[: min(info.map_count, len(ids))])


def _opened(lib: Libbpf, kind: str, object_id: int) -> int | None:
    """Return a descriptor, or None if there is no such object (any more)."""
    try:
        return lib.number(f"bpf_{kind}_get_fd_by_id", object_id, doing=f"opening BPF {kind} {object_id}")
    except BpfError as error:
        if error.errno == errno.ENOENT:
            return None
        raise


def _inform(lib: Libbpf, fd: int, info: MapInfo | ProgramInfo) -> None:
    size = c.c_uint32(c.sizeof(info))
    lib.number("bpf_obj_get_info_by_fd", fd, c.byref(info), c.byref(size), doing="asking about a BPF object")
