"""What one table tells the next of a packet: the 64 bits of OpenFlow's metadata. Pure.

They are the switch's own: nothing of them is in the packet, so Open vSwitch's cached flows have no bit of them in their
masks, and a rule that matches them alone may come and go without touching who is under way (decision 19). Read in
hexadecimal, from the left: the target's number, the source's (5 digits each), the port by which it leaves (4), whether
it has come by a circuit, whether it is IPv6's neighbour discovery and whether it is from a site that is not ours, its
class.
"""

from functools import lru_cache

from controller.southbound.openflow.circuit_ports import QUEUE_ID
from controller.southbound.openflow.state import Bits
from topology.network import Network
from topology.protocol import FlowClass

_CLASS, _CIRCUIT, _SEEKS, _FAR, _PORT = (0, 0xF), (4, 0x1), (5, 0x1), (6, 0x1), (8, 0xFFFF)
_SOURCE, _TARGET = (24, 0xF_FFFF), (44, 0xF_FFFF)
HERE, CIRCUIT = 0, 1  # where a packet has come from: to be policed here, or from another edge, which has done so


@lru_cache(maxsize=1024)
def host_numbers(network: Network) -> dict[str, int]:
    """Return the number of each host, the same whatever is planned; 0 is nobody known."""
    return {host.name: number for number, host in enumerate(network.hosts, start=1)}


def of_class(flow_class: FlowClass) -> Bits:
    """Return the bits that say a class: the number of its queue."""
    return _bits(_CLASS, QUEUE_ID[flow_class])


def came_by(where: int) -> Bits:
    """Return the bit that says whether a packet has come by a circuit."""
    return _bits(_CIRCUIT, where)


def seeks() -> Bits:
    """Return the bit that says that a packet asks for a neighbour's hardware address, or answers (RFC 4861)."""
    return _bits(_SEEKS, 1)


def from_far() -> Bits:
    """Return the bit that says that a packet has come by a circuit from a site that is not ours: nobody policed it."""
    return _bits(_FAR, 1)


def leaves_by(port_no: int) -> Bits:
    """Return the bits that say by which port a packet leaves."""
    return _bits(_PORT, port_no)


def source(number: int) -> Bits:
    """Return the bits that say which host a packet is from."""
    return _bits(_SOURCE, number)


def target(number: int) -> Bits:
    """Return the bits that say which host a packet is for."""
    return _bits(_TARGET, number)


def joined(*parts: Bits) -> Bits:
    """Return several parts as one value and mask.

    >>> "{:#018x}/{:#018x}".format(*joined(target(6), source(1), leaves_by(9), of_class(FlowClass.URGENT)))
    '0x0000600001000902/0xffffffffffffff0f'
    """
    value = mask = 0
    for part, part_mask in parts:
        value, mask = value | part, mask | part_mask
    return value, mask


def _bits(place: tuple[int, int], value: int) -> Bits:
    shift, mask = place
    if value & ~mask:
        raise ValueError(f"{value} does not fit into a mask of {mask:#x}")
    return value << shift, mask << shift
