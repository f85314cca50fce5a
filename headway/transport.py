"""One HTTP call to a controller, or to that of a pair which leads, and the same again where that does no harm."""

from __future__ import annotations

import json
import re
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from headway.addresses import RestAddress, address_of, addresses
from headway.errors import (
    ApiError,
    ApiProblem,
    ApiRefusal,
    NoAnswer,
    NoConnection,
    NoSuchName,
    NotAController,
    NotAToken,
    NotAUrl,
    NotTrusted,
)
from headway.hedged import Hedged, Said
from headway.stream import ServerSentEvent, stream_events

DEFAULT_URL = "http://127.0.0.1:8080"
WAITS_S = (0.5, 1.0, 2.0)  # between tries; a controller that starts again is back within three seconds
SOON_S = 0.1  # at most between tries at a pair before those: at a busy one another takes two seconds to lead
SOONER_S = (0.005, *(0.01,) * 7, *(0.05,) * 14, *(SOON_S,) * 12)  # a planned hand-over takes some 30 ms, a death 0.5 s
LONGEST_WAIT_S = 30.0  # a controller that wants to be left alone for longer is not waited for
SILENT_S = 45.0  # the controller gives a sign of life every 15 s
COMES_BACK_S = 1.0
REACHED_S = 2.0  # for each of several addresses: a machine that is silent is not waited for while another may lead
PATIENCE_S = 0.25  # with one of several, before another one is asked too; REACHED_S with what only reads: one that
# stands by answers that, and may be behind
STANDS_BY, UNAVAILABLE = 307, 503
BEHIND = {502, UNAVAILABLE, 504}  # of a reverse proxy whose controller is away, as while that starts again
TRY_AGAIN = {429, UNAVAILABLE}
ELSEWHERE = {STANDS_BY, UNAVAILABLE}  # nothing was done there: another controller of a pair may do it


class Asked(NamedTuple):
    """A request. What is None in query and headers is left out; ``repeatable`` ones may be sent more than once.

    With a status of ``also`` JSON is an answer too, as with those below 300. ``takes_s`` is how long it may take the
    controller to work its answer out, where that is longer than a client waits for others.
    """

    method: str
    path: str
    query: Mapping[str, Any] = {}
    headers: Mapping[str, str | None] = {}
    body: Mapping[str, Any] | None = None
    repeatable: bool = False
    also: tuple[int, ...] = ()
    takes_s: float = 0.0


