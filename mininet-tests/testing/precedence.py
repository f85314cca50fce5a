"""The processor first, for what is measured by this machine's clock: whatever else runs is not what is judged."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NICE = -15
"""The kernel then gives 28 times as much as to a process with the usual 0. Source: linux/kernel/sched/core.c."""


@contextmanager
def precedence() -> Iterator[None]:
    """Let this thread, and all that it starts meanwhile, go before others; without the right to it, change nothing."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
