"""What keeps the controller's process going, and what ends it: signals, and threads that fail."""

import contextlib
import ctypes
import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator

import structlog

from controller.state.guard import GuardedState

log = structlog.get_logger()


ALIVE_S = 1.0  # how often the supervisor is told
SWITCH_S = 0.001  # what a thread may compute while others wait for their turn; Python's own is five times that
COLLECTED_AFTER = 10_000  # more objects made than freed; Python's own is 700, and our values have no cycles to find
GIVE_BACK_S = 30.0
M_ARENA_MAX, ARENAS = -8, 2  # mallopt(3); each thread's own keeps what it once had


def fair() -> None:
    """Let no thread wait long for another or for the collector, and memory go back when a crowd has gone (glibc)."""
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(COLLECTED_AFTER)
    with contextlib.suppress(AttributeError):  # another libc
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Give the system what memory is free: strangers' buffers, as a rule. Takes milliseconds, and holds up nobody."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class Stop(threading.Event):
    """Set by SIGTERM and SIGINT, or by a thread that has failed, or to let another controller lead."""

    failed = False
    again = False  # whether the process begins anew after its end
    for_good = False  # a signal has come

    def begin_anew(self) -> None:
        """End, and begin anew, unless a signal has come or comes meanwhile."""
        self.again = not self.for_good
        self.set()

    def end_for_good(self) -> None:
        """End, whatever was to come after it."""
        self.again, self.for_good = False, True
        self.set()


def stop_signal() -> Stop:
    """Return what SIGTERM and SIGINT set."""
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.end_for_good())
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
