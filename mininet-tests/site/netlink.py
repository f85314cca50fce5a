"""The little of netlink (RFC 3549) that the instruments need, without starting a program for each reading."""

import socket
import struct
from collections.abc import Iterator

ERROR, DONE = 2, 3  # linux/netlink.h NLMSG_ERROR, NLMSG_DONE
_REQUEST, _ACK, _WHOLE_DUMP, _CREATE = 0x1, 0x4, 0x300, 0x400
_HEADER = struct.Struct("=IHHII")
_RECEIVE_BYTES = 1 << 18


class NetlinkRefused(RuntimeError):
    """The kernel refused a request; ``errno`` says why."""

    def __init__(self, errno: int) -> None:
        self.errno = errno
        super().__init__(f"the kernel refused a netlink request: error {errno}")


class Netlink:
    """A netlink socket of one family, in the network namespace that it was made in."""

    def __init__(self, family: int) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
        self._socket.bind((0, 0))

    def dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        """Yield the body of every message that answers a dump request.

        Raises:
            Refused: the kernel refused it.
        """
        self._send(kind, _REQUEST | _WHOLE_DUMP, body)
        while True:
            for answer_kind, data in _messages(self._socket.recv(_RECEIVE_BYTES)):
                if answer_kind == DONE:
                    return
                if answer_kind == ERROR:
                    raise NetlinkRefused(-struct.unpack_from("=i", data)[0])
                yield data

    def change(self, kind: int, body: bytes, *, create: bool = False) -> None:
        """Make a change, or with ``create`` something new; return once the kernel has acknowledged it.

        Raises:
            Refused: the kernel refused it.
        """
        self._send(kind, _REQUEST | _ACK | (_CREATE if create else 0), body)
        _, data = next(_messages(self._socket.recv(_RECEIVE_BYTES)))
        (errno,) = struct.unpack_from("=i", data)
        if errno:
            raise NetlinkRefused(-errno)

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, at)
        yield kind, data[at + _HEADER.size : at + length]
        at += (length + 3) & ~3


def attributes(data: bytes) -> dict[int, bytes]:
    """Return netlink attributes by type, in their order."""
    found = {}
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def attribute(kind: int, data: bytes) -> bytes:
    """Return one attribute as it goes to the kernel."""
    return struct.pack("=HH", len(data) + 4, kind) + data + bytes(-len(data) % 4)
