"""Modules loaded without the collector of cyclic garbage looking through them again and again."""

import contextlib
import gc
import os
from collections.abc import Iterator

from topology.uncollected import uncollected


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Import inside: what is loaded stays, so that the collector finds nothing in it, now or later.

    It would look through all that is there whenever there is a quarter more: a quarter of the controller's start, an
    eighth of an agent's. Nor does pydantic look for plugins, of which we have none: it would read a file of every
    package that is installed, a third of what an agent opens at its start.
    """
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    with uncollected():
        try:
            yield
        finally:
            gc.freeze()
