"""What all commands that talk to a controller share: the controller, one line for what is wrong, exit codes."""

import contextlib
import sys
import time
from collections.abc import Callable, Collection, Iterator
from datetime import tzinfo
from typing import TYPE_CHECKING, NoReturn

import typer

from apps.cli import fields, identity, times, trust
from apps.cli.place import local
from apps.cli.shown import in_line, say
from topology import units

if TYPE_CHECKING:
    from headway.client import Client
    from headway.promises import AnnouncementOut, ReservationOut

EXIT_FAILED, EXIT_USAGE, EXIT_REFUSED, EXIT_NOT_CARRIED, EXIT_BROKEN = 1, 2, 3, 4, 5


def stop(message: str, code: int) -> NoReturn:
    """Say what is wrong in one line, and end."""
    say(f"headway: {message}", stderr=True)
    raise typer.Exit(code)


def end_carried(promise: "AnnouncementOut | ReservationOut") -> None:
    """End with 4 if what was promised cannot be carried at this moment; the reasons go to standard error.

    Raises:
        typer.Exit: it cannot.
    """
    if promise["carried"] is False:
        for reason in promise["reasons"]:
            say(f"headway: {promise['id']} is promised, but not carried now: {in_line(reason)}", stderr=True)
        raise typer.Exit(EXIT_NOT_CARRIED)


@contextlib.contextmanager
def client_of(
    url: str,
    token: Callable[[str], str | None] = identity.token,
    *,
    said_by: str = "--url or HEADWAY_URL",
    typed: Collection[str] = (),
) -> Iterator["Client"]:
    """Give the controller; what goes wrong with it is one line and an exit code.

    Args:
        url: its address.
        token: is asked with it before each call for the token to show; None for none.
        said_by: how one says another address.
        typed: the options of the command line, by which the fields of what is asked are called.

    Raises:
        ApiRefusal: for want of capacity.
        typer.Exit: anything else.
    """
    from headway import errors
    from headway.client import Client  # takes longer than all the rest; not for who asks for help alone

    url = local(url)
    try:
        yield Client(url, token=lambda: token(url), tls=trust.context(url))
    except errors.ApiRefusal:
        raise
    except errors.ApiProblem as problem:
        detail = fields.in_options(problem.problem, typed)
        if problem.status == 401:
            detail += f"; set {identity.TOKEN_ENV}, or write a line of URL and token into {identity.tokens_path()}"
        stop(detail, EXIT_USAGE if problem.status in {400, 422} else EXIT_FAILED)
    except errors.NotTrusted as why:
        stop(f"{why}; trust the site's ca.pem: as {trust.own_folder()}/ca.pem, --ca or {trust.CA_ENV}", EXIT_FAILED)
    except errors.NoAnswer as why:
        stop(f"no controller at {url}: {why}; is it running? set {said_by}", EXIT_FAILED)
    except errors.NotAUrl as why:
        stop(f"{why}; set {said_by}", EXIT_USAGE)
    except (
        errors.NoSuchName,
        errors.NotAToken,
        identity.NotOursAlone,
        identity.NoTokenPrinted,
        trust.NotUsable,
    ) as why:
        stop(str(why), EXIT_USAGE)
    except (errors.NotAController, identity.NoLogin) as why:
        stop(str(why), EXIT_FAILED)


@contextlib.contextmanager
def repeatable(key: str) -> Iterator[None]:
    """Say by which name a request that has failed may be made once more; what was done of it is not done twice."""
    try:
        yield
    except typer.Exit as failed:
        if failed.exit_code == EXIT_FAILED:
            typer.echo(f"headway: with --key {key} it is safe to ask for the same again", err=True)
        raise


def request_key(key: str | None) -> str:
    """Return a name for the request, made up if there is none; it can be a header."""
    from headway.transport import made_up

    try:
        return made_up(key)
    except ValueError as error:
        stop(f"--key: {error}", EXIT_USAGE)


def quantity(text: str | None, parse: Callable[[str], int], option: str) -> int | None:
    """Return a quantity from the command line; None if it was not given."""
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        stop(f"{option}: {error}", EXIT_USAGE)


def names_in(text: str) -> list[str]:
    """Return names that are written with commas between them, and spaces if one likes.

    >>> names_in("base20, base21")
    ['base20', 'base21']
    """
    return [name.strip() for name in text.split(",")]


def rtt_bound(max_rtt: str | None) -> dict[str, float]:
    """Return the bound of the round trip, if one was said, as the API takes it."""
    rtt_us = quantity(max_rtt, units.duration_us, "--max-rtt")
    return {} if rtt_us is None else {"max_rtt_ms": rtt_us / 1000}


def zone_option(name: str | None) -> tzinfo:
    """Return the zone of local times."""
    try:
        return times.zone(name)
    except ValueError as error:
        stop(f"{'TZ' if name is None else '--zone'}: {error}", EXIT_USAGE)


def instant(text: str | None, where: tzinfo, option: str, after: str | None = None) -> str | None:
    """Return a time from the command line as the API takes it; without a date the next after ``after``, or now."""
    now_us = time.time_ns() // 1000
    after_us = None if after is None else units.instant_us(after)
    try:
        unix_us = quantity(text, lambda written: times.local_instant_us(written, where, now_us, after_us), option)
        return None if unix_us is None else units.shown_time(unix_us)
    except OverflowError:
        stop(f'{option}: "{text}" is not in the years 1 to 9999 of UTC', EXIT_USAGE)


@contextlib.contextmanager
def waiting(for_what: str) -> Iterator[None]:
    """Show on a terminal that something takes its time."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(for_what) if sys.stderr.isatty() else contextlib.nullcontext():
        yield
