"""Threads that sample: each calls one function at intervals, until all are stopped."""

import threading
import time
from collections.abc import Callable


class Sampling:
    """Calls functions at intervals, each in a thread of its own."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failed: list[Exception] = []

    def start(self, every_s: float, take: Callable[[], None]) -> None:
        """Call ``take`` from now on; a call that takes longer than the interval delays those after it."""
        thread = threading.Thread(target=self._repeat, args=(every_s, take), daemon=True)
        thread.start()
        self._threads.append(thread)

    def stop(self) -> None:
        """End all threads.

        Raises:
            RuntimeError: one of them had ended before, by the exception behind this one.
        """
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._failed:
            raise RuntimeError("nothing was sampled any more") from self._failed[0]

    def _repeat(self, every_s: float, take: Callable[[], None]) -> None:
        due_s = time.monotonic()
        try:
            while not self._stop.is_set():
                take()
                due_s = max(due_s + every_s, time.monotonic())
                self._stop.wait(due_s - time.monotonic())
            take()  # the last one is of the end
        except Exception as error:  # noqa: BLE001 - a thread's top: told at the end
            self._failed.append(error)
