"""The file of the tokens: only hashes, and still its owner's alone; written whole, read again when it changes."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import structlog
from pydantic import TypeAdapter, ValidationError

from controller.errors import HeadwayError
from controller.security.renewed import stamp
from controller.security.tokens import Token, Tokens, changed
from topology.whole_files import written_whole

log = structlog.get_logger()
_TOKENS = TypeAdapter(tuple[Token, ...])


class TokensUnusable(HeadwayError):
    """The file of the tokens cannot be used; the text says why, and what to do."""


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Return the tokens in a file; none if there is no file yet.

    Raises:
        TokensUnusable: it cannot be read, others may read or write it, or it has something else in it.
    """
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise TokensUnusable(f"{path}: others than its owner may read or write it: chmod 600 {path}")
            return _TOKENS.validate_json(file.read())
    except FileNotFoundError:
        return ()
    except PermissionError as error:
        how = f"it must be of the user that the controller runs as: chown headway-controller {path}"
        raise TokensUnusable(f"{path}: {error.strerror}; {how}") from error
    except OSError as error:
        raise TokensUnusable(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        raise TokensUnusable(f"{path}: this is no file of tokens; headway token makes one") from error


def write_tokens(path: Path, tokens: tuple[Token, ...]) -> None:
    """Write a file of tokens, whole or not at all; it stays of the user that it was of, or that its folder is of.

    Of a link, what is written takes the place of the file where that leads.

    Raises:
        TokensUnusable: it cannot be written.
    """
    real = Path(os.path.realpath(path))
    try:
        owner = (real if real.exists() else real.parent).stat()
        with written_whole(real) as file:
            if os.geteuid() == 0:
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(_TOKENS.dump_json(tokens, indent=1) + b"\n")
    except OSError as error:
        raise TokensUnusable(f"{path}: {error.strerror}") from error


class TokenFile:
    """The tokens in force. Of one thread."""

    def __init__(self, path: Path, told: Callable[[str, Token], object] = lambda _what, _token: None) -> None:
        """Read them.

        Args:
            path: of the file.
            told: is told of each token that is made or revoked from now on.

        Raises:
            TokensUnusable: they cannot be.
        """
        self._path = path
        self._told = told
        self._seen = stamp(self._path)
        self._tokens = Tokens(read_tokens(path))

    def current(self) -> Tokens:
        """Return the tokens of the file as it is now; those before, and a line in the log, if it cannot be used."""
        seen = stamp(self._path)
        if seen != self._seen:
            self._seen = seen
            try:
                before, self._tokens = self._tokens, Tokens(read_tokens(self._path))
            except TokensUnusable as error:
                log.error("tokens.unusable", why=str(error))  # noqa: TRY400 (the text says all)
            else:
                for what, token in changed(before.all, self._tokens.all):
                    self._told(what, token)
        return self._tokens
