"""Files that are there as a whole or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def written_whole(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Give a file to write, which is at a path once it is whole and on the disk.

    Who reads meanwhile sees what was there before, and so does who comes after a failure; of two who write at once the
    later one's is left, whole.

    Raises:
        OSError: it cannot be written; the error has the path where the system names no file, as on a full disk.
    """
    made, temporary = tempfile.mkstemp(prefix=".headway-", dir=path.parent)  # 0600
    try:
        with os.fdopen(made, "wb") as file:
            yield file
            file.flush()
            os.fsync(made)
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise
