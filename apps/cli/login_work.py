"""A login with a code (RFC 8628, device flow): the issuer asked, its tokens kept in a file of ours alone, renewed."""

import fcntl
import json
import os
import ssl
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from topology.whole_files import written_whole

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
EARLY_S = 30  # before its end a token is renewed: a request takes its time, and clocks differ
TIMEOUT_S = 10.0
SLOWER_S = 5.0  # RFC 8628, section 3.5: slow_down
LEAST_LIFE_S = 60  # of a token whose issuer does not say
MOST_BYTES = 1 << 18
NOT_NOW = {"temporarily_unavailable", "server_error", "slow_down"}  # errors that say nothing of the login
UNWELL, TOO_OFTEN = 500, 429


class LoginFailed(Exception):
    """There is no login, in one line with what helps."""


class NotOurLogins(LoginFailed):
    """The file of our logins can be read by others, or is none."""


@dataclass(frozen=True, slots=True)
class AskedIssuer:
    """An issuer, as it describes itself.

    Attributes:
        issuer: its address.
        client: as which client of it we ask.
        device: where a login begins.
        token: where tokens are given.
    """

    issuer: str
    client: str
    device: str
    token: str


@dataclass(frozen=True, slots=True)
class DeviceLogin:
    """A login that waits for somebody at a browser.

    Attributes:
        asked: the issuer.
        device_code: by which we ask whether that has happened.
        code: to be entered by hand.
        address: where.
        direct: where it need not be entered; empty if there is no such address.
        every_s: how often we may ask.
        until_s: of ``time.monotonic``, when it is over.
    """

    asked: AskedIssuer
    device_code: str
    code: str
    address: str
    direct: str
    every_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class KeptLogin:
    """What is kept of a login.

    Attributes:
        issuer: who has given the token.
        client: to which client.
        endpoint: where it is renewed.
        token: what controllers are shown.
        refresh: by what it is renewed; empty if it cannot be.
        until_s: when it ends, Unix time.
    """

    issuer: str
    client: str
    endpoint: str
    token: str
    refresh: str
    until_s: float


def asked_of(issuer: str, client: str, tls: ssl.SSLContext | None) -> AskedIssuer:
    """Return an issuer, from what it says of itself (OpenID Connect Discovery 1.0, section 4; RFC 8628, section 4).

    Raises:
        LoginFailed: it does not answer, is another one, or knows no logins with a code.
    """
    _check(issuer)
    where = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    said = _answer(Request(where), tls)  # noqa: S310 (it was checked)
    device, token = said.get("device_authorization_endpoint"), said.get("token_endpoint")
    if said.get("issuer") != issuer:
        raise LoginFailed(f"{issuer} says that it is {said.get('issuer')}: name it as it does")
    if not isinstance(device, str) or not isinstance(token, str):
        raise LoginFailed(f"{issuer} has no logins with a code: set HEADWAY_TOKEN_COMMAND")
    for endpoint in (device, token):
        _check(endpoint)
    return AskedIssuer(issuer, client, device, token)


