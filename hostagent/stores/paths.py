"""Looking at paths of file systems that may not answer: at a hard mount of NFS whoever looks waits for the server."""

import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
WITHIN_S = 2.0  # all of them


def looked_at(paths: Iterable[Path], look: Callable[[Path], T]) -> dict[Path, T]:
    """Return what is seen at each path, without those that do not answer: threads of their own wait for them."""
    found: dict[Path, T] = {}

    def wait_for(path: Path) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        found[path] = look(path)

    threads = [threading.Thread(target=wait_for, args=(path,), daemon=True) for path in dict.fromkeys(paths)]
    for thread in threads:
        thread.start()
    until_s = time.monotonic() + WITHIN_S
    for thread in threads:
        thread.join(max(0.0, until_s - time.monotonic()))
    return found.copy()
