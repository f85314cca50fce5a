"""The kernel's own account of TCP connections (sock_diag, tcp_info), read without starting a program."""

import socket
import struct
import sys
from dataclasses import dataclass
from typing import Self

from mininet_tests.site.netlink import Netlink, attributes

NETLINK_SOCK_DIAG = 4
_BY_FAMILY, _INFO = 20, 2  # linux/sock_diag.h SOCK_DIAG_BY_FAMILY, inet_diag.h INET_DIAG_INFO
_DIAG_MSG_BYTES, _TCP_INFO_BYTES = 72, 160  # struct inet_diag_msg; as much of struct tcp_info as is read
# RFC 9293 states in which everything sent, the end included, has been confirmed: FIN-WAIT-2, TIME-WAIT, CLOSE.
ALL_CONFIRMED_STATES = {5, 6, 7}
_ANY_BUT_LISTEN = 0xFFF & ~(1 << 10)
_REQUEST = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ANY_BUT_LISTEN) + bytes(48)


@dataclass(frozen=True, slots=True)
class TcpConnection:
    """One TCP connection, seen from its own host.

    Attributes:
        local_port: its port here.
        remote_port: its port there.
        state: as numbered by the kernel (net/tcp_states.h).
        acked_bytes: payload the other end has confirmed.
        received_bytes: payload received in order.
        cwnd_segments: congestion window.
        rtt_us: smoothed round-trip time.
        sent_segments: data segments sent, those sent again included.
        retransmitted_segments: of these, sent again.
    """

    local_port: int
    remote_port: int
    state: int
    acked_bytes: int = 0
    received_bytes: int = 0
    cwnd_segments: int = 0
    rtt_us: int = 0
    sent_segments: int = 0
    retransmitted_segments: int = 0

    @classmethod
    def parsed(cls, message: bytes) -> Self:
        """Return the connection in one reply: ``struct inet_diag_msg``, then attributes with ``struct tcp_info``."""
        local_port, remote_port = struct.unpack_from(">HH", message, 4)
        info = attributes(message[_DIAG_MSG_BYTES:]).get(_INFO, b"")
        if len(info) < _TCP_INFO_BYTES:
            return cls(local_port, remote_port, state=message[1])
        acked_bytes, received_bytes = struct.unpack_from("=QQ", info, 120)

        def number(at: int) -> int:
            return int.from_bytes(info[at : at + 4], sys.byteorder)

        return cls(
            local_port,
            remote_port,
            state=message[1],
            acked_bytes=acked_bytes,
            received_bytes=received_bytes,
            cwnd_segments=number(80),
            rtt_us=number(68),
            sent_segments=number(156),
            retransmitted_segments=number(100),
        )


class Connections:
    """Reads the connections of a network namespace; made inside it."""

    def __init__(self) -> None:
        self._netlink = Netlink(NETLINK_SOCK_DIAG)

    def read(self) -> list[TcpConnection]:
        """Return every connection, listeners aside."""
        return [TcpConnection.parsed(answer) for answer in self._netlink.dump(_BY_FAMILY, _REQUEST)]
