"""The maps of a running agent, by its descriptors: for tests that break them."""

import ctypes as c
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostagent.kernel.kernel import PROGRAMS
from hostagent.kernel.loader import BpfMap, Libbpf, MapInfo

CGROUP_LINK = "link_type:\tcgroup"


def _ids(pid: int, what: str, where: str = "") -> Iterator[int]:
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        text = info.read_text()
        if where in text:
            yield from (int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{what}:"))


@contextmanager
def agents_map(pid: int, name: str) -> Iterator[BpfMap]:
    """A map of an agent."""
    lib = Libbpf()
    for map_id in _ids(pid, "map_id"):
        fd = lib.number("bpf_map_get_fd_by_id", map_id, doing="opening a map")
        info, size = MapInfo(), c.c_uint32(c.sizeof(MapInfo))
        lib.number("bpf_obj_get_info_by_fd", fd, c.byref(info), c.byref(size), doing="asking for a map")
        if info.name.decode() == name:
            try:
                yield BpfMap(lib, name, fd, info.key_bytes, info.value_bytes)
            finally:
                os.close(fd)
            return
        os.close(fd)
    raise LookupError(name)


def detach_hooks(pid: int) -> None:
    """Detach the agent's programs from its cgroup, as ``bpftool link detach`` does."""
    lib = Libbpf()
    link_ids = [*_ids(pid, "link_id", CGROUP_LINK)]
    assert len(link_ids) == len(PROGRAMS)
    for link_id in link_ids:
        fd = lib.number("bpf_link_get_fd_by_id", link_id, doing="opening a link")
        lib.number("bpf_link_detach", fd, doing="detaching")
        os.close(fd)


def children(pid: int) -> list[str]:
    """The process itself if it has replaced the command that started it."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return found or [str(pid)]
