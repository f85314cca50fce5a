"""Loss of single segments where super-packets pass: a BPF program at the ingress of an interface (``bpf/``, Linux 6.6).

What an agent has at that ingress sees what is left.

What it costs is what is lost: a super-packet that loses nothing passes whole, and only the others are cut.
"""

import socket
import struct
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hostagent.kernel.loader import BpfMap, BpfObject, Libbpf, TrafficWay
from hostagent.tests.rig import NamespaceHost
from mininet_tests.site.command import run

OBJECT = Path(__file__).parent / "bpf" / "losses.bpf.o"
CUTTER, DROPPER = "cut0", "cut1"
_MODEL = struct.Struct("=Q6I4Q")  # struct model of losses.bpf.c
_WHOLE = 1 << 32
_SPREAD = 0x9E3779B97F4A7C15  # 2**64 / the golden ratio: the first numbers of two seeds are then not alike
_KEY = struct.pack("=I", 0)


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
        self._links = [
            place.inside(partial(self._object.attached_to, TrafficWay.INGRESS, program, _index(place, end), first=True))
            for end, program in ((device, "lose"), (DROPPER, "drop"))
        ]
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
