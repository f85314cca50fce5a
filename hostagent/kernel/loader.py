"""libbpf.so.1 by ctypes: an object file opened, loaded and attached. Every failure carries what libbpf printed.

Debian's libbpf 1.1 is enough. Every distribution with a kernel that we support ships the library.
"""

import ctypes as c
import errno
import mmap
import os
import struct
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from hostagent.errors import BpfError

LIBRARY = "libbpf.so.1"
BPF_ANY = 0
LOG_LINES = 40  # the end of a verifier's log says why
_NO_PREALLOC = 1 << 0  # BPF_F_NO_PREALLOC
_MAPPABLE = 1 << 10  # BPF_F_MMAPABLE, since Linux 5.5
_BEFORE = 1 << 3  # BPF_F_BEFORE, of no other program: of all
_DEBUG = 2  # enum libbpf_print_level
_PRINT = c.CFUNCTYPE(c.c_int, c.c_int, c.c_char_p, c.c_void_p)
_POINTERS = (
    "bpf_object__open_mem",
    "bpf_object__find_map_by_name",
    "bpf_object__find_program_by_name",
    "bpf_map__attach_struct_ops",
    "bpf_program__attach_cgroup",
    "bpf_program__attach_iter",
    "ring_buffer__new",
)
_NAME_BYTES = 16
_REGISTRATION = struct.Struct("=II")  # a struct_ops map's value begins with refcnt and enum bpf_struct_ops_state
_IN_USE = 1
_SAMPLE = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_size_t)


class TrafficWay(IntEnum):
    """Which way packets pass an interface: the kernel's ``enum bpf_attach_type`` for tcx."""

    INGRESS = 46
    EGRESS = 47


class MapInfo(c.Structure):
    """The beginning of the kernel's ``struct bpf_map_info``."""

    _fields_ = (
        ("type", c.c_uint32),
        ("id", c.c_uint32),
        ("key_bytes", c.c_uint32),
        ("value_bytes", c.c_uint32),
        ("max_entries", c.c_uint32),
        ("flags", c.c_uint32),
        ("name", c.c_char * _NAME_BYTES),
    )


class ProgramInfo(c.Structure):
    """The beginning of the kernel's ``struct bpf_prog_info``."""

    _fields_ = (
        ("type", c.c_uint32),
        ("id", c.c_uint32),
        ("tag", c.c_uint8 * 8),
        ("jited_bytes", c.c_uint32),
        ("translated_bytes", c.c_uint32),
        ("jited", c.c_uint64),
        ("translated", c.c_uint64),
        ("loaded_ns", c.c_uint64),
        ("uid", c.c_uint32),
        ("map_count", c.c_uint32),
        ("map_ids", c.c_uint64),
        ("name", c.c_char * _NAME_BYTES),
    )


class LinkInfo(c.Structure):
    """The beginning of the kernel's ``struct bpf_link_info``, of a link to a cgroup."""

    _fields_ = (
        ("type", c.c_uint32),
        ("id", c.c_uint32),
        ("program_id", c.c_uint32),
        ("padding", c.c_uint32),
        ("cgroup_id", c.c_uint64),  # 0: detached
        ("attach_type", c.c_uint32),
        ("padding_2", c.c_uint32),
    )


class LinkOptions(c.Structure):
    """The beginning of libbpf's ``struct bpf_link_create_opts``."""

    _fields_ = (("size", c.c_size_t), ("flags", c.c_uint32), ("padding", c.c_uint32))


class Libbpf:
    """The library, with its errors turned into ``BpfError``."""

    def __init__(self) -> None:
        self._so = c.CDLL(LIBRARY, use_errno=True)
        for name in _POINTERS:
            getattr(self._so, name).restype = c.c_void_p
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        libc = c.CDLL(None)

        def printed(level: int, text: bytes, arguments: int) -> int:
            if level < _DEBUG:
                line = c.create_string_buffer(4096)
                libc.vsnprintf(line, c.c_size_t(len(line)), text, c.c_void_p(arguments))
                self._log.extend(line.value.decode(errors="replace").splitlines())
            return 0

        self._printed = _PRINT(printed)  # kept: libbpf calls it for as long as it is loaded
        self._so.libbpf_set_print(self._printed)

    def number(self, function: str, *arguments: Any, doing: str) -> int:
        """Call a function that answers an int, negative on error.

        Raises:
            BpfError: it failed.
        """
        self._log.clear()
        answer = int(getattr(self._so, function)(*arguments))
        if answer < 0:
            raise BpfError(doing, -answer, tuple(self._log))
        return answer

    def pointer(self, function: str, *arguments: Any, doing: str) -> c.c_void_p:
        """Call a function that answers a pointer, NULL on error.

        Raises:
            BpfError: it failed.
        """
        self._log.clear()
        answer = getattr(self._so, function)(*arguments)
        if not answer:
            raise BpfError(doing, c.get_errno(), tuple(self._log))
        return c.c_void_p(answer)

    def free_object(self, pointer: c.c_void_p) -> None:
        """Free an object that was opened."""
        self._so.bpf_object__close(pointer)

    def free_ring(self, pointer: c.c_void_p) -> None:
        """Free a ring buffer's reader."""
        self._so.ring_buffer__free(pointer)

    def ids(self, kind: str) -> Iterator[int]:
        """Yield the ids of all the kernel's objects of a kind, ``map`` or ``prog``; needs CAP_SYS_ADMIN.

        Raises:
            BpfError: the kernel does not let us look.
        """
        found = c.c_uint32(0)
        while True:
            try:
                self.number(f"bpf_{kind}_get_next_id", found, c.byref(found), doing=f"listing BPF {kind}s")
            except BpfError as error:
                if error.errno == errno.ENOENT:
                    return
                raise
            yield found.value


