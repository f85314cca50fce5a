"""What all commands that talk to a controller share: one HTTP call, one line for what is wrong, exit codes."""

import contextlib
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

import typer

from apps.cli import identity, times
from topology import units

if TYPE_CHECKING:
    import httpx

EXIT_FAILED, EXIT_USAGE, EXIT_REFUSED, EXIT_NOT_CARRIED = 1, 2, 3, 4
WAITS_S = (0.5, 1.0, 2.0)  # between tries; a controller that starts again is back within three seconds


class ControllerRefused(Exception):
    """The controller's answer no; ``problem`` has the numbers and the offers."""

    def __init__(self, problem: dict[str, Any]) -> None:
        self.problem = problem
        super().__init__(problem["detail"])


def stop(message: str, code: int) -> NoReturn:
    """Say what is wrong in one line, and end."""
    typer.echo(f"headway: {message}", err=True)
    raise typer.Exit(code)


def end_carried(promise: dict[str, Any]) -> None:
    """End with 4 if what was promised cannot be carried at this moment; the reasons go to standard error.

    Raises:
        typer.Exit: it cannot.
    """
    if promise["carried"] is False:
        for reason in promise["reasons"]:
            typer.echo(f"headway: {promise['id']} is promised, but not carried now: {reason}", err=True)
        raise typer.Exit(EXIT_NOT_CARRIED)


def call(
    url: str,
    operation: str,
    body: dict[str, Any] | None = None,
    params: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    waits_s: tuple[float, ...] = (),
) -> Any:
    """Return the controller's answer; what goes wrong is one line and an exit code.

    Args:
        url: the controller's.
        operation: method and path, as in ``GET /v1/plan``.
        body: is sent as JSON.
        params: the query; what is None is left out.
        headers: more of them.
        waits_s: how long before each further try, if there was no answer or it was 503; only for what may be repeated.

    Raises:
        ControllerRefused: for want of capacity.
    """
    import httpx  # takes longer than all the rest; not for who asks for help alone

    method, path = operation.split(" ")
    headers = {**signed(url), **(headers or {})}
    query = {name: value for name, value in (params or {}).items() if value is not None}
    for wait_s in (*waits_s, None):
        try:
            answer = httpx.request(method, f"{url}{path}", json=body, params=query, headers=headers, timeout=10)
        except httpx.TransportError as error:
            if wait_s is None or isinstance(error, httpx.UnsupportedProtocol):
                stop(f"no controller at {url}: {error}; is it running? set --url or HEADWAY_URL", EXIT_FAILED)
        except httpx.InvalidURL as error:
            stop(f"{url} is not a URL: {error}; set --url or HEADWAY_URL", EXIT_USAGE)
        else:
            if answer.status_code != 503 or wait_s is None:
                return read(url, answer)
        time.sleep(wait_s)
    raise AssertionError  # the last try has no wait and does not come here


def signed(url: str) -> dict[str, str]:
    """Return the headers by which a controller knows who we are."""
    try:
        return identity.headers(url)
    except identity.NotOursAlone as error:
        stop(str(error), EXIT_USAGE)


def read(url: str, answer: "httpx.Response") -> Any:
    """Return what an answer says."""
    try:
        said = answer.json()
        if not answer.is_error:
            return said
        detail = said["detail"]
    except (ValueError, KeyError, TypeError):
        stop(f"{url} answers {answer.status_code}, but not as a controller does; is it one?", EXIT_FAILED)
    if answer.status_code == 401:
        detail += f"; set {identity.TOKEN_ENV}, or write a line of URL and token into {identity.tokens_path()}"
    if answer.status_code == 409 and "offers" in said:
        raise ControllerRefused(said)
    stop(detail, EXIT_USAGE if answer.status_code in {400, 422} else EXIT_FAILED)


def request_key(key: str | None) -> str:
    """Return a name for the request, made up if there is none; it can be a header."""
    key = secrets.token_hex(8) if key is None else key
    if not re.fullmatch(r"[\x21-\x7e]{1,255}", key):
        stop("--key: need 1 to 255 letters, digits and signs of ASCII, without spaces", EXIT_USAGE)
    return key


def segment(name: str) -> str:
    """Return a name as a segment of a URL's path."""
    return quote(name, safe="")


def quantity(text: str | None, parse: Callable[[str], int], option: str) -> int | None:
    """Return a quantity from the command line; None if it was not given."""
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        stop(f"{option}: {error}", EXIT_USAGE)


def zone(name: str | None) -> tzinfo:
    """Return the zone of local times."""
    try:
        return times.zone(name)
    except ValueError as error:
        stop(f"--zone: {error}", EXIT_USAGE)


def instant(text: str | None, where: tzinfo, option: str, after: str | None = None) -> str | None:
    """Return a time from the command line as the API takes it; without a date the next after ``after``, or now."""
    now_us = time.time_ns() // 1000
    after_us = None if after is None else units.instant_us(after)
    unix_us = quantity(text, lambda written: times.instant_us(written, where, now_us, after_us), option)
    return None if unix_us is None else units.shown_time(unix_us)


@contextlib.contextmanager
def waiting(for_what: str) -> Iterator[None]:
    """Show on a terminal that something takes its time."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(for_what) if sys.stderr.isatty() else contextlib.nullcontext():
        yield
