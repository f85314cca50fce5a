"""Sends bytes by one SCTP association over all its paths at once, and is told whether they have come as they were sent.

Linux's SCTP has no concurrent multipath transfer (CMT); libusrsctp, which is SCTP in user space, has. Its packets go in
UDP (RFC 6951): a kernel that has SCTP too would answer each with an ABORT, as those of no association that it knows.
"""

import argparse
import ctypes
import hashlib
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from struct import pack
from typing import Any

LIBRARY = "libusrsctp.so.2"
UDP_PORT = 9899  # IANA's for SCTP in UDP; at both ends
BUFFER_BYTES = 8_000_000  # for what is not confirmed, and what comes before it is due: several rates x round trips
UDP_BUFFER_BYTES = 4_000_000  # the library's own is full after a tenth of a second in which it has no CPU
SETTINGS = {
    "sctp_cmt_on_off": 1,  # a window and a loss recovery for each path, and nothing in common
    "sctp_sendspace": BUFFER_BYTES,
    "sctp_recvspace": BUFFER_BYTES,
    "sctp_max_chunks_on_queue": 1 << 16,  # else 512 packets
}
MESSAGE_BYTES = 1 << 16
SCTP_BINDX_ADD_ADDR, SCTP_REMOTE_UDP_ENCAPS_PORT, SCTP_MAX_CWND = 0x8001, 0x24, 0x32  # usrsctp.h
SOCKADDR_STORAGE_BYTES = 128
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h
LEAVES_WITHIN_S, LOOKS_EVERY_S = 3.0, 0.05
_INT, _UINT, _SIZE, _POINTER, _BYTES = ctypes.c_int, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
_CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {  # of usrsctp.h: what each returns, and takes
    "init": (None, (ctypes.c_uint16, _POINTER, _POINTER)),
    "socket": (_POINTER, (_INT, _INT, _INT, _POINTER, _POINTER, _UINT, _POINTER)),
    "setsockopt": (_INT, (_POINTER, _INT, _INT, _BYTES, _UINT)),
    "bindx": (_INT, (_POINTER, _BYTES, _INT, _INT)),
    "listen": (_INT, (_POINTER, _INT)),
    "accept": (_POINTER, (_POINTER, _POINTER, _POINTER)),
    "connect": (_INT, (_POINTER, _BYTES, _UINT)),
    "sendv": (ctypes.c_ssize_t, (_POINTER, _BYTES, _SIZE, _POINTER, _INT, _POINTER, _UINT, _UINT, _INT)),
    "recvv": (ctypes.c_ssize_t, (_POINTER, _BYTES, _SIZE, *(_POINTER,) * 6)),
    "close": (None, (_POINTER,)),
    "finish": (_INT, ()),
}  # fmt: skip


class CmtSocket:
    """A socket of the library, which a process has one of: bound to several addresses, all of which it uses."""

    def __init__(self, addresses: Sequence[str], port: int) -> None:
        """Begin.

        Raises:
            OSError: the library is not installed, or refuses.
        """
        self._library = ctypes.CDLL(LIBRARY, use_errno=True)
        for name, (returned, taken) in _CALLS.items():
            call = getattr(self._library, f"usrsctp_{name}")
            call.restype, call.argtypes = returned, taken
        self._library.usrsctp_init(UDP_PORT, None, None)
        widen_udp(UDP_PORT)
        for name, value in SETTINGS.items():
            self._done(self._library[f"usrsctp_sysctl_set_{name}"](value))
        family, kind, protocol = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP
        self._bound = self._there(self._library.usrsctp_socket(family, kind, protocol, None, None, 0, None))
        ours = b"".join(sockaddr(address, port) for address in addresses)
        self._done(self._library.usrsctp_bindx(self._bound, ours, len(addresses), SCTP_BINDX_ADD_ADDR))
        self._open = self._bound

    def accept(self) -> None:
        """Wait for one association."""
        self._done(self._library.usrsctp_listen(self._bound, 1))
        self._open = self._there(self._library.usrsctp_accept(self._bound, None, None))

    def connect(self, address: str, port: int, window_bytes: int) -> None:
        """Begin an association in which no path has more on its way than a window."""
        for option, value in (
            (SCTP_REMOTE_UDP_ENCAPS_PORT, udp_encapsulation(UDP_PORT)),
            (SCTP_MAX_CWND, pack("=II", 0, window_bytes)),  # struct sctp_assoc_value: of those to come
        ):
            self._done(self._library.usrsctp_setsockopt(self._open, socket.IPPROTO_SCTP, option, value, len(value)))
        to = sockaddr(address, port)
        self._done(self._library.usrsctp_connect(self._open, to, len(to)))

    def send(self, message: bytes) -> int:
        """Return how many bytes of a message were taken, when there was room for it."""
        return self._done(self._library.usrsctp_sendv(self._open, message, len(message), None, 0, None, 0, 0, 0))

    def receive(self) -> bytes:
        """Return what has come next; nothing if the association has ended."""
        room = ctypes.create_string_buffer(MESSAGE_BYTES)
        own = [ctypes.byref(_UINT(0)) for _ in range(4)]  # what the library says beside it: nothing was asked for
        got = self._library.usrsctp_recvv(self._open, room, MESSAGE_BYTES, None, own[0], None, own[1], own[2], own[3])
        return room.raw[: self._done(got)]

    def close(self) -> None:
        """End the association, and wait a while until the other end has heard of it."""
        for one in {self._open, self._bound}:
            self._library.usrsctp_close(one)
        until_s = time.monotonic() + LEAVES_WITHIN_S
        while self._library.usrsctp_finish() and time.monotonic() < until_s:
            time.sleep(LOOKS_EVERY_S)

    @staticmethod
    def _done(result: int) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    @staticmethod
    def _there(made: int | None) -> int:
        if made is None:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return made


