"""The agent's status on a socket of its own: whoever connects gets it as JSON, and nothing can be changed there."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from hostagent.agent import status
from hostagent.agent.status import AgentStatus

MODE = 0o660  # the agent's user and group
PATIENCE_S = 1.0


def socket_path(run_dir: Path, namespace_id: str) -> Path:
    """Return where the agent of a network namespace answers."""
    return run_dir / f"status-{namespace_id}.sock"


class StatusSocket:
    """The answering end."""

    def __init__(self, path: Path, current: Callable[[], AgentStatus]) -> None:
        """Listen; a socket that a killed agent has left is replaced. The caller holds the namespace's lock.

        Raises:
            OSError: the socket cannot be made there.
        """
        self._path = path
        self._current = current
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        path.chmod(MODE)
        self._listener.listen()
        self.thread = threading.Thread(target=self._serve, name="status", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        """Answer one after the other; one that does not read is given up."""
        while True:
            try:
                asking, _ = self._listener.accept()
            except OSError:  # closed
                return
            with asking, contextlib.suppress(OSError):
                asking.settimeout(PATIENCE_S)
                asking.sendall(status.status_bytes(self._current()))

    def close(self) -> None:
        """Stop answering."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.thread.join()
        self._path.unlink(missing_ok=True)


def asked_status(path: Path) -> AgentStatus:
    """Return the status of the agent that answers at a path.

    Raises:
        OSError: nobody does, or one may not ask.
        ValueError: the answer is not a status: the agent is of another version.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(5)
        asking.connect(os.fspath(path))
        with asking.makefile("rb") as answer:
            return status.parsed_status(answer.read())
