"""Owners of promises, as people write them and as the API names them."""

from collections.abc import Sequence
from typing import Any

from apps.cli import base


def owner(written: str | None) -> str | None:
    """Return an owner as the API names it: a name alone is a group's.

    >>> owner("lsst"), owner("token:ana"), owner("local"), owner(None)
    ('group:lsst', 'token:ana', 'local', None)

    Raises:
        typer.Exit: it has no name, most often because a variable is not set.
    """
    if written in {"", "group:"}:
        base.stop(f'--owner: "{written}" is nobody; name a group of yours, or token:NAME', base.EXIT_USAGE)
    if written is None or ":" in written or written in {"local", "anybody"}:
        return written
    return f"group:{written}"


def owner_asked(written: str | None) -> dict[str, Any]:
    """Return whose it shall be, as the API takes it; nothing if that was not said."""
    return {} if written is None else {"owner": owner(written)}


def owners(written: Sequence[str] | None) -> Any:
    """Return owners as the API names them; None if none was said."""
    return None if written is None else [owner(one) for one in written]
