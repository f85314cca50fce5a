"""Programs that use several connections, as they are: what they are given, and their commands."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mininet_tests.site.gridftp import ANYBODY

PORT = 6001
CONNECTIONS = 12  # of which lanes of 2 to 1 carry eight and four


@dataclass(frozen=True, slots=True)
class StripedProgram:
    """A program; ``{address}`` (the receiver's), ``{port}`` and ``{folder}`` are filled in.

    Attributes:
        server: run by the receiver, until it is ended.
        client: run by the sender; it ends by itself.
        parts: of the file, each a file of its own.
    """

    server: str
    client: str
    parts: int


_PUT = "curl --silent --show-error --fail --header Expect: --parallel --parallel-immediate"
PROGRAMS = {
    "curl": StripedProgram(
        f"{sys.executable} -m mininet_tests.scenarios.lanes.http_sink {{address}} {{port}}",
        f"{_PUT} --parallel-max {CONNECTIONS} --upload-file {{folder}}/[0-{CONNECTIONS - 1}] http://{{address}}:{{port}}/",
        CONNECTIONS,
    ),
    "gridftp": StripedProgram(
        f"globus-gridftp-server -p {{port}} -data-interface {{address}} {ANYBODY} -blocksize 1048576",
        f"globus-url-copy -nodcau -fast -bs 1048576 -p {CONNECTIONS} file://{{folder}}/0"
        " ftp://{address}:{port}/dev/null",
        1,
    ),
}


def sizes_bytes(size_bytes: int, parts: int) -> list[int]:
    """Return the sizes of a file's parts, as ``split -n`` makes them.

    >>> sizes_bytes(1000, 3)
    [333, 333, 334]
    """
    return [size_bytes * (number + 1) // parts - size_bytes * number // parts for number in range(parts)]


def write_parts(folder: Path, sizes: Sequence[int]) -> None:
    """Make the files that a program sends, named by their number; of holes, which take no memory."""
    for number, size in enumerate(sizes):
        with (folder / str(number)).open("wb") as made:
            made.truncate(size)
