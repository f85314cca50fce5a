"""Modules loaded without the collector of cyclic garbage looking through them again and again."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Import inside: what is loaded stays, so that the collector finds nothing in it, now or later.

    It would look through all that is there whenever there is a quarter more: a quarter of the controller's start, an
    eighth of an agent's.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
