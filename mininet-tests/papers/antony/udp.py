"""Numbered packets, sent as fast as an interface goes, into a slower port: which of them arrive, and when.

UDP, as in Antony 2003: nothing is sent again and nothing slows down, so what is missing was lost at the port, and the
numbers say where.
"""

import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

from mininet_tests.lab.saturation import IdleMeter
from mininet_tests.papers.antony.line import SEND_BUFFER_BYTES, SO_RCVBUFFORCE, SO_SNDBUFFORCE, Nics
from mininet_tests.site.long_line import LineNode
from mininet_tests.site.tcp_flows import until

SO_TIMESTAMPNS = 35  # asm-generic/socket.h
ETH_P_IP = 0x0800  # linux/if_ether.h
RECEIVE_BUFFER_BYTES = 1 << 28
FRAME_HEADERS_BYTES = 14 + 20 + 8  # Ethernet, IPv4, UDP
MOST_OF_A_PACKET_BYTES = 2048
NUMBER = struct.Struct(">I")
NUMBER_AT = {socket.AF_INET: 0, socket.AF_PACKET: FRAME_HEADERS_BYTES}
NIC_BURST_S = PORT_BURST_S = 0.00001  # packets of the same size, one by one: neither is late
IDLE_EVERY_S = 0.1
LASTS_S = 1.0
STAMPS_AFTER_S = 0.1  # the kernel turns them on in a while (net_enable_timestamp); until then it stamps what is read


def numbered(
    nics: Nics, packets: int, frame_bytes: int, rates_bps: tuple[int, int], buffer_bytes: int
) -> dict[str, Any]:
    """Return when each packet came to the port and to the receiver, nanoseconds from the first at the port.

    Args:
        nics: the interfaces; the first one sends.
        packets: how many.
        frame_bytes: of each, which is what interface and port count.
        rates_bps: of the interface and of the port, frames.
        buffer_bytes: of the port.
    """
    line, nic = nics.line, nics.nics[0]
    nics.set_rate(1, rates_bps[0], NIC_BURST_S)
    nics.set_window(1, None)
    line.narrow(rates_bps[1], buffer_bytes, PORT_BURST_S)
    port = listening(line.near, f"lan{nic.number}")
    receiver = line.receiver.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    receiver.bind((line.receiver.address, nic.port))
    _stamp(receiver)
    sender = nics.bound(nic, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER_BYTES)
    sender.connect((line.receiver.address, nic.port))
    rest = bytes(frame_bytes - FRAME_HEADERS_BYTES - NUMBER.size)
    until(time.monotonic() + STAMPS_AFTER_S)
    dropped = line.dropped()
    with IdleMeter(IDLE_EVERY_S) as meter:
        for number in range(packets):
            sender.send(NUMBER.pack(number) + rest)
        until(time.monotonic() + LASTS_S)
    at_port, at_receiver = _arrivals(port), _arrivals(receiver)
    for end in (sender, receiver, port):
        end.close()
    first_ns = min(at_port.values())
    return {
        "at_port_ns": [at_port[number] - first_ns for number in range(packets)],
        "at_receiver_ns": [at_receiver[n] - first_ns if n in at_receiver else None for n in range(packets)],
        "dropped": line.dropped() - dropped,
        "idle_share": min(meter.shares),
    }


def listening(place: LineNode, device: str) -> socket.socket:
    """Return a socket that has every IPv4 frame which comes to an interface from now on, for :func:`stamped`."""
    end = place.inside(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP)))
    end.bind((device, ETH_P_IP))
    _stamp(end)
    return end


def stamped(end: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Yield when each packet in a socket's queue came, Unix nanoseconds, and its beginning."""
    end.setblocking(False)
    while True:
        try:
            data, ancillary, _, _ = end.recvmsg(MOST_OF_A_PACKET_BYTES, 256)
        except BlockingIOError:
            return
        seconds, nanoseconds = struct.unpack("=qq", ancillary[0][2])
        yield seconds * 10**9 + nanoseconds, data


def _stamp(end: socket.socket) -> None:
    end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def _arrivals(end: socket.socket) -> dict[int, int]:
    """Return when each packet in a socket's queue came, by its number, Unix nanoseconds."""
    return {NUMBER.unpack_from(data, NUMBER_AT[end.family])[0]: at_ns for at_ns, data in stamped(end)}
