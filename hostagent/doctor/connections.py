"""The window scales of the connections that are open now: sock_diag(7), once, for ``headway agent check``."""

import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

_SOCK_DIAG, _BY_FAMILY, _INFO = 4, 20, 2  # NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, INET_DIAG_INFO
_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_DONE, _ERROR = 3, 2
_ESTABLISHED = 1 << 1
_HEADER, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
_DIAG_BYTES = 72  # struct inet_diag_msg
_SCALES_AT = 6  # in struct tcp_info: two fields of four bits


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """One that is established: the other end, and the scale of the window we announce to it."""

    peer: IPv4Address | IPv6Address
    port: int
    scale: int


def established() -> tuple[OpenConnection, ...]:
    """Return the connections of this network namespace, those with itself aside.

    Raises:
        OSError: the kernel does not answer.
    """
    found: list[OpenConnection] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
        netlink.settimeout(5)
        for family in (socket.AF_INET, socket.AF_INET6):
            wanted = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ESTABLISHED)
            netlink.send(_HEADER.pack(_HEADER.size + len(wanted), _BY_FAMILY, _REQUEST_DUMP, 0, 0) + wanted)
            found += [parsed_connection(message) for message in _answers(netlink)]
    return tuple(connection for connection in found if not connection.peer.is_loopback)


def _answers(netlink: socket.socket) -> Iterator[bytes]:
    """Yield the messages of one answer.

    Raises:
        OSError: it is an error.
    """
    while True:
        data = netlink.recv(1 << 16)
        while data:
            length, kind, *_ = _HEADER.unpack_from(data)
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise OSError(-struct.unpack_from("=i", data, _HEADER.size)[0], "sock_diag")
            yield data[_HEADER.size : length]
            data = data[(length + 3) & ~3 :]


def parsed_connection(message: bytes) -> OpenConnection:
    """Return the connection in one message: ``struct inet_diag_msg``, then attributes."""
    (port,) = struct.unpack_from(">H", message, 6)
    address = message[24:40] if message[0] == socket.AF_INET6 else message[24:28]
    peer = ip_address(address)
    mapped = peer.ipv4_mapped if isinstance(peer, IPv6Address) else None
    at, scale = _DIAG_BYTES, 0
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if kind == _INFO:
            both = message[at + _ATTRIBUTE.size + _SCALES_AT]
            scale = both >> 4 if sys.byteorder == "little" else both & 0xF  # the one we send follows the one we take
        at += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return OpenConnection(mapped or peer, port, scale)
