"""The coded tail in the kernel: an object of its own beside the agent's, loaded only where it is asked for.

It shares the agent's plan, connections and counters. Where it is not loaded, nothing of it is there.
"""

from dataclasses import dataclass, fields

from hostagent.kernel.btf import Btf
from hostagent.kernel.image import CODED_OBJECT_FILE, object_image
from hostagent.kernel.interfaces import Interfaces
from hostagent.kernel.layout import SLOT
from hostagent.kernel.loader import BpfMap, BpfObject, Libbpf, TrafficWay

PROGRAMS = {TrafficWay.INGRESS: "coded_ingress", TrafficWay.EGRESS: "coded_egress"}
SHARED = ("hw_plan", "hw_control", "hw_entries", "hw_counters", "hw_conns_8")  # with the agent's object


@dataclass(frozen=True, slots=True)
class CodedCounts:
    """What the coded tail has done since it was loaded; ``struct coded_counts``.

    Attributes:
        blocks: opened here as the sender.
        parities: packets sent.
        anchors: blocks of which this host was the receiver.
        rebuilt: segments made again.
        needless: parities that came for a group of which nothing was missing.
        too_many: parities that came for a group of which more than one segment was missing.
        refused: parities of which something was made that did not agree with their sum.
    """

    blocks: int
    parities: int
    anchors: int
    rebuilt: int
    needless: int
    too_many: int
    refused: int


_COUNTS = tuple(field.name for field in fields(CodedCounts))


def counts_in(found: BpfMap) -> CodedCounts:
    """Return what is in the map of the counts.

    Raises:
        BpfError: the kernel refused.
        LayoutDiffers: it has other members than the value.
    """
    record = Btf(object_image(CODED_OBJECT_FILE)).record("coded_counts")
    return CodedCounts(*record.read(found.value(SLOT.pack(0)), _COUNTS))


class CodedTail:
    """The loaded object, on the interfaces of this namespace."""

    def __init__(self, lib: Libbpf, agents: BpfObject, host: bytes) -> None:
        """Load it and attach it, before the agent's own programs: they take out what it looks for.

        Args:
            lib: the library.
            agents: the agent's object, loaded.
            host: ``struct host``, as the agent's object has it.

        Raises:
            BpfError: the kernel refused something.
        """
        image = object_image(CODED_OBJECT_FILE)
        self._object = BpfObject(lib, image)
        try:
            self._object.set_constants(".rodata.host", host)
            for name in SHARED:
                self._object.adopt(name, agents.map(name).fd)
            self._object.load()
            self._map = self._object.map("hw_coded")
            self._interfaces = Interfaces(self._object, PROGRAMS, "agent.tail_not_coded")
        except BaseException:
            self._object.close()
            raise

    @property
    def is_attached(self) -> bool:
        """Whether the kernel can attach it at each interface: Linux 6.6 or newer."""
        return self._interfaces.can_attach

    def follow(self) -> None:
        """Attach it to interfaces that have come.

        Raises:
            BpfError: the kernel refused.
        """
        self._interfaces.follow()

    @property
    def counts(self) -> CodedCounts:
        """What it has done.

        Raises:
            BpfError: the kernel refused.
        """
        return counts_in(self._map)

    def close(self) -> None:
        """Take it off all interfaces and out of the kernel."""
        self._interfaces.close()
        self._object.close()
