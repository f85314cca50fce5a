"""Questions to the kernel by netlink(7), whose answer is a list, and the attributes of its messages."""

import socket
import struct
from collections.abc import Iterator

_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_DONE, _ERROR = 3, 2
_HEADER, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
_WITHIN_S = 5


def connected(protocol: int) -> socket.socket:
    """Return a socket for questions to a part of the kernel, ``NETLINK_ROUTE`` for one.

    Raises:
        OSError: this kernel has no such part.
    """
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    netlink.settimeout(_WITHIN_S)
    return netlink


def dumped(netlink: socket.socket, kind: int, wanted: bytes) -> Iterator[bytes]:
    """Yield the messages of the answer to a question for all there is, without their headers.

    Args:
        netlink: from :func:`connected`.
        kind: ``nlmsg_type`` of the question.
        wanted: the question behind its header.

    Raises:
        OSError: the kernel does not answer, or by an error.
    """
    netlink.send(_HEADER.pack(_HEADER.size + len(wanted), kind, _REQUEST_DUMP, 0, 0) + wanted)
    while True:
        data = netlink.recv(1 << 16)
        while data:
            length, kind, *_ = _HEADER.unpack_from(data)
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise OSError(-struct.unpack_from("=i", data, _HEADER.size)[0], "netlink")
            yield data[_HEADER.size : length]
            data = data[(length + 3) & ~3 :]


def attribute(message: bytes, after_bytes: int, wanted: int) -> bytes:
    """Return an attribute of a message, behind the structure that it begins with; empty if it has none such."""
    at = after_bytes
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if kind == wanted:
            return message[at + _ATTRIBUTE.size : at + length]
        at += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return b""
