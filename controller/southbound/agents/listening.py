"""The socket that agents dial, and how their addresses are shown."""

import socket
from pathlib import Path

from controller.security.listening import answers, listening_at

BACKLOG = 1024  # agents that call at once


def listening(address: str) -> socket.socket:
    """Return a socket that listens at ``host:port`` or ``unix:/path``; what a dead process left there is replaced.

    Raises:
        OSError: the port is taken, or the address is not ours.
    """
    if address.startswith("unix:"):
        path = Path(address.removeprefix("unix:"))
        if path.is_socket() and not answers(path):
            path.unlink()
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            bound.bind(str(path))
            path.chmod(0o600)  # nobody is asked who he is here but by this
            bound.listen(BACKLOG)
        except OSError:
            bound.close()
            raise
        return bound
    host, _, port = address.rpartition(":")
    return listening_at(host.strip("[]"), int(port), BACKLOG)
