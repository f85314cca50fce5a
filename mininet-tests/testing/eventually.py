"""The only sleep in the tests."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(probe: Callable[[], T | None], *, within_s: float, what: str) -> T:
    """Return the first truthy ``probe()``; fail, showing the last answer, once ``within_s`` has passed.

    Raises:
        AssertionError: no answer was truthy in time.
    """
    deadline_s = time.monotonic() + within_s
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() >= deadline_s:
            raise AssertionError(f"{what}: not within {within_s:g} s, last answer {answer!r}")
        time.sleep(0.05)
