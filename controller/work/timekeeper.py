"""The thread that acts on time: holds that lapse, reservations that begin and end, circuits that change."""

from controller.book import Book
from controller.plan.plan import planned
from controller.start_bursts import StartBurstWatch
from controller.store import StoreError
from controller.use_cases import UseCases

IDLE_US = 1_000_000  # how long a failure of the store, or of an agent, may wait to be noticed
SOONEST_US = 1_000


def prepare(book: Book) -> None:
    """Make the plan for the death of each circuit, so that nothing is left to think about when one dies."""
    with book.changed:
        if not book.must_prepare():
            return
        basis, down, epoch = book.planned_for, book.down(), book.desired.epoch
        demands = {circuit: book.demand(down | {circuit}) for circuit in sorted(book.redundant - down)}
    plans = {c: planned(epoch, book.site.network, book.site.policy, demand) for c, demand in demands.items()}
    with book.changed:
        if basis == book.planned_for:
            book.prepared, book.prepared_for = plans, basis


class Timekeeper:
    """Lets the promises act when something is due, and whenever something has changed."""

    def __init__(self, book: Book, use_cases: UseCases) -> None:
        self._book = book
        self._use_cases = use_cases
        self._starts = StartBurstWatch(book)
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
        is_due = book.due_us() < book.sleeping_until_us
        return book.stopping or is_due or book.must_replan() or book.must_prepare() or book.unsettled()

    def step(self) -> None:
        """Act once; what the store did not take is tried again. Then look whether a start still fits the buffers."""
        try:
            self._use_cases.tick()
            prepare(self._book)
            self._said = ""
        except StoreError as failure:
            if str(failure) != self._said:
                self._said = str(failure)
                self._book.events.publish("store.failed", level="error", error=self._said)
        self._starts.look()
