"""The thread that acts on time: holds that lapse, reservations that begin and end, circuits that change."""

from controller.book import Book
from controller.promises import Promises
from controller.starts import StartWatch
from controller.store import StoreError

IDLE_US = 1_000_000  # how long a failure of the store, or of an agent, may wait to be noticed
SOONEST_US = 1_000


class Timekeeper:
    """Lets the promises act when something is due, and whenever something has changed."""

    def __init__(self, book: Book, promises: Promises) -> None:
        self._book = book
        self._promises = promises
        self._starts = StartWatch(book)
        self._said = ""  # the failure that was logged last, while it lasts

    def run(self) -> None:
        """Work until the book says stop."""
        book = self._book
        while True:
            self.step()
            with book.changed:
                now_us = book.now_us()
                book.sleeping_until_us = max(now_us + SOONEST_US, min(now_us + IDLE_US, book.due_us()))
                book.changed.wait_for(self._woken, timeout=(book.sleeping_until_us - now_us) / 1e6)
                if book.stopping:
                    return

    def _woken(self) -> bool:
        """Return whether there is something to do before the time; under the lock."""
        book = self._book
        return book.stopping or book.due_us() < book.sleeping_until_us or book.must_replan() or book.unsettled()

    def step(self) -> None:
        """Act once; what the store did not take is tried again. Then look whether a start still fits the buffers."""
        try:
            self._promises.tick()
            self._said = ""
        except StoreError as failure:
            if str(failure) != self._said:
                self._said = str(failure)
                self._book.events.publish("store.failed", level="error", error=self._said)
        self._starts.look()