def begun(asked: AskedIssuer, scope: str) -> DeviceLogin:
    """Return a login that has begun (RFC 8628, section 3.1).

    Raises:
        LoginFailed: the issuer does not begin one.
    """
    said = _posted(asked.device, {"client_id": asked.client, "scope": scope})
    try:
        return DeviceLogin(
            asked,
            str(said["device_code"]),
            str(said["user_code"]),
            str(said["verification_uri"]),
            str(said.get("verification_uri_complete", "")),
            float(said.get("interval", 5)),
            time.monotonic() + float(said["expires_in"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LoginFailed(f"{asked.issuer}: {_error(said) or 'no code'}") from error


def finished(login: DeviceLogin, sleep: Callable[[float], object] = time.sleep) -> KeptLogin:
    """Return what a login has brought, once somebody has said yes (RFC 8628, section 3.4).

    An issuer that is not well is asked less often (section 3.5): somebody is at the browser meanwhile.

    Raises:
        LoginFailed: somebody has said no, or nobody has said anything in time.
    """
    every_s, why = login.every_s, ""
    form = {"grant_type": DEVICE_GRANT, "device_code": login.device_code, "client_id": login.asked.client}
    while time.monotonic() < login.until_s:
        sleep(every_s)
        try:
            said, why = _posted(login.asked.token, form), ""
        except LoginFailed as error:
            every_s, why = every_s + SLOWER_S, str(error)
            continue
        match said.get("error"):
            case None:
                return _kept(KeptLogin(login.asked.issuer, login.asked.client, login.asked.token, "", "", 0.0), said)
            case "authorization_pending":
                continue
            case str(kind) if kind in NOT_NOW:
                every_s += SLOWER_S
            case _:
                raise LoginFailed(f"{login.asked.issuer}: {_error(said)}")
    why = why or f"{login.asked.issuer}: nobody has entered the code in time"
    raise LoginFailed(f"{why}: headway login again")


def kept_token(path: Path, url: str) -> str | None:
    """Return the token of the login at a controller as it is kept; None if there is none, or it has ended.

    Raises:
        NotOurLogins: others can read the file.
    """
    login = _read(path).get(url.rstrip("/"))
    return login.token if login is not None and login.until_s > time.time() else None


def current_token(path: Path, url: str) -> str | None:
    """Return the token of the login at a controller, renewed if it ends soon; None if there is no login.

    While the issuer cannot renew it, the one that there is, as long as it is good.

    Raises:
        LoginFailed: its token has ended and cannot be renewed.
        NotOurLogins: others can read the file.
    """
    if url.rstrip("/") not in _read(path):
        return None
    with _locked(path):  # whoever comes second finds what the first has renewed: most issuers take a refresh once
        login = _read(path).get(url.rstrip("/"))
        if login is None or login.until_s - EARLY_S > time.time():
            return None if login is None else login.token
        again = f"headway login --issuer {login.issuer} --client {login.client}"
        if not login.refresh:
            if login.until_s > time.time():
                return login.token
            raise LoginFailed(f"the login at {url} has ended: {again}")
        form = {"grant_type": "refresh_token", "refresh_token": login.refresh, "client_id": login.client}
        try:
            said = _posted(login.endpoint, form)
            why = _error(said) if said.get("error") in NOT_NOW else ""
        except LoginFailed as error:
            said, why = {}, str(error)
        if why:
            if login.until_s > time.time():
                return login.token
            raise LoginFailed(
                f"the login at {url} cannot be renewed now ({why}): try again soon; if it stays so, {again}"
            )
        if said.get("error"):
            raise LoginFailed(f"the login at {url} has ended ({_error(said)}): {again}")
        renewed = _kept(login, said)
        _write(path, _read(path) | {url.rstrip("/"): renewed})
        return renewed.token


def keep(path: Path, url: str, login: KeptLogin) -> None:
    """Keep a login at a controller; another one there is forgotten.

    Raises:
        LoginFailed: the file cannot be written, or others can read it.
    """
    with _locked(path):
        _write(path, _read(path) | {url.rstrip("/"): login})


def forget_login(path: Path, url: str) -> bool:
    """Forget the login at a controller; return whether there was one.

    Raises:
        LoginFailed: the file cannot be written, or others can read it.
    """
    with _locked(path):
        kept = _read(path)
        was = kept.pop(url.rstrip("/"), None) is not None
        _write(path, kept)
        return was


def _kept(login: KeptLogin, said: Mapping[str, Any]) -> KeptLogin:
    """Return a login with the tokens of an answer (RFC 6749, section 5.1)."""
    token, refresh, life = said.get("access_token"), said.get("refresh_token"), said.get("expires_in", LEAST_LIFE_S)
    if not isinstance(token, str) or not isinstance(life, int | float):
        raise LoginFailed(f"{login.issuer} has given no token")
    refresh = refresh if isinstance(refresh, str) else login.refresh
    return replace(login, token=token, refresh=refresh, until_s=time.time() + life)


def _check(address: str) -> None:
    """Refuse an address at which what we say could be read on the way."""
    try:
        parts = urlsplit(address)
        good = parts.scheme == "https" or (
            parts.scheme == "http" and parts.hostname in {"127.0.0.1", "::1", "localhost"}
        )
    except ValueError:
        good = False
    if not good:
        raise LoginFailed(f"{address} is no address of an issuer: need https://...")


def _posted(address: str, form: Mapping[str, str]) -> dict[str, Any]:
    from apps.cli import trust

    headers = {"Accept": "application/json"}
    request = Request(address, urlencode(form).encode(), headers)  # noqa: S310 (it was checked)
    return _answer(request, trust.context(address, is_issuer=True))


def _answer(request: Request, tls: ssl.SSLContext | None) -> dict[str, Any]:
    """Return the JSON object of an answer, of one that says what is wrong with the request too.

    Raises:
        LoginFailed: there is none, or it is not of the request that something is wrong.
    """
    opener = build_opener(ProxyHandler(), *([HTTPSHandler(context=tls)] if tls is not None else []))
    try:
        try:
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                text = answer.read(MOST_BYTES)
        except HTTPError as error:
            if error.code >= UNWELL or error.code == TOO_OFTEN:
                raise LoginFailed(f"{request.full_url}: it answers {error.code} {error.reason}") from error
            text = error.read(MOST_BYTES)
        said = json.loads(text)
    except (URLError, OSError, HTTPException) as error:
        raise LoginFailed(f"{request.full_url}: {getattr(error, 'reason', error)}") from error
    except ValueError as error:
        raise LoginFailed(f"{request.full_url}: the answer is no JSON") from error
    if not isinstance(said, dict):
        raise LoginFailed(f"{request.full_url}: the answer is no object")
    return said


def _error(said: Mapping[str, Any]) -> str:
    words = [str(said[key]) for key in ("error", "error_description") if said.get(key)]
    return " ".join(": ".join(words).split())[:300]


def _read(path: Path) -> dict[str, KeptLogin]:
    """Return the logins in the file, by controller.

    Raises:
        NotOurLogins: others can read it, or it has something else in it.
    """
    try:
        with path.open(encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise NotOurLogins(f"{path}: others may read or write your logins: chmod 600 {path}")
            return {url: KeptLogin(**one) for url, one in json.load(file).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise NotOurLogins(f"{path}: this is no file of logins; remove it, and headway login again") from error


def _write(path: Path, logins: Mapping[str, KeptLogin]) -> None:
    with written_whole(path) as file:
        file.write(json.dumps({url: asdict(one) for url, one in logins.items()}).encode())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Be the only command that reads and writes the file meanwhile."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.with_name(f"{path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise LoginFailed(f"{path}: {error.strerror or error}") from error
