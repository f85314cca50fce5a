"""A real HTTP server that webhooks are told to, and that is not always well."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """A server of somebody else's, and what it was told."""

    url: str = ""
    answers: list[int] = field(default_factory=list)  # one by one; 200 when there are none left
    hears: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    hangs: threading.Event = field(default_factory=threading.Event)
    is_processing: bool = False  # it says so again and again, and does not answer
    is_endless: bool = False  # its answers go on until it ends


@contextmanager
def receiving(*answers: int, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Serve; ``answers`` are the first ones, 0 for none at all; ``tls`` is how, None for without."""
    one = Receiver(answers=list(answers))

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            one.hears.append(({name.lower(): value for name, value in self.headers.items()}, body))
            with suppress(ConnectionError):
                while one.is_processing and not one.hangs.wait(0.05):
                    self.wfile.write(b"HTTP/1.1 102 Processing\r\n\r\n")
            status = one.answers.pop(0) if one.answers else 200
            if not status:
                one.hangs.wait(30)
                return
            self.send_response(status)
            self.send_header("location", "http://192.0.2.1/")
            self.end_headers()
            with suppress(ConnectionError):
                while one.is_endless and not one.hangs.wait(0.02):
                    self.wfile.write(b": still here\n\n")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        one.url = f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}/hook"
        yield one
        one.hangs.set()
        server.shutdown()
