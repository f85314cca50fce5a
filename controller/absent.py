"""Packages that others load if they are installed, for something that we do not use."""

import contextlib
import sys
from collections.abc import Iterator

FOR_TERMINALS = ("pygments", "rich")
"""What structlog and httpx load to write colours; a daemon writes none."""


@contextlib.contextmanager
def absent(*packages: str) -> Iterator[None]:
    """Let packages be missing for whoever imports them inside; one that is loaded already stays."""
    missing = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(missing))  # type: ignore[arg-type]  # None: it is not found (import system, 5.3.1)
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]
