"""What keeps the controller's process going, and what ends it: signals, and threads that fail."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

import structlog

from controller.state.guard import GuardedState

log = structlog.get_logger()


class Stop(threading.Event):
    """Set by SIGTERM and SIGINT, or by a thread that has failed."""

    failed = False


def stop_signal() -> Stop:
    """Return what SIGTERM and SIGINT set."""
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


@contextlib.contextmanager
def working(work: Callable[[], None], name: str, state: GuardedState, stop: Stop) -> Iterator[None]:
    """Do some work in a thread until the end; one that fails ends the process, which its supervisor starts again."""

    def guarded() -> None:
        try:
            work()
        except Exception:
            log.exception("controller.failed", thread=name)
            stop.failed = True
            stop.set()

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()  # a start that fails half-way ends those who wait for it, too
        state.stop()
        thread.join(timeout=5)