@dataclass(frozen=True, slots=True)
class BpfMap:
    """A map by its descriptor."""

    lib: Libbpf
    name: str
    fd: int
    key_bytes: int
    value_bytes: int

    def put(self, key: bytes, value: bytes) -> None:
        """Write one element.

        Raises:
            BpfError: the kernel refused it.
        """
        doing = f"writing to map {self.name}"
        self.lib.number("bpf_map_update_elem", self.fd, key, value, c.c_uint64(BPF_ANY), doing=doing)

    def put_words(self, index: int, words: Mapping[int, int]) -> None:
        """Write numbers of eight bytes into an array's element, by their offsets, each by one store, in this order.

        What stands beside them stays as the kernel part has it, also while it writes there.

        Raises:
            BpfError: the array is none that was made mappable.
        """
        element_bytes = (self.value_bytes + 7) & ~7  # array_map_alloc of kernel/bpf/arraymap.c
        at = index * element_bytes
        try:
            memory = mmap.mmap(self.fd, at + element_bytes)
        except OSError as error:
            raise BpfError(f"mapping {self.name}", error.errno or 0, ()) from error
        with memory, memoryview(memory) as seen, seen.cast("Q") as numbers:
            for offset_bytes, value in words.items():
                numbers[(at + offset_bytes) // 8] = value

    def value(self, key: bytes) -> bytes:
        """Return one element.

        Raises:
            BpfError: there is none.
        """
        found = c.create_string_buffer(self.value_bytes)
        self.lib.number("bpf_map_lookup_elem", self.fd, key, found, doing=f"reading map {self.name}")
        return found.raw

    def every_key(self) -> tuple[bytes, ...]:
        """Return the keys of all its elements.

        Raises:
            BpfError: the kernel refused.
        """
        found: list[bytes] = []
        following = c.create_string_buffer(self.key_bytes)
        while True:
            try:
                before = found[-1] if found else None
                self.lib.number("bpf_map_get_next_key", self.fd, before, following, doing=f"walking map {self.name}")
            except BpfError as error:
                if error.errno == errno.ENOENT:
                    return tuple(found)
                raise
            found.append(following.raw)

    def delete(self, key: bytes) -> None:
        """Remove one element.

        Raises:
            BpfError: there is none.
        """
        self.lib.number("bpf_map_delete_elem", self.fd, key, doing=f"deleting from map {self.name}")


class RingBuffer:
    """A ring buffer whose events only say that something has changed."""

    def __init__(self, lib: Libbpf, ring_map: BpfMap) -> None:
        self._lib = lib
        self._taken = _SAMPLE(lambda _context, _data, _bytes: 0)  # kept: libbpf calls it
        doing = f"opening {ring_map.name}"
        self._ring = lib.pointer("ring_buffer__new", ring_map.fd, self._taken, None, None, doing=doing)
        self.fd = lib.number("ring_buffer__epoll_fd", self._ring, doing=doing)

    def take(self) -> int:
        """Take what is there; return how many events that was."""
        return self._lib.number("ring_buffer__consume", self._ring, doing="reading the ring buffer")

    def close(self) -> None:
        """Free it."""
        self._lib.free_ring(self._ring)


class BpfObject:
    """An object file in memory; after ``load`` it is in the kernel for as long as this lives or something is attached.

    Close it to detach everything. The order of use: constants, adopt, load, then maps and attachments.
    """

    def __init__(self, lib: Libbpf, image: bytes) -> None:
        self._lib = lib
        self._image = image  # libbpf reads it until the object is loaded
        size = c.c_size_t(len(image))
        self._object = lib.pointer("bpf_object__open_mem", image, size, None, doing="opening the BPF object")
        self._links: list[c.c_void_p] = []

    def _map(self, name: str) -> c.c_void_p:
        return self._lib.pointer("bpf_object__find_map_by_name", self._object, name.encode(), doing=f"map {name}")

    def _program(self, name: str) -> c.c_void_p:
        find = "bpf_object__find_program_by_name"
        return self._lib.pointer(find, self._object, name.encode(), doing=f"program {name}")

    def set_constants(self, map_name: str, data: bytes) -> None:
        """Set the constants of one read-only section."""
        doing = f"setting {map_name}"
        size = c.c_size_t(len(data))
        self._lib.number("bpf_map__set_initial_value", self._map(map_name), data, size, doing=doing)

    def make_mappable(self, map_name: str) -> None:
        """Have an array created so that single numbers can be written into it."""
        doing = f"making {map_name} mappable"
        self._lib.number("bpf_map__set_map_flags", self._map(map_name), c.c_uint32(_MAPPABLE), doing=doing)

    def resize(self, map_name: str, max_entries: int) -> None:
        """Have a map of keys created for so many elements, with no memory for those that it does not have."""
        doing = f"resizing {map_name}"
        self._lib.number("bpf_map__set_max_entries", self._map(map_name), c.c_uint32(max_entries), doing=doing)
        self._lib.number("bpf_map__set_map_flags", self._map(map_name), c.c_uint32(_NO_PREALLOC), doing=doing)

    def adopt(self, map_name: str, fd: int) -> None:
        """Use a map that exists already in place of a new one."""
        self._lib.number("bpf_map__reuse_fd", self._map(map_name), fd, doing=f"adopting {map_name}")

    def load(self) -> None:
        """Create the maps and have the programs verified.

        Raises:
            BpfError: with the verifier's words.
        """
        self._lib.number("bpf_object__load", self._object, doing="loading the BPF object")

    def map(self, name: str) -> BpfMap:
        """Return a map of the loaded object."""
        found = self._map(name)
        fd = self._lib.number("bpf_map__fd", found, doing=f"map {name}")
        key_bytes, value_bytes = (
            self._lib.number(f"bpf_map__{which}_size", found, doing=f"map {name}") for which in ("key", "value")
        )
        return BpfMap(self._lib, name, fd, key_bytes, value_bytes)

    def register(self, map_name: str) -> None:
        """Register the operations in a struct_ops map with the kernel."""
        doing = "registering the congestion control"
        self._links.append(self._lib.pointer("bpf_map__attach_struct_ops", self._map(map_name), doing=doing))

    def is_registered(self, map_name: str) -> bool:
        """Whether the operations in a struct_ops map are still the kernel's."""
        operations = self.map(map_name)
        _references, state = _REGISTRATION.unpack_from(operations.value(bytes(operations.key_bytes)))
        return bool(state == _IN_USE)

    def program_fd(self, name: str) -> int:
        """Return the descriptor of a loaded program."""
        return self._lib.number("bpf_program__fd", self._program(name), doing=f"program {name}")

    def attach_cgroup(self, program: str, cgroup_fd: int) -> int:
        """Attach a program to a cgroup; others that are attached there stay. Return its link's descriptor."""
        attach = "bpf_program__attach_cgroup"
        doing = f"attaching {program} to the cgroup"
        link = self._lib.pointer(attach, self._program(program), cgroup_fd, doing=doing)
        self._links.append(link)
        return self._lib.number("bpf_link__fd", link, doing=program)

    def attached_to(self, way: TrafficWay, program: str, interface: int, *, first: bool = False) -> int:
        """Attach a program to what passes an interface, by index; return its link, which is the caller's to close.

        It sees a packet after those that are attached there already, or with ``first`` before them.

        Raises:
            BpfError: EINVAL where the kernel has no tcx.
        """
        fd, doing = self.program_fd(program), f"attaching {program} to interface {interface}"
        options = c.byref(LinkOptions(c.sizeof(LinkOptions), _BEFORE if first else 0))
        return self._lib.number("bpf_link_create", fd, interface, int(way), options, doing=doing)

    def is_attached(self, link_fd: int) -> bool:
        """Whether a program is still attached to its cgroup."""
        info = LinkInfo()
        size = c.c_uint32(c.sizeof(info))
        doing = "asking for a link"
        self._lib.number("bpf_obj_get_info_by_fd", link_fd, c.byref(info), c.byref(size), doing=doing)
        return bool(info.cgroup_id)

    def attach_iterator(self, program: str) -> int:
        """Return the descriptor of an iterator's link, for ``walk``."""
        link = self._lib.pointer("bpf_program__attach_iter", self._program(program), None, doing=f"attaching {program}")
        self._links.append(link)
        return self._lib.number("bpf_link__fd", link, doing=program)

    def walk(self, link_fd: int) -> None:
        """Run an iterator once over all sockets of this process's network namespace."""
        fd = self._lib.number("bpf_iter_create", link_fd, doing="walking the open sockets")
        try:
            while os.read(fd, 4096):
                pass
        finally:
            os.close(fd)

    def close(self) -> None:
        """Detach, unregister and free everything."""
        while self._links:
            self._lib.number("bpf_link__destroy", self._links.pop(), doing="detaching")
        self._lib.free_object(self._object)
