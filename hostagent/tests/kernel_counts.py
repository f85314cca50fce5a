"""What a kernel counts of TCP, and of programs at an interface, for tests."""

import ctypes as c
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostagent.kernel.loader import Libbpf
from hostagent.tests.rig import NamespaceHost

TCX_EGRESS = 47  # enum bpf_attach_type
MOST_PROGRAMS = 63  # bpf_mprog_max(), of one way of an interface
SCHED_CLS = 3  # enum bpf_prog_type
PASSES = bytes.fromhex("b7000000ffffffff 9500000000000000")  # r0 = TCX_NEXT; exit


def counted(host: NamespaceHost, *names: str) -> int:
    """Return counters of a host's TCP, together."""
    heads, values = host.inside(Path("/proc/thread-self/net/netstat").read_text).splitlines()[:2]
    seen = dict(zip(heads.split(), values.split(), strict=True))
    return sum(int(seen[name]) for name in names)


def retransmitted(sender: socket.socket) -> int:
    """Return how many segments a connection has sent again (tcpi_total_retrans)."""
    return struct.unpack_from("=I", sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 100)[0]


def programs_at(interface: str) -> int:
    """Return how many programs see what leaves by an interface of this thread's namespace."""
    count, ids = c.c_uint32(8), (c.c_uint32 * 8)()
    index = socket.if_nametoindex(interface)
    asked = (index, TCX_EGRESS, 0, None, ids, c.byref(count))
    Libbpf().number("bpf_prog_query", *asked, doing="asking for programs")
    return count.value


@contextmanager
def others_programs(interface: str) -> Iterator[None]:
    """As many programs of others see what leaves by an interface of this thread's namespace as the kernel allows."""
    lib, opened, index = Libbpf(), list[int](), socket.if_nametoindex(interface)
    try:
        for _ in range(MOST_PROGRAMS):
            opened.append(lib.number("bpf_prog_load", SCHED_CLS, b"other", b"GPL", PASSES, 2, None, doing="loading"))
            opened.append(lib.number("bpf_link_create", opened[-1], index, TCX_EGRESS, None, doing="attaching"))
        yield
    finally:
        for descriptor in opened:
            os.close(descriptor)
