"""``headway export``: what has ended as JSON lines, before the controller forgets it."""

import contextlib
import fcntl
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from apps.cli import base, options

if TYPE_CHECKING:
    from headway.records import EndedOut

app = typer.Typer()
_LINE_BYTES = 1 << 20  # more than any line has
_BEGINS = b'{"cursor": '


@app.command()
def export(
    file: Annotated[
        Path | None, typer.Argument(help="Is written on, after its last line; standard output if absent.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Go on after the line with this cursor.")] = None,
    url: options.Url = options.DEFAULT_URL,
) -> None:
    """Write what has ended, reservations and announcements, one line of JSON each, in the order in which they ended.

    headway export /var/backups/headway.jsonl

    headway export | jq -r 'select(.reservation.state == "failed") | .reservation.reason'
    """
    try:
        if file is None:
            _write(sys.stdout.buffer, since, url)
        elif file.exists() and not file.is_file():  # a pipe or a device
            with file.open("wb") as out:
                _write(out, since, url)
        else:
            with file.open("a+b") as out:
                with contextlib.suppress(OSError):  # some file systems have no locks
                    fcntl.flock(out, fcntl.LOCK_EX)
                cursor = _continued(out, file)
                _write(out, since or cursor, url)
    except BrokenPipeError:  # whoever reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        base.stop(f"{file or 'standard output'}: {error.strerror}", base.EXIT_FAILED)


def _write(out: BinaryIO, since: str | None, url: str) -> None:
    """Write all that is there by now; a terminal is told how far it is."""
    lines = 0
    for page in _pages(url, since):
        out.write("".join(json.dumps(ended) + "\n" for ended in page).encode())
        out.flush()
        lines += len(page)
        if sys.stderr.isatty():
            typer.echo(f"\rheadway: {lines:,} written", err=True, nl=False)
    if sys.stderr.isatty():
        typer.echo(err=True)


def _pages(url: str, since: str | None) -> Iterator["list[EndedOut]"]:
    cursor = since
    while True:
        with base.client_of(url) as controller:
            page = controller.list_history(limit=1000, cursor=cursor)
        yield page["ended"]
        cursor = page["next"]
        if cursor is None:
            return


def _continued(out: BinaryIO, file: Path) -> str | None:
    """Return after which cursor a file is to go on; a last line that was not finished is taken off.

    Raises:
        typer.Exit: its last lines are none of ours.
    """
    size = out.seek(0, os.SEEK_END)
    out.seek(max(0, size - _LINE_BYTES))
    whole, _, unfinished = out.read().rpartition(b"\n")
    try:
        cursor = str(json.loads(whole.splitlines()[-1])["cursor"]) if whole else None
    except (ValueError, KeyError, TypeError):
        cursor = ""
    if cursor == "" or not _BEGINS.startswith(unfinished[: len(_BEGINS)]):
        base.stop(f"{file}: its last line is none of an export; name another file", base.EXIT_USAGE)
    out.truncate(size - len(unfinished))
    return cursor
