"""A stranger at the switches' port who copies all that a switch shows, byte by byte: no Open vSwitch does that."""

import socket
import struct
import threading
from dataclasses import dataclass, field

# OpenFlow 1.3.5, section 7.1.1 (ofp_type), 7.3.1, 7.3.5 (multipart) and 7.4.3 (port status).
_HELLO, _ECHO, _ECHO_REPLY, _FEATURES, _FEATURES_REPLY = 0, 2, 3, 5, 6
_PORT_STATUS, _MULTIPART, _MULTIPART_REPLY, _PORT_DESC = 12, 18, 19, 13
FLOW_MOD, GROUP_MOD, ROLE_REQUEST, METER_MOD = 14, 15, 24, 29
TELLS = frozenset({FLOW_MOD, GROUP_MOD, ROLE_REQUEST, METER_MOD})


@dataclass
class OpenFlowStranger:
    """One connection.

    Attributes:
        at: where the controller listens.
        dpid: under which it calls.
        hardware: the addresses of its ports, by number.
        heard: the types of all messages that it was sent.
        is_ended: whether the controller has hung up.
    """

    at: tuple[str, int]
    dpid: int
    hardware: dict[int, str]
    heard: list[int] = field(default_factory=list)
    is_ended: bool = False

    def __post_init__(self) -> None:
        """Connect, and be a switch from now on."""
        self._socket = socket.create_connection(self.at, timeout=30)
        self._say(_HELLO)
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def loses_ports(self) -> None:
        """Say that all ports have gone: one message that took circuits down once."""
        for number, address in self.hardware.items():
            self._say(_PORT_STATUS, struct.pack("!B7x", 1) + _port(number, address))

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _say(self, kind: int, body: bytes = b"", xid: int = 1) -> None:
        try:
            self._socket.sendall(struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body)
        except OSError:
            self.is_ended = True

    def _answer(self) -> None:
        try:
            while head := self._read(8):
                _, kind, size, xid = struct.unpack("!BBHI", head)
                body = self._read(size - 8)
                self.heard.append(kind)
                if kind == _ECHO:
                    self._say(_ECHO_REPLY, body, xid)
                elif kind == _FEATURES:
                    self._say(_FEATURES_REPLY, struct.pack("!QIBB2xII", self.dpid, 0, 254, 0, 0x4F, 0), xid)
                elif kind == _MULTIPART and struct.unpack("!H", body[:2]) == (_PORT_DESC,):
                    ports = b"".join(_port(number, address) for number, address in self.hardware.items())
                    self._say(_MULTIPART_REPLY, struct.pack("!HH4x", _PORT_DESC, 0) + ports, xid)
        except OSError:
            pass
        self.is_ended = True

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                return b""
            data += piece
        return data


def _port(number: int, address: str) -> bytes:
    """Return an ``ofp_port``, which is up."""
    hardware = bytes.fromhex(address.replace(":", ""))
    return struct.pack("!I4x6s2x16s8I", number, hardware, b"eth", 0, 4, 0, 0, 0, 0, 0, 0)
