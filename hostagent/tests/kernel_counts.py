"""What a kernel counts of TCP, and of programs at an interface, for tests."""

import ctypes as c
import socket
import struct
from pathlib import Path

from hostagent.kernel.loader import Libbpf
from hostagent.tests.rig import NamespaceHost

TCX_EGRESS = 47  # enum bpf_attach_type


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
