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
    """A program; ``{address}`` (the receiver's), ``{port}``, ``{folder}`` and ``{store}`` (its own) are filled in.

    Attributes:
        server: run by the receiver, until it is ended.
        client: run by the sender; it ends by itself.
        parts: of the file, each a file of its own.
        before: what the sender is told first; ``{own}`` is each of its addresses, in turn.
    """

    server: str
    client: str
    parts: int
    before: tuple[str, ...] = ()


_SINK = f"{sys.executable} -m mininet_tests.scenarios.lanes.http_sink {{address}} {{port}}"
_PUT = "curl --silent --show-error --fail --header Expect: --parallel --parallel-immediate"
PROGRAMS = {
    "curl": StripedProgram(
        _SINK,
        f"{_PUT} --parallel-max {CONNECTIONS} --upload-file {{folder}}/[0-{CONNECTIONS - 1}] http://{{address}}:{{port}}/",
        CONNECTIONS,
    ),
    "gridftp": StripedProgram(
        f"globus-gridftp-server -p {{port}} -data-interface {{address}} {ANYBODY} -blocksize 1048576",
        f"globus-url-copy -nodcau -fast -bs 1048576 -p {CONNECTIONS} file://{{folder}}/0"
        " ftp://{address}:{port}/dev/null",
        1,
    ),
    "rclone": StripedProgram(
        "rclone serve webdav --addr {address}:{port} {store}",
        f"rclone copy --transfers {CONNECTIONS} --no-traverse --no-check-dest --ignore-checksum --retries 1"
        " --webdav-url http://{address}:{port} {folder} :webdav:",
        CONNECTIONS,
    ),
    "mptcp": StripedProgram(  # curl, and one connection of Multipath TCP: subflows instead of lanes' connections
        f"mptcpize run {_SINK}",
        "mptcpize run curl --silent --show-error --fail --header Expect: --upload-file {folder}/0"
        " http://{address}:{port}/",
        1,
        ("ip mptcp endpoint add {own} subflow",),
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
    folder.mkdir()
    for number, size in enumerate(sizes):
        with (folder / str(number)).open("wb") as made:
            made.truncate(size)
