"""The queues of a switch port as the kernel has them: HTB classes, read and taken away by netlink.

Open vSwitch writes them from its database and does not look at them again. They can be seen only if the port is on the
controller's machine, in its network namespace.
"""

import errno
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from controller.southbound.ovsdb.queues import Shaper, ShaperKey

TICK_NS = 64  # of a class's credit: linux/pkt_sched.h PSCHED_SHIFT
OWN_MINOR = 0xFFFE  # Open vSwitch's class for the port itself; queue N is the class N + 1 (netdev-linux.c)
MAJOR = 1  # of Open vSwitch's own: its root qdisc has the handle 1:0 (netdev-linux.c, htb_setup_qdisc__)
LARGEST_PACKET_BITS = 8 * 65_536  # a smaller credit is raised to a packet of the port's size
DEFAULT_QDISCS = frozenset({"", "noqueue", "pfifo_fast", "fq_codel", "fq", "mq"})  # what a port has on its own
_LOCAL = ("unix:", "tcp:127.0.0.1:", "tcp:[::1]:", "ssl:127.0.0.1:", "ssl:[::1]:")


@dataclass(frozen=True, slots=True)
class PortClasses:
    """What the kernel has of a port.

    Attributes:
        qdisc: the kind of its root qdisc; with the handle, if it is an HTB that is not Open vSwitch's.
        shapers: its HTB classes.
    """

    qdisc: str
    shapers: dict[ShaperKey, Shaper] = field(default_factory=dict)

    @property
    def is_bare(self) -> bool:
        """Whether the port has lost its shaping whole, and nobody has put something else there."""
        return self.qdisc in DEFAULT_QDISCS

    @property
    def is_foreign(self) -> bool:
        """Whether somebody has put something else there."""
        return self.qdisc != "htb" and not self.is_bare


def is_on_this_machine(remote: str) -> bool:
    """Return whether a database, and with it its switch, is on this machine.

    >>> is_on_this_machine("unix:/run/openvswitch/db.sock"), is_on_this_machine("tcp:192.0.2.1:6640")
    (True, False)
    """
    return remote.startswith(_LOCAL)


def same(wanted: Shaper, found: Shaper) -> bool:
    """Return whether the kernel's class does what the database's queue says.

    The kernel counts whole bytes a second. It keeps a credit as the time it takes at the rate, in ticks of 64 ns, and
    never less than one packet.
    """
    if (wanted.min_bps // 8, wanted.max_bps // 8) != (found.min_bps // 8, found.max_bps // 8):
        return False
    ticks = wanted.burst_bits * 1_000_000_000 // (wanted.min_bps * TICK_NS)
    if wanted.queue_id is None or ticks >= 2**32:  # more than the kernel's field holds: it is what it is
        return True
    tick_bits = 2 * wanted.min_bps * TICK_NS // 1_000_000_000 + 8
    least = wanted.burst_bits * 999 // 1000 - tick_bits
    return least <= found.burst_bits <= max(wanted.burst_bits, LARGEST_PACKET_BITS) + tick_bits


def classes(port_names: Iterable[str]) -> dict[str, PortClasses]:
    """Return what the kernel has of each port that can be seen from here.

    Raises:
        OSError: the kernel did not answer.
    """
    present = {name: index for name in port_names if (index := _index(name))}
    if not present:
        return {}
    from pyroute2 import IPRoute, NetlinkError

    try:
        with IPRoute() as netlink:
            return {name: _port_classes(netlink, name, index) for name, index in present.items()}
    except NetlinkError as error:
        raise OSError(error.code, f"the kernel does not show its queues: {error}") from error


def delete(shaper: Shaper) -> str:
    """Take a class away that Open vSwitch did not make; return why that cannot be, empty if it is done."""
    from pyroute2 import IPRoute, NetlinkError

    assert shaper.queue_id is not None  # noqa: S101 (the port's own class is always wanted)
    handle = MAJOR << 16 | (shaper.queue_id + 1 & 0xFFFF)
    try:
        with IPRoute() as netlink:
            netlink.tc("del-class", index=_index(shaper.port_name), handle=handle)
    except NetlinkError as error:
        return "it is in use" if error.code == errno.EBUSY else str(error)
    return ""


def _port_classes(netlink: Any, name: str, index: int) -> PortClasses:
    roots = [q for q in netlink.get_qdiscs(index=index) if q["parent"] == 0xFFFF_FFFF and q["index"] == index]
    qdisc = str(roots[0].get_attr("TCA_KIND")) if roots else ""
    if qdisc != "htb":
        return PortClasses(qdisc)
    if (major := roots[0]["handle"] >> 16) != MAJOR:
        return PortClasses(f"{qdisc} {major:x}:")
    shown = (c for c in netlink.get_classes(index=index) if c["index"] == index and c.get_attr("TCA_KIND") == "htb")
    found = [_shaper(name, c["handle"], c.get_attr("TCA_OPTIONS")) for c in shown]
    return PortClasses(qdisc, {shaper.key: shaper for shaper in found})


def _shaper(port_name: str, handle: int, options: Any) -> Shaper:
    """Return one of the kernel's classes as a value."""
    parameters = options.get_attr("TCA_HTB_PARMS")
    rate = options.get_attr("TCA_HTB_RATE64") or parameters["rate"]  # bytes a second
    ceil = options.get_attr("TCA_HTB_CEIL64") or parameters["ceil"]
    burst_bits = 8 * rate * parameters["buffer"] * TICK_NS // 1_000_000_000
    minor = handle & 0xFFFF
    if minor == OWN_MINOR:
        return Shaper(port_name, None, rate * 8, ceil * 8, 0)
    return Shaper(port_name, minor - 1, rate * 8, ceil * 8, burst_bits)


def _index(port_name: str) -> int:
    """Return the number of an interface here; 0 if there is none."""
    try:
        return socket.if_nametoindex(port_name)
    except OSError:
        return 0
