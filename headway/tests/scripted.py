"""A server that answers as it is told, one after the other."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROBLEM = {"type": "/problems/store-failed", "title": "store failed", "status": 503, "detail": "the disk is full"}


class Scripted(BaseHTTPRequestHandler):
    """Answers with what its server's list has next; remembers what it was asked."""

    def do_GET(self):
        self.server.asked.append((self.command, self.path, dict(self.headers)))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.ended.wait(self.server.after_s)
        answer = self.server.answers.pop(0)
        if answer is None:
            return  # the connection breaks
        status, headers, body = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    do_POST = do_PATCH = do_GET  # noqa: N815 - their base's words

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def scripted(*answers, tls=None, after_s=0.0):
    """A server that answers so, one after the other, each after so long."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    server.answers, server.asked = list(answers), []
    server.after_s, server.ended = after_s, threading.Event()
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    server.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
