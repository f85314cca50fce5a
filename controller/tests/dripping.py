"""An HTTP server that answers by drops: a byte each tenth of a second, for longer than anybody should wait."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

PART_S = 0.7  # what a test lets a part of an answer take
EACH_S = 0.1
DROPS = 60  # twice and more of what the whole answer may take by that


@dataclass(frozen=True)
class Dripped:
    """An answer: what comes at once, what comes by drops, what comes at once after that."""

    first: bytes
    slow: bytes
    last: bytes = b""


def slow_body(body: bytes) -> Dripped:
    """A good answer whose head comes at once; its body, which may begin with spaces, by drops at first."""
    length = DROPS + len(body)
    return Dripped(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length, b" " * DROPS, body)


def slow_head(body: bytes) -> Dripped:
    """A good answer of which a header comes by drops."""
    return Dripped(b"HTTP/1.1 200 OK\r\nSlow: ", b"x" * DROPS, b"\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def at_once(body: bytes) -> Dripped:
    """A good answer."""
    return Dripped(b"", b"", b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


@dataclass
class Dripping:
    """The server.

    Attributes:
        url: where it is.
        answers: by path; of another one it is ``other``, and nobody reads what was asked.
        asked: the first lines of what was asked.
    """

    url: str
    answers: Mapping[str, Dripped]
    other: Dripped
    asked: list[str] = field(default_factory=list)


def _heard(connected: socket.socket) -> str:
    """Read a request, which is short; return its first line."""
    heard = b""
    while b"\r\n\r\n" not in heard:
        more = connected.recv(65536)
        if not more:
            return ""
        heard += more
    head, _, body = heard.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    while len(body) < sum(lengths):
        body += connected.recv(65536)
    return head.split(b"\r\n")[0].decode()


@contextmanager
def dripping(answers: Mapping[str, Dripped], other: Dripped | None = None) -> Iterator[Dripping]:
    """Serve, each connection by a thread of its own; ``other`` is for who speaks no HTTP: said as soon as it speaks."""
    over, threads = threading.Event(), list[threading.Thread]()

    def serve(connected: socket.socket) -> None:
        with connected, suppress(OSError):
            if other is not None:
                connected.recv(65536)
                said = other
            elif line := _heard(connected):
                server.asked.append(line)
                said = answers[line.split()[1]]
            else:
                return
            connected.sendall(said.first)
            for byte in said.slow:
                if over.wait(EACH_S):
                    return
                connected.sendall(bytes([byte]))
            connected.sendall(said.last)
            over.wait(EACH_S)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threads.append(threading.Thread(target=serve, args=(listening.accept()[0],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Dripping(f"http://127.0.0.1:{listening.getsockname()[1]}", answers, other or Dripped(b"", b""))
        accepts = threading.Thread(target=accept)
        accepts.start()
        try:
            yield server
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)
            for one in (accepts, *threads):
                one.join()
