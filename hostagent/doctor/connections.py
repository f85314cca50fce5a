"""The connections that are open now, by sock_diag(7): their window scales, what keeps them back, what they receive."""

import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from hostagent.doctor.netlink import attribute, connected, dumped

_SOCK_DIAG, _BY_FAMILY = 4, 20  # NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY
_INFO, _TOS, _TCLASS, _SKMEMINFO = 2, 5, 6, 7  # INET_DIAG_INFO, INET_DIAG_TOS and so on
_EXTENSIONS = 1 << (_INFO - 1) | 1 << (_TOS - 1) | 1 << (_TCLASS - 1) | 1 << (_SKMEMINFO - 1)
_ESTABLISHED = 1 << 1
_DIAG_BYTES = 72  # struct inet_diag_msg
_SCALES_AT = 6  # in struct tcp_info: two fields of four bits
_LOCAL_AT, _PEER_AT = 8, 24  # in struct inet_diag_msg: id.idiag_src, id.idiag_dst, 16 bytes each
_COOKIE_AT, _UNREAD_AT = 44, 56  # id.idiag_cookie, idiag_rqueue
_RECEIVED_AT, _WINDOW_AT = 128, 232  # tcpi_bytes_received since Linux 4.1, tcpi_rcv_wnd since Linux 6.2
_TIMES_AT, _TIMES = 168, struct.Struct("=3Q")  # tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited, since Linux 4.9
_RECEIVING = _ESTABLISHED | 1 << 4 | 1 << 5 | 1 << 8  # FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT: what has come may be unread
_SENDING = _ESTABLISHED | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11  # FIN_WAIT1, CLOSE_WAIT, LAST_ACK, CLOSING


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """One that is established: the other end, and the scale of the window we announce to it."""

    peer: IPv4Address | IPv6Address
    port: int
    scale: int


@dataclass(frozen=True, slots=True)
class SendingConnection:
    """One that may still send.

    Attributes:
        cookie: the kernel's name for it, never given again.
        peer: the other end's address.
        port: the other end's port.
        local: our address.
        local_port: our port.
        dscp: the code point that it marks its packets with: the application's own, or the plan's.
        busy_us: how long it had something to send, since it was opened.
        receiver_us: of that, how long the peer's window kept it back.
        buffer_us: of that, how long its own send buffer did.
    """

    cookie: int
    peer: IPv4Address | IPv6Address
    port: int
    local: IPv4Address | IPv6Address
    local_port: int
    dscp: int
    busy_us: int
    receiver_us: int
    buffer_us: int


@dataclass(frozen=True, slots=True)
class ReceivingConnection:
    """One that may have something to read.

    Attributes:
        cookie: the kernel's name for it, never given again.
        peer: the other end's address.
        local_port: ours.
        received_bytes: what has come in order, since it was opened.
        unread_bytes: of that, what waits to be read.
        room_bytes: how much more it can take now.
    """

    cookie: int
    peer: IPv4Address | IPv6Address
    local_port: int
    received_bytes: int
    unread_bytes: int
    room_bytes: int


def receiving() -> tuple[ReceivingConnection, ...]:
    """Return the connections of this network namespace that may have something to read.

    Raises:
        OSError: the kernel does not answer.
    """
    return tuple(parsed_receiving(message) for message in _dumped(_RECEIVING))


def sending() -> tuple[SendingConnection, ...]:
    """Return the connections of this network namespace that may still send.

    Raises:
        OSError: the kernel does not answer.
    """
    return tuple(parsed_sending(message) for message in _dumped(_SENDING))


def established() -> tuple[OpenConnection, ...]:
    """Return the connections of this network namespace, those with itself aside.

    Raises:
        OSError: the kernel does not answer.
    """
    found = (parsed_connection(message) for message in _dumped(_ESTABLISHED))
    return tuple(connection for connection in found if not connection.peer.is_loopback)


def _dumped(states: int) -> Iterator[bytes]:
    """Yield the kernel's message on each TCP socket in one of some states.

    Raises:
        OSError: the kernel does not answer.
    """
    with connected(_SOCK_DIAG) as netlink:
        for family in (socket.AF_INET, socket.AF_INET6):
            wanted = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, _EXTENSIONS, 0, states)
            yield from dumped(netlink, _BY_FAMILY, wanted)


def parsed_connection(message: bytes) -> OpenConnection:
    """Return the connection in one message: ``struct inet_diag_msg``, then attributes."""
    (port,) = struct.unpack_from(">H", message, 6)
    both = (_info_of(message) or bytes(_SCALES_AT + 1))[_SCALES_AT]
    scale = both >> 4 if sys.byteorder == "little" else both & 0xF  # the one we send follows the one we take
    return OpenConnection(_peer_of(message), port, scale)


def parsed_sending(message: bytes) -> SendingConnection:
    """Return the connection in one message, with its times; they are 0 where the kernel does not tell them."""
    local_port, port = struct.unpack_from(">HH", message, 4)
    (cookie,) = struct.unpack_from("=Q", message, _COOKIE_AT)
    times = _info_of(message)[_TIMES_AT : _TIMES_AT + _TIMES.size].ljust(_TIMES.size, b"\0")
    ends = _peer_of(message), port, _address_in(message, _LOCAL_AT), local_port
    return SendingConnection(cookie, *ends, _dscp_of(message), *_TIMES.unpack(times))


def parsed_receiving(message: bytes) -> ReceivingConnection:
    """Return the connection in one message, with what it has received.

    Its room is the window that it offers; before Linux 6.2, which does not tell that, half of what is left of its
    memory: the other half is for what packets take beside their payload (tcp_adv_win_scale).
    """
    (local_port,) = struct.unpack_from(">H", message, 4)
    (cookie,) = struct.unpack_from("=Q", message, _COOKIE_AT)
    (unread_bytes,) = struct.unpack_from("=I", message, _UNREAD_AT)
    info, memory = _info_of(message), attribute(message, _DIAG_BYTES, _SKMEMINFO)
    received_bytes = struct.unpack_from("=Q", info, _RECEIVED_AT)[0] if len(info) >= _RECEIVED_AT + 8 else 0
    if len(info) >= _WINDOW_AT + 4:
        (room_bytes,) = struct.unpack_from("=I", info, _WINDOW_AT)
    else:
        used, limit = struct.unpack_from("=2I", memory.ljust(8, b"\0"))
        room_bytes = max(0, limit - used) // 2
    return ReceivingConnection(cookie, _peer_of(message), local_port, received_bytes, unread_bytes, room_bytes)


def _peer_of(message: bytes) -> IPv4Address | IPv6Address:
    return _address_in(message, _PEER_AT)


def _address_in(message: bytes, at: int) -> IPv4Address | IPv6Address:
    """Return an address of a message; an IPv4 one also where an IPv6 socket has it."""
    address = ip_address(message[at : at + (16 if message[0] == socket.AF_INET6 else 4)])
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _dscp_of(message: bytes) -> int:
    """Return the code point of a message's socket, as the kernel part reads it: IPv4's, if that is its peer's."""
    kinds = (_TCLASS,) if isinstance(_peer_of(message), IPv6Address) else (_TOS, _TCLASS)
    octets = (attribute(message, _DIAG_BYTES, kind) or b"\0" for kind in kinds)
    return next((octet[0] >> 2 for octet in octets if octet[0] >> 2), 0)


def _info_of(message: bytes) -> bytes:
    """Return the ``struct tcp_info`` of a message; empty if there is none."""
    return attribute(message, _DIAG_BYTES, _INFO)
