"""Sends bytes by one SCTP association between hosts with several addresses each, and confirms that all have arrived."""

import argparse
import socket
from collections.abc import Sequence
from struct import pack

SCTP_SOCKOPT_BINDX_ADD = 100  # linux/sctp.h
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h
BUFFER_BYTES = 64_000_000  # the window that is offered is half of it: several rates x round trips
MESSAGE_BYTES = 1 << 16


def bound(addresses: Sequence[str], port: int) -> socket.socket:
    """Return a socket that is bound to all of these addresses.

    Raises:
        OSError: the kernel has no SCTP, or refuses an address.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
    made.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
    made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # an association that is ending has the port yet
    made.bind((addresses[0], port))
    bound_port = made.getsockname()[1]
    for address in addresses[1:]:
        sockaddr = pack("=H", socket.AF_INET) + pack("!H", bound_port) + socket.inet_aton(address) + bytes(8)
        made.setsockopt(socket.IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, sockaddr)
    return made


def serve(addresses: Sequence[str], port: int, size_bytes: int) -> None:
    """Take one association, read so many bytes, and say that they have come."""
    with bound(addresses, port) as listening:
        listening.listen(1)
        taken, _ = listening.accept()
        with taken:
            left, block = size_bytes, bytearray(MESSAGE_BYTES)
            while left and (got := taken.recv_into(block)):
                left -= got
            taken.send(b".")


def send(addresses: Sequence[str], to: tuple[str, int], size_bytes: int) -> None:
    """Send so many bytes, and wait until they have been read.

    Raises:
        OSError: the association ended.
        ConnectionError: the other end did not say that it has all of it.
    """
    with bound(addresses, 0) as made:
        made.connect(to)
        left, block = size_bytes, memoryview(bytes(MESSAGE_BYTES))
        while left:
            left -= made.send(block[: min(left, MESSAGE_BYTES)])
        if not made.recv(1):
            raise ConnectionError("not all of it was read")


def main() -> None:
    """Send, or receive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("serve", "send"))
    parser.add_argument("addresses", type=lambda text: text.split(","), help="our own, separated by commas")
    parser.add_argument("port", type=int)
    parser.add_argument("size_bytes", type=int)
    parser.add_argument("--to", help="the other end's first address")
    args = parser.parse_args()
    if args.what == "serve":
        serve(args.addresses, args.port, args.size_bytes)
    else:
        send(args.addresses, (args.to, args.port), args.size_bytes)


if __name__ == "__main__":
    main()
