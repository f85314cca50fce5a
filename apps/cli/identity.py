"""Who we are to a controller: the token that is shown, from the environment or from a file that is ours alone.

It is never an option: options of a running command are seen by everybody on the machine.
"""

import os
import shlex
import stat
import subprocess
from pathlib import Path

from apps.cli import trust

FILE_ENV, TOKEN_ENV, COMMAND_ENV = "HEADWAY_TOKENS", "HEADWAY_TOKEN", "HEADWAY_TOKEN_COMMAND"
COMMAND_S, QUICK_S = 60.0, 1.0  # a person may have to log in meanwhile; where somebody waits, nobody can


class NotOursAlone(Exception):
    """The file of our tokens can be read by others, or not by us."""


class NoLogin(Exception):
    """The login at a controller has ended, or cannot be renewed now."""


class NoTokenPrinted(Exception):
    """The command that is to print our token has printed none."""


NOTHING_TO_SHOW = (NotOursAlone, NoLogin, NoTokenPrinted)


def tokens_path() -> Path:
    """Return where our tokens are: lines of URL and token."""
    said = os.environ.get(FILE_ENV)
    return Path(said) if said else trust.own_folder() / "tokens"


def logins_path() -> Path:
    """Return where our logins are, as ``headway login`` keeps them."""
    return tokens_path().with_name("logins")


def token(url: str, *, quickly: bool = False) -> str | None:
    """Return the token that we show to a controller; None if we have none for it.

    A token of the files goes to its own URL only, and to no other controller but that of the same pair, all of whose
    addresses are in ``url``. An issuer's last minutes: that of a login
    is renewed, or a command prints the present one, as oidc-agent's ``oidc-token`` does.

    Args:
        url: the controller's, or those of a pair.
        quickly: somebody waits, as at the tab key: a command has a second, and a login is not renewed.

    Raises:
        NotOursAlone: the file of the tokens, or of the logins.
        NoLogin: the login has ended.
        NoTokenPrinted: the command has none.
    """
    said, command = os.environ.get(TOKEN_ENV, "").strip(), os.environ.get(COMMAND_ENV, "").strip()
    if said or command:
        return said or _printed(command, quickly)
    from headway.addresses import addresses  # takes time to import

    which = dict.fromkeys((url, *addresses(url)))
    return next((found for one in which if (found := _kept(tokens_path(), one) or _of_login(one, quickly))), None)


def _of_login(url: str, quickly: bool) -> str | None:
    """Return the token of our login at a controller; None if there is none."""
    if not logins_path().exists():
        return None
    from apps.cli import login_work  # takes time to import

    try:
        return (login_work.kept_token if quickly else login_work.current_token)(logins_path(), url)
    except login_work.NotOurLogins as error:
        raise NotOursAlone(str(error)) from error
    except login_work.LoginFailed as error:
        raise NoLogin(str(error)) from error


def _printed(command: str, quickly: bool) -> str:
    """Return the token that a command prints; no shell reads it."""
    within_s, reads = (QUICK_S, subprocess.DEVNULL) if quickly else (COMMAND_S, None)
    try:
        done = subprocess.run(
            shlex.split(command), stdin=reads, capture_output=True, text=True, timeout=within_s, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise NoTokenPrinted(f"{COMMAND_ENV}: {command}: {getattr(error, 'strerror', None) or error}") from error
    token = done.stdout.strip()
    if done.returncode or not token:
        last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode} and printed no token"])[-1]
        raise NoTokenPrinted(f"{COMMAND_ENV}: {command}: {last}")
    return token


def _kept(path: Path, url: str) -> str | None:
    try:
        with path.open(encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise NotOursAlone(f"{path}: others may read or write your tokens: chmod 600 {path}")
            lines = [line.split() for line in file]
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise NotOursAlone(f"{path}: {error}") from error
    kept = {one[0].rstrip("/"): one[1] for one in lines if len(one) == 2 and not one[0].startswith("#")}
    return kept.get(url.rstrip("/"))
