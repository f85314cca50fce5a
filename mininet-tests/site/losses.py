"""Loss of single segments where super-packets pass: a BPF program at the ingress of an interface (``bpf/``).

What it costs is what is lost: a super-packet that loses nothing passes whole, and only the others are cut.
"""

import ctypes as c
import errno
import socket
import struct
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hostagent.errors import BpfError
from hostagent.kernel.loader import BpfMap, BpfObject, Libbpf
from hostagent.tests.rig import NamespaceHost
from mininet_tests.site.long_line import run

OBJECT = Path(__file__).parent / "bpf" / "losses.bpf.o"
BPF_TC_INGRESS = 1  # libbpf's enum bpf_tc_attach_point
CUTTER, DROPPER = "cut0", "cut1"
_MODEL = struct.Struct("=Q6I4Q")  # struct model of losses.bpf.c
_WHOLE = 1 << 32
_SPREAD = 0x9E3779B97F4A7C15  # 2**64 / the golden ratio: the first numbers of two seeds are then not alike
_KEY = struct.pack("=I", 0)


class _Hook(c.Structure):
    """libbpf's ``struct bpf_tc_hook``."""

    _fields_ = (("size", c.c_size_t), ("ifindex", c.c_int), ("attach_point", c.c_int), ("parent", c.c_uint32))


class _Options(c.Structure):
    """libbpf's ``struct bpf_tc_opts``."""

    _fields_ = (
        ("size", c.c_size_t),
        ("program_fd", c.c_int),
        ("flags", c.c_uint32),
        ("program_id", c.c_uint32),
        ("handle", c.c_uint32),
        ("priority", c.c_uint32),
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """What has come by: segments, those of them that were to be lost, super-packets cut for it, segments dropped."""

    segments: int
    lost: int
    cuts: int
    dropped: int


class SegmentLoss:
    """Loses segments that arrive at an interface of a place; nothing before ``set``."""

    def __init__(self, place: NamespaceHost, device: str, mac: str) -> None:
        """Attach it.

        Args:
            place: the namespace.
            device: the interface.
            mac: its address, which the veth that cuts has too.
        """
        peer = ("peer", DROPPER, "address", mac)
        run("ip", "-n", place.name, "link", "add", CUTTER, "type", "veth", *peer)
        ups = [f"link set {end} mtu 9000 addrgenmode none up" for end in (CUTTER, DROPPER)]
        run("ip", "-n", place.name, "-batch", "-", text="\n".join(ups))
        run("ip", "netns", "exec", place.name, "ethtool", "-K", CUTTER, "tso", "off", "gso", "off")
        for end in ("all", DROPPER):  # what is cut comes in by another interface than answers go out by
            place.set({f"net.ipv4.conf.{end}.rp_filter": "0"})
        lib = Libbpf()
        self._object = BpfObject(lib, OBJECT.read_bytes())
        self._object.load()
        for end, program in ((device, "lose"), (DROPPER, "drop")):
            fd = self._object.program_fd(program)
            index = _index(place, end)
            place.inside(partial(_attached, lib, index, fd))
        self._models: BpfMap = self._object.map("models")
        self._ends = [_index(place, end) for end in (CUTTER, DROPPER)]
        self.set(0.0, 1)

    def set(self, share: float, seed: int, *, run_length: float | None = None) -> None:
        """Lose a share of the segments from now on, and count anew.

        Args:
            share: of all segments, from 0 to 1.
            seed: of the random numbers, not 0.
            run_length: losses come in runs of so many segments in the mean (Gilbert 1960, without losses between
                them); without it each segment is lost or not whatever became of the others.
        """
        stay = share if run_length is None else 1 - 1 / run_length
        # In the long run share = enter / (enter + 1 - stay).
        enter = share * (1 - stay) / (1 - share)
        chances = (int(chance * _WHOLE) for chance in (enter, stay))
        self._models.put(_KEY, _MODEL.pack(seed * _SPREAD % 2**64, *chances, *self._ends, *[0] * 6))

    @property
    def counts(self) -> Counts:
        """What has come by since ``set``."""
        return Counts(*_MODEL.unpack(self._models.value(_KEY))[-4:])


def _index(place: NamespaceHost, device: str) -> int:
    return place.inside(lambda: socket.if_nametoindex(device))


def _attached(lib: Libbpf, index: int, program_fd: int) -> None:
    """Attach a program to the ingress of an interface of this thread's namespace."""
    hook = _Hook(c.sizeof(_Hook), index, BPF_TC_INGRESS, 0)
    try:
        lib.number("bpf_tc_hook_create", c.byref(hook), doing="making the hook")
    except BpfError as error:
        if error.errno != errno.EEXIST:
            raise
    options = _Options(c.sizeof(_Options), program_fd)
    lib.number("bpf_tc_attach", c.byref(hook), c.byref(options), doing="attaching the program")