class Transport:
    """Calls to one controller, or to a pair. Each has a connection of its own, so threads may share a transport.

    No proxy of the environment is used: a controller is asked directly, or by its reverse proxy's address.

    Attributes:
        url: the controller's REST address, or those of a pair.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: Callable[[], str | None] | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 10.0,
        waits_s: tuple[float, ...] | None = None,
    ) -> None:
        """Remember where the controller is; nothing is sent.

        Args:
            url: http or https, with a path if the controller is behind a reverse proxy; or ``unix:`` and the path of
                its socket on this machine. Of a pair, all their addresses with commas between: one that does not
                answer, or stands by, is left for the next, and no other address is ever shown the token. What one that
                stands by says is the answer only if none that leads can be had.
            token: is asked before each call for the bearer token to show; None for none.
            tls: whom to trust, for https; the system's authorities if None.
            timeout_s: how long one try waits for a sign of the controller; longer for what it has to work out, as a
                forecast.
            waits_s: how long before each further try of what may be repeated, if none or 429 or 503 is the answer;
                three times, if None, within four seconds, and of a pair as long as another one takes to lead before.

        Raises:
            NotAUrl: the address.
        """
        self.url = url
        self._addresses = tuple(address_of(one) for one in addresses(url))
        self._at = 0  # the address that has answered last
        self._token, self._tls, self._timeout_s = token, tls, timeout_s
        soon_s = SOONER_S if len(self._addresses) > 1 else ()
        self._waits_s = soon_s + WAITS_S if waits_s is None else waits_s

    def call(self, asked: Asked) -> Any:
        """Return the controller's answer; of a pair, the first that comes, if both may be asked while one hangs.

        Raises:
            NoAnswer: nobody answered.
            NotTrusted: somebody did whose certificate is not trusted.
            NotAController: somebody else did.
            ApiProblem: the controller says what is wrong; :class:`ApiRefusal` if it is a refusal with offers.
        """
        if len(self._addresses) == 1 or not asked.repeatable:
            return self._again(asked, partial(self._once, asked), time.sleep).answer
        patience_s = REACHED_S if asked.method == "GET" else PATIENCE_S
        hedged = Hedged(partial(self._once, asked), patience_s, _is_elsewhere)
        try:
            said = self._again(asked, hedged.ask, hedged.pause)
        except ApiError as failed:
            said = hedged.late_answer(failed)
        self._at = said.at
        return said.answer

    def _again(self, asked: Asked, ask: Callable[[int], Said], pause: Callable[[float], None]) -> Said:
        """Ask, by address, until there is an answer or all tries are made."""
        for wait_s in (*(self._waits_s if asked.repeatable else ()), None):
            try:
                return self._anywhere(asked, ask)
            except NoAnswer:
                if wait_s is None:
                    raise
                pause_s = wait_s
            except ApiProblem as problem:
                is_left = len(self._addresses) > 1 and problem.status in ELSEWHERE
                is_soon = is_left and (wait_s or 0.0) <= SOON_S  # its whole second is for who knows no pair
                pause_s = max(wait_s or 0.0, 0.0 if is_soon else problem.retry_after_s or 0.0)
                if wait_s is None or not self._passes(problem) or pause_s > LONGEST_WAIT_S:
                    raise
            pause(pause_s)
        raise AssertionError  # the last try has no wait and does not come here

    def followed(self, path: str, last_event_id: str | None) -> Iterator[ServerSentEvent]:
        """Yield events for ever; a connection that breaks is made again, and what happened meanwhile is told then.

        Raises:
            ApiError: the first connection failed, or a later one in a way that asking again does not mend.
        """
        last, connected, left = last_event_id, False, 0
        while True:
            at = self._at
            try:
                headers = {"Last-Event-ID": last, "Accept": "text/event-stream"}
                with self._opened(self._addresses[at], Asked("GET", path, headers=headers), SILENT_S) as answer:
                    if answer.status != 200:
                        _read(answer, self._addresses[at])
                    connected, left = True, 0
                    for event in stream_events(_lines(answer)):
                        last = event.event_id or last
                        if event.name:
                            yield event
            except (NoAnswer, ApiProblem) as error:
                self._leave(at)
                left += 1  # in a row, so many addresses have told nothing
                may_come = connected or left < len(self._addresses)
                if not may_come or not (isinstance(error, NoAnswer) or self._passes(error)):
                    raise
            if left % len(self._addresses) == 0:
                time.sleep(COMES_BACK_S)

    def _anywhere(self, asked: Asked, ask: Callable[[int], Said]) -> Said:
        """Ask where was answered last; where that leads nowhere, or to one that stands by, each other address once."""
        old: Said | None = None  # an answer of one that stands by, which is good if nobody has a better one
        for untried in reversed(range(len(self._addresses))):
            at = self._at
            try:
                said = ask(at)
                if not said.is_old:
                    return said
                old = said
                self._leave(at)
            except NoAnswer as error:
                self._leave(at)
                if old is None and (not untried or not (asked.repeatable or isinstance(error, NoConnection))):
                    raise
            except ApiProblem as problem:
                if not _is_elsewhere(problem):
                    raise
                self._leave(at)
                if problem.is_old:
                    old = old or Said(at, error=problem)
                elif old is None and not untried:
                    raise
        if old is None:
            raise AssertionError  # the last address has no other and does not come here
        if old.error is not None:
            raise old.error
        return old

    def _once(self, asked: Asked, at: int) -> Said:
        address = self._addresses[at]
        with self._opened(address, asked, self._timeout_s) as answer:
            return Said(at, _read(answer, address, asked.also), is_old=_is_old(answer))

    def _leave(self, at: int) -> None:
        """Go on at the next address, if another thread has not."""
        if self._at == at:
            self._at = (at + 1) % len(self._addresses)

    def _passes(self, problem: ApiProblem) -> bool:
        """Return whether the same may be answered otherwise soon: a pair is about to have another leader."""
        return problem.status in TRY_AGAIN or (problem.status == STANDS_BY and len(self._addresses) > 1)

    @contextmanager
    def _opened(self, address: RestAddress, asked: Asked, timeout_s: float) -> Iterator[HTTPResponse]:
        """Send a request; give its answer as it begins. What breaks while it is read is NoAnswer too."""
        connection = self._connection(address, timeout_s if len(self._addresses) == 1 else min(timeout_s, REACHED_S))
        data = None if asked.body is None else json.dumps(asked.body).encode()
        headers = self._headers(asked)
        try:
            _reach(connection, address)
            connection.sock.settimeout(max(timeout_s, asked.takes_s))
            connection.request(asked.method, f"{address.prefix}{_target(asked)}", data, headers)
            yield connection.getresponse()
        except UnicodeError as error:  # a host's name that no name server can be asked for
            raise NotAUrl(f"{address.url} is not a URL: {error}") from error
        except (OSError, HTTPException) as error:
            raise NoAnswer(str(error) or type(error).__name__) from error
        finally:
            connection.close()

    def _connection(self, address: RestAddress, timeout_s: float) -> HTTPConnection:
        if address.scheme == "unix":
            return UnixConnection(address.host, timeout_s)
        if address.scheme == "http":
            return HTTPConnection(address.host, address.port, timeout=timeout_s)
        return HTTPSConnection(address.host, address.port, timeout=timeout_s, context=self._tls)

    def _headers(self, asked: Asked) -> dict[str, str]:
        """Return all that is sent before the body: here alone we say who we are."""
        token = self._token() if self._token is not None else None
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token):
            raise NotAToken("the token is none: it has signs that are not of ASCII, or spaces")
        said: dict[str, str | None] = {
            "Accept": "application/json, application/problem+json",
            "Authorization": None if token is None else f"Bearer {token}",
            "Content-Type": None if asked.body is None else "application/json",
            **asked.headers,
        }
        return {name: value for name, value in said.items() if value is not None}


class UnixConnection(HTTPConnection):
    """HTTP by a socket of this machine."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to it."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _is_elsewhere(failed: Exception) -> bool:
    """Return whether another controller of a pair is to be asked."""
    if isinstance(failed, ApiProblem):
        return failed.is_old or failed.status in ELSEWHERE
    return isinstance(failed, NoAnswer)


