"""Work for many agents by their one thread, some of it at a time: who waits for an answer meanwhile is not kept."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

FIRST_S, WORKS_S, RESTS_S = 0.05, 0.002, 0.001  # it begins after that; agents have leases, and wait for nothing


def in_slices(
    loop: asyncio.AbstractEventLoop,
    whom: Callable[[], Iterable[T]],
    work: Callable[[T], None],
    done: Callable[[], None],
) -> None:
    """Do some work for each of those that are there soon, in slices, and then what is done after it. By any thread."""

    def begin() -> None:
        next_slice(deque(whom()))

    def next_slice(waiting: deque[T]) -> None:
        ends_s = loop.time() + WORKS_S
        while waiting:
            work(waiting.popleft())
            if loop.time() > ends_s:
                break
        if waiting:
            loop.call_later(RESTS_S, next_slice, waiting)
        else:
            done()

    loop.call_soon_threadsafe(loop.call_later, FIRST_S, begin)
