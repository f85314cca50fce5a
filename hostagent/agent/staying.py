"""Staying attached: a thread for each controller, which dials again whenever a stream has ended."""

import random
import threading
from collections.abc import Callable, Sequence

FIRST_BACKOFF_S = 0.2
LONGEST_BACKOFF_S = 5.0


def backoff_s(failures: int, jitter: float) -> float:
    """Return how long to wait before dialling again, seconds: doubling, with up to half of it taken off.

    The jitter keeps the agents of a restarted controller from coming back all at once.

    >>> backoff_s(0, 0.0), backoff_s(1, 0.0), backoff_s(20, 1.0)
    (0.2, 0.4, 2.5)

    Args:
        failures: attempts that have failed since the last success, from 0.
        jitter: a random number in [0, 1].
    """
    longest_s: float = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(failures, 16))
    return longest_s * (1 - jitter / 2)


class Staying:
    """Attaches to every controller again and again.

    Args:
        controllers: their addresses.
        attach: serves one stream to a controller until that ends; whether it was of use.
        cancel: ends the streams that are open.
    """

    def __init__(self, controllers: Sequence[str], attach: Callable[[str], bool], cancel: Callable[[], None]) -> None:
        self._controllers = controllers
        self._attach = attach
        self._cancel = cancel
        self._stopping = threading.Event()
        self._failure: Exception | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether it is to end."""
        return self._stopping.is_set()

    def serve(self) -> None:
        """Stay attached until :meth:`stop`; what goes wrong in any thread is raised here."""
        first, *others = self._controllers
        threads = [threading.Thread(target=self._staying, args=(one,), name=f"agent at {one}") for one in others]
        for thread in threads:
            thread.start()
        try:
            self._stay(first)
        finally:
            self.stop()
            for thread in threads:
                thread.join()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End ``serve``, from another thread."""
        self._stopping.set()
        self._cancel()

    def _staying(self, controller: str) -> None:
        """Stay attached in a thread of its own."""
        try:
            self._stay(controller)
        except Exception as error:  # noqa: BLE001 - a thread's top
            self._failure = error
            self.stop()

    def _stay(self, controller: str) -> None:
        """Stay attached to one controller."""
        failures = 0
        while not self.is_stopped:
            failures = 0 if self._attach(controller) else failures + 1
            jitter = random.random()  # noqa: S311 (spreads load, guards nothing)
            self._stopping.wait(backoff_s(failures, jitter))