def _is_old(answer: HTTPResponse) -> bool:
    """Return whether one that stands by has answered, of what it has read so far (RFC 9111, section 5.1)."""
    return "Age" in answer.headers


def _read(answer: HTTPResponse, address: RestAddress, also: tuple[int, ...] = ()) -> Any:
    """Return what an answer says: JSON, or text that is said to be plain, or a calendar."""
    text, media = answer.read(), answer.headers.get("Content-Type", "")
    if answer.status < 300 and media.startswith(("text/plain", "text/calendar")):
        return text.decode()
    try:
        said = json.loads(text)
        if answer.status < 300 or (answer.status in also and media.startswith("application/json")):
            return said
        refused = answer.status == 409 and "offers" in said
        kind = ApiRefusal if refused else ApiProblem
        problem = kind({"type": "", "title": "", "status": answer.status, **said}, _seconds(answer), _is_old(answer))
    except (ValueError, KeyError, TypeError):
        if answer.status in BEHIND:
            raise NoAnswer(f"{address.url} answers {answer.status}: nobody answers behind it") from None
        said = f"{address.url} answers {answer.status}, but not as a controller does; is it one?"
        raise NotAController(said) from None
    raise problem


def _reach(connection: HTTPConnection, address: RestAddress) -> None:
    """Connect, by TLS if it is said so."""
    try:
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        raise NotTrusted(f"{address.url} is not trusted: {error.verify_message}") from error
    except OSError as error:
        raise NoConnection(str(error) or type(error).__name__) from error


def segment(name: str) -> str:
    """Return a name as a segment of a URL's path.

    Raises:
        NoSuchName: it would be another path, or cannot be sent.
    """
    if name in {"", ".", ".."}:
        raise NoSuchName(f'"{name}" is no name that anything has')
    try:
        return quote(name, safe="")
    except UnicodeEncodeError as error:
        raise NoSuchName(f"{name!a} is no name that anything has: it is not UTF-8") from error


def made_up(key: str | None) -> str:
    """Return a name for a request, made up if there is none: it may be sent again.

    Raises:
        ValueError: it cannot be a header.
    """
    key = secrets.token_hex(8) if key is None else key
    if not re.fullmatch(r"[\x21-\x7e]{1,255}", key):
        raise ValueError("need 1 to 255 letters, digits and signs of ASCII, without spaces")
    return key


def _target(asked: Asked) -> str:
    """Return path and query as they are sent."""
    query = [(name, one) for name, value in asked.query.items() for one in _values(value)]
    return asked.path + (f"?{urlencode(query)}" if query else "")


def _values(value: Any) -> Iterable[str]:
    if value is None:
        return ()
    return map(str, value) if isinstance(value, list | tuple) else (str(value),)


def _seconds(answer: HTTPResponse) -> float | None:
    """Return what Retry-After says, if it says seconds."""
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isascii() and said.isdigit() else None


def _lines(answer: HTTPResponse) -> Iterator[str]:
    """Yield the lines of a stream; one that is cut off is none."""
    while (line := answer.readline()).endswith(b"\n"):
        yield line.decode().rstrip("\r\n")
