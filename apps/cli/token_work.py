"""What the commands of ``headway token`` do; what goes wrong is one line and an exit code."""

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import typer

from apps.cli.base import EXIT_FAILED, EXIT_USAGE, stop
from apps.cli.token import USUAL
from controller.security.token_file import TokensUnusable, read_tokens, write_tokens
from controller.security.tokens import Role, Token, new_token

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


def make(file: Path, name: str, role: str, days: int, groups: tuple[str, ...] = ()) -> None:
    """Make a token and print it on standard output, alone, so that a script can take it."""
    wrong = next(
        (what for what, said in (("NAME", (name,)), ("--group", groups)) if not all(map(_NAME.fullmatch, said))), None
    )
    if wrong:
        stop(f"{wrong}: need 1 to 64 letters, digits and . _ @ - of ASCII, the first a letter or digit", EXIT_USAGE)
    made = datetime.now(UTC).replace(microsecond=0)
    text, token = new_token(name, Role(role), made, made + timedelta(days=days), groups)
    with _changing(file) as tokens:
        write_tokens(file, (*tokens, token))
    typer.echo(text)
    inside = f", in {', '.join(groups)}" if groups else ""
    typer.echo(f"{name}, {role}{inside}, until {token.until:%Y-%m-%d}; it is not kept: give it away now", err=True)


def show(file: Path, *, as_json: bool) -> None:
    """Print what is kept of the tokens, but the hashes."""
    with _said():
        tokens, now = read_tokens(file), datetime.now(UTC)
    if not tokens and file != USUAL and not file.exists():  # the usual one is made with the first token
        stop(f"{file}: No such file or directory", EXIT_USAGE)
    shown = [_shown(token, now) for token in tokens]
    if as_json:
        typer.echo(json.dumps(shown))
        return
    if not shown:
        typer.echo(f"no tokens in {file}")
    for one in shown:
        typer.echo(
            "{id}  {role:8}  {until}  {name}{inside}{over}".format(
                **one, inside=_inside(one), over="" if one["valid"] else "  (over)"
            )
        )


def revoke(file: Path, which: str) -> None:
    """Forget tokens."""
    with _changing(file) as tokens:
        kept = tuple(token for token in tokens if which not in {token.id, token.name})
        if kept == tokens:
            stop(f'there is no token "{which}" in {file}', EXIT_FAILED)
        write_tokens(file, kept)
    typer.echo(f"revoked: {len(tokens) - len(kept)} of {which}")


def _shown(token: Token, now: datetime) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "groups": list(token.groups),
        "until": f"{token.until:%Y-%m-%dT%H:%M:%SZ}",
        "valid": now < token.until,
    }


def _inside(shown: dict[str, Any]) -> str:
    return f" in {', '.join(shown['groups'])}" if shown["groups"] else ""


@contextlib.contextmanager
def _changing(file: Path) -> Iterator[tuple[Token, ...]]:
    """Yield the tokens, of which nobody else writes others meanwhile; its folder is locked, as the file is replaced."""
    with _said():
        folder = os.open(Path(os.path.realpath(file)).parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield read_tokens(file)
        finally:
            os.close(folder)


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Say in one line what went wrong."""
    try:
        yield
    except TokensUnusable as error:
        stop(str(error), EXIT_FAILED)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", EXIT_FAILED)
