"""What files say that are renewed in place, so that no restart is needed."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class Renewed(Generic[T]):
    """What some files say, read again when one of them has changed. Of one thread.

    Attributes:
        value: what they say.
    """

    def __init__(self, paths: Iterable[str | Path], read: Callable[[], T]) -> None:
        """Read them.

        Args:
            paths: the files.
            read: returns what they say now; an OSError if one cannot be read, or does not fit the others.

        Raises:
            OSError: as ``read`` does.
        """
        self._paths = tuple(paths)
        self._read = read
        self._seen = self._stamps()
        self.value = read()

    def refreshed(self) -> bool:
        """Return whether a file has changed since the last call, and what there is now is in force.

        Raises:
            OSError: what there is now does not fit together; what was in force stays. Raised once for each change.
        """
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        self._seen = stamps
        self.value = self._read()
        return True

    def _stamps(self) -> tuple[tuple[int, ...] | None, ...]:
        return tuple(map(stamp, self._paths))


def stamp(path: str | Path) -> tuple[int, ...] | None:
    """Return what changes when a file is written or replaced, or given another owner or mode; None while there is none.

    The time of its content would not do: a file that may not be read is put right by chown, which leaves that as it is.
    """
    try:
        found = os.stat(path)  # noqa: PTH116 (a thousandth of the cost, each second)
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns, found.st_size, found.st_mode, found.st_uid, found.st_gid
