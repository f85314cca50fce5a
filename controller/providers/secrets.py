"""Secrets: read from where the configuration says, shown to nobody."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from controller.providers.errors import SecretUnusable


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A secret that neither ``repr`` nor ``str`` shows; who sends it calls ``reveal`` at the last moment."""

    _read: Callable[[], str]
    _refused: Callable[[str], None] = lambda _: None

    def reveal(self) -> str:
        """Return the secret; one from a file as the file has it now, for access tokens last minutes and are renewed.

        Raises:
            SecretUnusable: the file has gone, or anybody may read it.
        """
        return self._read()

    def refused(self, value: str) -> None:
        """Say that what was revealed was not accepted: there may be another one."""
        self._refused(value)

    def __repr__(self) -> str:
        """Return that there is one, and nothing of it."""
        return "Secret(...)"


def secret_from(env: str | None, file: Path | None) -> Secret:
    """Return the secret in the environment variable ``env`` or in ``file``; exactly one of them is given.

    It is read once here, so that a wrong place is known at the start.

    Raises:
        SecretUnusable: it is not there, is empty, or anybody may read it.
    """
    if env is not None and file is None:
        value = _of_variable(env)
        return Secret(lambda: value)
    if file is not None and env is None:
        _of_file(file)
        return Secret(lambda: _of_file(file))
    given = "neither" if env is None else f"both, {env} and {file}"
    raise SecretUnusable("secret", f"need either a variable of the environment or a file, got {given}")


def _of_variable(name: str) -> str:
    """Return the secret in an environment variable.

    Raises:
        SecretUnusable: it is not set, or no secret.
    """
    value = os.environ.get(name)
    source = f"environment variable {name}"
    if value is None:
        raise SecretUnusable(source, "is not set")
    return one_line(source, value)


def _of_file(path: Path) -> str:
    """Return the secret in a file that only its owner and group may read.

    Raises:
        SecretUnusable: it cannot be read, anybody may read it, or it is no secret.
    """
    source = f"file {path}"
    try:
        with path.open(encoding="ascii") as opened:
            mode = os.fstat(opened.fileno()).st_mode  # of what is open, not of what may have taken its place
            if mode & stat.S_IRWXO:
                raise SecretUnusable(source, f"is open to all users (mode {mode & 0o777:o}); try chmod 600 {path}")
            return one_line(source, opened.read())
    except OSError as error:
        raise SecretUnusable(source, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SecretUnusable(source, "is not ASCII text") from None  # the error holds what it could not decode


def one_line(source: str, text: str) -> str:
    """Return ``text`` without the line's end, if it can stand in an HTTP header.

    Raises:
        SecretUnusable: it is empty, or has more than printable ASCII characters in one line.
    """
    value = text.strip()
    if not value:
        raise SecretUnusable(source, "is empty")
    if not (value.isascii() and value.isprintable()):
        raise SecretUnusable(source, "is not one line of printable ASCII characters")
    return value
