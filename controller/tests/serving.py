"""An API on a port."""

import contextlib
import socket
import threading

import uvicorn


@contextlib.contextmanager
def served(app):
    """Serve an API on a free port; yield its address."""
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    server.should_exit = True
    thread.join()
