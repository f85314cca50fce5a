"""``headway backup`` and ``restore``: what a controller must not forget, in a file."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO, NoReturn

import typer

from apps.cli import base

app = typer.Typer()
STDOUT = Path("-")
File = Annotated[Path, typer.Argument(metavar="FILE", help="Where; - for standard input or output.")]
Config = Annotated[
    Path, typer.Option("--config", "-c", help="The controller's YAML file, which names the database; see --store.")
]
Url = Annotated[str | None, typer.Option("--store", help="The database's URL, instead of --config.")]
USUAL = Path("/etc/headway/controller.yaml")


@app.command()
def backup(file: File, config: Config = USUAL, database: Url = None) -> None:
    """Write all promises into a file, as they are at one moment; the controller may go on meanwhile.

    Lines of JSON, the same for SQLite and PostgreSQL. The file appears when it is whole.

    headway backup /var/backups/headway-2026-11-22.jsonl
    """
    from controller.database.backup import backed_up
    from controller.database.errors import DatabaseError

    rows: dict[str, int] = {}
    is_stdout = file == STDOUT or _is_stdout(file)
    try:
        with nullcontext(sys.stdout.buffer) if is_stdout else _opened(file) as out:
            for line in backed_up(url_of(config, database), rows):
                out.write(line.encode())
    except (DatabaseError, OSError) as error:
        stop_for(error)
    typer.echo(f"{file}: {_counted(rows)}", err=is_stdout)


@app.command()
def restore(file: File, config: Config = USUAL, database: Url = None) -> None:
    """Put a backup into an empty database, all of it or nothing. No controller may be using it.

    The database may be of another kind than the one the backup is of, and the backup of an older version.

    headway restore /var/backups/headway-2026-11-22.jsonl --store postgresql://headway@db.example.org/headway
    """
    from controller.database.backup import restore as restored
    from controller.database.errors import DatabaseError

    try:
        with sys.stdin if file == STDOUT else file.open(encoding="utf-8") as lines:
            done = restored(url_of(config, database), lines)
    except UnicodeDecodeError:
        base.stop(f"{file}: this is no backup of a database", base.EXIT_FAILED)
    except (DatabaseError, OSError) as error:
        stop_for(error)
    typer.echo(f"{done.shown}: {_counted(done.rows)}")


def url_of(config: Path, database: str | None) -> str:
    """Return the database's URL; of a configuration nothing else need be right."""
    if database is not None:
        return database
    from controller.database.settings import DatabasePart
    from controller.errors import ConfigError
    from controller.settings.file import part_of

    try:
        return part_of(config, DatabasePart)[0].store.url
    except ConfigError as error:
        base.stop(str(error), base.EXIT_USAGE)


def stop_for(error: Exception) -> NoReturn:
    """Say what is wrong in one line, and end: what was named may be no database, or could not be used."""
    from controller.database.errors import UrlNotUsable

    base.stop(str(error), base.EXIT_USAGE if isinstance(error, UrlNotUsable) else base.EXIT_FAILED)


def _is_stdout(file: Path) -> bool:
    """Return whether a name is one of our standard output, as /dev/stdout is."""
    try:
        return os.path.samestat(file.stat(), os.fstat(1))
    except OSError:  # nothing has that name yet
        return False


def _opened(file: Path) -> AbstractContextManager[BinaryIO]:
    """Return what is there to write into if it is a pipe or a device; else a file that is there once it is whole.

    What takes its place takes that of the file where a link leads, not the link's.
    """
    from topology.whole_files import written_whole

    if file.exists() and not file.is_file():
        return file.open("wb")
    return written_whole(Path(os.path.realpath(file)))


def _counted(rows: dict[str, int]) -> str:
    counts = [f"{count:,} {table.replace('_', ' ')}" for table, count in rows.items() if table != "meta"]
    return ", ".join(counts) or "no promises"