def sockaddr(address: str, port: int) -> bytes:
    """Return a ``struct sockaddr_in``.

    >>> sockaddr("10.20.20.20", 6001)[2:8].hex()
    '17710a141414'
    """
    return pack("=H", socket.AF_INET) + pack("!H", port) + socket.inet_aton(address) + bytes(8)


def udp_encapsulation(port: int) -> bytes:
    """Return a ``struct sctp_udpencaps`` for all addresses of associations to come.

    >>> len(udp_encapsulation(9899)), udp_encapsulation(9899)[132:134].hex()
    (136, '26ab')
    """
    any_address = pack("=H", socket.AF_INET).ljust(SOCKADDR_STORAGE_BYTES, b"\0")
    return any_address + pack("=I", 0) + pack("!H", port) + bytes(2)


def widen_udp(port: int) -> int:
    """Return how many sockets of UDP this process has at a port, with more room in each from now on."""
    found = 0
    for opened in Path("/proc/self/fd").iterdir():
        try:
            one = socket.socket(fileno=os.dup(int(opened.name)))
        except OSError:  # no socket
            continue
        with one:
            if one.type == socket.SOCK_DGRAM and one.family == socket.AF_INET and one.getsockname()[1] == port:
                one.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, UDP_BUFFER_BYTES)
                one.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, UDP_BUFFER_BYTES)
                found += 1
    return found


def serve(addresses: Sequence[str], port: int, size_bytes: int) -> None:
    """Take one association, read so many bytes, and answer with their SHA-256."""
    made, seen, left = CmtSocket(addresses, port), hashlib.sha256(), size_bytes
    made.accept()
    while left > 0 and (got := made.receive()):
        seen.update(got)
        left -= len(got)
    made.send(seen.digest())
    while made.receive():  # until the other end has it, and leaves
        pass
    made.close()


def send(addresses: Sequence[str], to: tuple[str, int], size_bytes: int, window_bytes: int) -> None:
    """Send so many bytes, and wait until the other end says that it has these.

    Raises:
        OSError: the association ended.
        ConnectionError: the other end has not all of it, or something else.
    """
    made, sent, left = CmtSocket(addresses, 0), hashlib.sha256(), size_bytes
    made.connect(*to, window_bytes)
    anything, number = os.urandom(2 * MESSAGE_BYTES), 0
    while left:
        begins = number % MESSAGE_BYTES  # no message is like the one before it
        message = anything[begins : begins + min(left, MESSAGE_BYTES)]
        taken = made.send(message)
        sent.update(message[:taken])
        left, number = left - taken, number + 1
    if made.receive() != sent.digest():
        raise ConnectionError("what has come is not what was sent")
    made.close()


def main() -> None:
    """Send, or receive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("serve", "send"))
    parser.add_argument("addresses", type=lambda text: text.split(","), help="our own, separated by commas")
    parser.add_argument("port", type=int)
    parser.add_argument("size_bytes", type=int)
    parser.add_argument("--to", help="the other end's first address")
    parser.add_argument("--window", type=int, default=0, help="bytes on their way by each path (default: no limit)")
    args = parser.parse_args()
    if args.what == "serve":
        serve(args.addresses, args.port, args.size_bytes)
    else:
        send(args.addresses, (args.to, args.port), args.size_bytes, args.window)


if __name__ == "__main__":
    main()
