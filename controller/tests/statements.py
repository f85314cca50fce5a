"""What databases are asked."""

import contextlib
from collections.abc import Iterator

from sqlalchemy import Engine, event


@contextlib.contextmanager
def statements() -> Iterator[list[str]]:
    """Give all that databases of this process are asked meanwhile."""
    asked: list[str] = []

    def heard(_connection: object, _cursor: object, text: str, *_rest: object) -> None:
        asked.append(text)

    event.listen(Engine, "before_cursor_execute", heard)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", heard)
