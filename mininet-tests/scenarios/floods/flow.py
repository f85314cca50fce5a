"""A connection that stays: each transfer on it is timed until the receiver has confirmed its last byte."""

import argparse
import json
import socket
import struct
import sys
import time

BLOCK = bytes(1 << 16)
LENGTH = struct.Struct(">Q")


def receive(port: int) -> None:
    """Take one connection's transfers: a length, so many bytes, one byte back."""
    with socket.create_server(("", port)) as server:
        print("listening", flush=True)
        connection, _ = server.accept()
        buffer = bytearray(len(BLOCK))
        with connection:
            while head := connection.recv(LENGTH.size, socket.MSG_WAITALL):
                (left,) = LENGTH.unpack(head)
                while left:
                    left -= connection.recv_into(buffer, min(left, len(buffer)))
                connection.send(b".")


def send(address: str, port: int) -> None:
    """Make a transfer of so many bytes for each number on the standard input; say how long each took, in seconds."""
    with socket.create_connection((address, port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print("connected", flush=True)
        for line in sys.stdin:
            left = int(line)
            started_s = time.monotonic()
            connection.sendall(LENGTH.pack(left))
            while left:
                left -= connection.send(memoryview(BLOCK)[:left])
            connection.recv(1)
            print(json.dumps(time.monotonic() - started_s), flush=True)


def main() -> int:
    """Be one of the two ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--to", help="the receiver's address; without it, be the receiver")
    args = parser.parse_args()
    if args.to:
        send(args.to, args.port)
    else:
        receive(args.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
