"""The kernel's own account of TCP connections (sock_diag, tcp_info), read without starting a program."""

import socket
import struct
from dataclasses import dataclass
from typing import Self

NETLINK_SOCK_DIAG = 4
_BY_FAMILY, _INFO = 20, 2  # linux/sock_diag.h SOCK_DIAG_BY_FAMILY, inet_diag.h INET_DIAG_INFO
_REQUEST_DUMP = 0x301
_DONE, _ERROR = 3, 2
# RFC 9293 states in which everything sent, the end included, has been confirmed: FIN-WAIT-2, TIME-WAIT, CLOSE.
ALL_CONFIRMED_STATES = {5, 6, 7}
_ANY_BUT_LISTEN = 0xFFF & ~(1 << 10)


@dataclass(frozen=True, slots=True)
class Connection:
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
        state = message[1]
        at = 72
        while at + 4 <= len(message):
            length, kind = struct.unpack_from("=HH", message, at)
            if kind == _INFO and length >= 4 + 160:
                info = message[at + 4 : at + length]
                rtt_us, cwnd = struct.unpack_from("=I", info, 68)[0], struct.unpack_from("=I", info, 80)[0]
                retransmitted = struct.unpack_from("=I", info, 100)[0]
                acked, received = struct.unpack_from("=QQ", info, 120)
                sent = struct.unpack_from("=I", info, 156)[0]
                return cls(local_port, remote_port, state, acked, received, cwnd, rtt_us, sent, retransmitted)
            at += (length + 3) & ~3
        return cls(local_port, remote_port, state)


class Connections:
    """Reads the connections of a network namespace; made inside it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
        self._socket.bind((0, 0))
        body = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ANY_BUT_LISTEN) + bytes(
            48
        )
        self._request = struct.pack("=IHHII", 16 + len(body), _BY_FAMILY, _REQUEST_DUMP, 1, 0) + body

    def read(self) -> list[Connection]:
        """Return every connection, listeners aside."""
        self._socket.send(self._request)
        found: list[Connection] = []
        while True:
            data = self._socket.recv(1 << 18)
            at = 0
            while at < len(data):
                length, kind, _, _, _ = struct.unpack_from("=IHHII", data, at)
                if kind in (_DONE, _ERROR):
                    return found
                found.append(Connection.parsed(data[at + 16 : at + length]))
                at += (length + 3) & ~3
