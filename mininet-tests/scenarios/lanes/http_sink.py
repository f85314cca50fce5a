"""A web server that takes what is put to it and keeps none of it: the far end of an upload."""

import argparse
import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

AT_ONCE_BYTES = 1 << 18


class _Sink(BaseHTTPRequestHandler):
    """Reads the body of a PUT, and says that it has it."""

    protocol_version = "HTTP/1.1"  # so that a connection carries one file after the other

    def do_PUT(self) -> None:
        """Take a file."""
        left, block = int(self.headers["Content-Length"]), memoryview(bytearray(AT_ONCE_BYTES))
        while left:
            got = self.rfile.readinto1(block[: min(left, AT_ONCE_BYTES)])
            if not got:
                return
            left -= got
        self.send_response(HTTPStatus.CREATED)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (so named there)
        """Say nothing of each file."""


class _Server(ThreadingHTTPServer):
    """Takes connections that are made at one instant."""

    request_queue_size = 128


def main() -> None:
    """Serve until it is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    args = parser.parse_args()
    if ":" in args.address:
        _Server.address_family = socket.AF_INET6
    _Server((args.address, args.port), _Sink).serve_forever()


if __name__ == "__main__":
    main()
