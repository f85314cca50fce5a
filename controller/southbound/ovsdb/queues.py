"""The queues of a switch port as values. Pure; ``writer.py`` writes them."""

from collections.abc import Iterable
from dataclasses import dataclass

from controller.southbound.errors import NotExpressible

ShaperKey = tuple[str, int | None]

_QUEUE_BPS_MIN = 12_000  # OVS raises a smaller min-rate to 1500 byte/s (netdev-linux.c, htb_parse_class_details__)


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue of a port, an HTB class; rates count Ethernet frames without FCS.

    What a queue sends within ``min_bps`` is exact. What it borrows above that passes the port's root class, to which
    OVS gives a burst of one packet and no way to set it: 1.5% of a borrowed 1 Gbit/s and 20% of a borrowed 10 Gbit/s
    were lost to the kernel's timer when measured. So a share is a minimum; borrowing is a courtesy.

    Attributes:
        queue_id: what ``set_queue`` names; 0 takes all that no rule has given a queue.
        min_bps: what it gets whenever it wants it, bit/s.
        max_bps: what it never exceeds, bit/s.
        burst_bits: credit it may save while idle, bits. Below about 100 us of ``max_bps`` the class loses rate
            whenever the kernel's timer is late; OVS's own choice is a single packet.
    """

    queue_id: int
    min_bps: int
    max_bps: int
    burst_bits: int


@dataclass(frozen=True, slots=True)
class PortQueues:
    """All queues of a port.

    Attributes:
        port_max_bps: what all together never exceed, bit/s.
        queues: ascending by number; queue 0 is among them, or OVS makes one of 12 kbit/s.
    """

    port_max_bps: int
    queues: tuple[Queue, ...]


@dataclass(frozen=True, slots=True)
class Shaper:
    """One shaper of a port, as a switch's database or its kernel has it: a queue, or the port's own around them.

    Attributes:
        port_name: the port.
        queue_id: the queue; None for the port's own.
        min_bps: what it gets whenever it wants it, bit/s.
        max_bps: what it never exceeds, bit/s.
        burst_bits: its credit; 0 for the port's own, which Open vSwitch chooses.
    """

    port_name: str
    queue_id: int | None
    min_bps: int
    max_bps: int
    burst_bits: int

    @property
    def key(self) -> ShaperKey:
        """What makes it the same one."""
        return self.port_name, self.queue_id

    def __str__(self) -> str:
        """Return it on one line, for people."""
        if self.queue_id is None:
            return f"port {self.port_name}: {self.max_bps:,} bit/s"
        rates = f"{self.min_bps:,} to {self.max_bps:,} bit/s, burst {self.burst_bits:,} bit"
        return f"port {self.port_name} queue {self.queue_id}: {rates}"


def shapers(port_name: str, queues: PortQueues | None) -> dict[ShaperKey, Shaper]:
    """Return a port's shapers one by one; none if it has no queues."""
    if queues is None:
        return {}
    port = Shaper(port_name, None, queues.port_max_bps, queues.port_max_bps, 0)
    each = (Shaper(port_name, q.queue_id, q.min_bps, q.max_bps, q.burst_bits) for q in queues.queues)
    return {shaper.key: shaper for shaper in (port, *each)}


def check_queues(wanted: PortQueues) -> None:
    """Refuse what OVS or HTB would accept and then not do.

    Raises:
        NotExpressible: a rate, a burst or the set of numbers.
    """
    numbers = [queue.queue_id for queue in wanted.queues]
    if numbers != sorted(set(numbers)) or numbers[:1] != [0]:
        raise NotExpressible("set of queues", len(numbers), "queues", "ascending numbers from 0 on")
    _check_rates(wanted.port_max_bps, wanted.queues)


def _check_rates(port_max_bps: int, queues: Iterable[Queue]) -> None:
    total_bps = 0
    for queue in queues:
        for value in (port_max_bps, queue.min_bps, queue.max_bps, queue.burst_bits):
            if type(value) is not int:
                raise NotExpressible(f"{type(value).__name__} in queue {queue.queue_id}", value, "", "an integer")
        if not _QUEUE_BPS_MIN <= queue.min_bps <= queue.max_bps <= port_max_bps:
            need = f"{_QUEUE_BPS_MIN} <= min <= max = {queue.max_bps} <= port = {port_max_bps}"
            raise NotExpressible(f"min of queue {queue.queue_id}", queue.min_bps, "bit/s", need)
        if queue.burst_bits <= 0:
            raise NotExpressible(f"burst of queue {queue.queue_id}", queue.burst_bits, "bit", "at least a packet")
        total_bps += queue.min_bps
    if total_bps > port_max_bps:
        raise NotExpressible("sum of minimum rates", total_bps, "bit/s", f"at most the port's {port_max_bps}")
