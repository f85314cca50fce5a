"""The thread that tells the service what switches do."""

import queue
import threading
from collections.abc import Callable

import structlog

_log = structlog.get_logger()


class Teller:
    """Tells of each change in order. In os-ken's thread, which delivers answers, who waits for one would for ever."""

    def __init__(self) -> None:
        self._changes: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._tell, name="switch-changes", daemon=True)
        self._thread.start()

    def put(self, tell: Callable[[], None]) -> None:
        """Call this after all that was put before."""
        self._changes.put(tell)

    def close(self) -> None:
        """End the thread, after what is under way."""
        self._changes.put(None)
        self._thread.join()

    def _tell(self) -> None:
        while (tell := self._changes.get()) is not None:
            try:
                tell()
            except Exception:  # noqa: BLE001 - a thread's top: one failed callback must not end the telling of others
                _log.exception("switch.callback_failed", callback=repr(tell))
