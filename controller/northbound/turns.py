"""What takes long is worked out by one thread at a time, so that many who ask for much leave others their part."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Turns:
    """Who asks waits for its turn, in the order of asking; a client that waits has no thread."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(1)

    def in_turn(self, work: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return what does some work in a thread, when it is its turn."""

        @functools.wraps(work)
        async def taken(*args: P.args, **kwargs: P.kwargs) -> T:
            async with self._turn:
                return await asyncio.to_thread(work, *args, **kwargs)

        return taken
