"""How many requests that change something are being answered: who lets another controller lead waits for these."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class UnderWay:
    """The count. Any thread may ask."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count one more, until it is answered."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    def wait_for_none(self, timeout_s: float) -> bool:
        """Wait until none is under way, at most so long; return whether none is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._count, timeout_s)

    def _add(self, count: int) -> None:
        with self._changed:
            self._count += count
            self._changed.notify_all()
