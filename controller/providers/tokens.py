"""Access tokens: what one says of itself, and a login that has a new one before the old one ends.

A token is read, never verified: that is for who accepts it. What is read of it makes an error say what is wrong.
"""

import base64
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from controller.providers.errors import SecretUnusable
from controller.providers.secrets import Secret, one_line
from controller.security.authorities import trusted
from controller.security.whole_answers import whole_answer
from controller.settings.urls import is_http_url
from topology.printable import without_halves
from topology.units import shown_time

_EARLY_S = 60  # a token that ends this soon may have ended when it arrives
_UNSAID_S = 2 * _EARLY_S  # how long a token is good if nobody says so: it is used for a minute
_AGAIN_S = 60  # who accepts no token at all has us log in no more often
_MOST_S = 10**11  # of Unix time: the year 5138
_TIMEOUT_S = 10.0
_SHOWN_CHARACTERS = 100


def claims(token: str) -> dict[str, object]:
    """Return what a JWT (RFC 7519) says of itself, unverified; nothing if it is none.

    >>> claims("e30.eyJleHAiOiAxN30.x"), claims("an-opaque-token")
    ({'exp': 17}, {})
    """
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        said = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
    except ValueError:
        return {}
    return _object(said)


def ends_s(token: str) -> float | None:
    """Return when a token ends, Unix seconds; None if it does not say."""
    return _seconds(claims(token).get("exp"))


def ended(token: str, now_s: float) -> str:
    """Return that a token has ended, and when, for people; empty if it has not, or does not say."""
    end_s = ends_s(token)
    return "" if end_s is None or now_s < end_s else f"it has ended at {shown_time(int(end_s * 1e6))}"


@dataclass(frozen=True, slots=True)
class LoginSettings:
    """Where tokens are had (RFC 6749).

    Attributes:
        url: the token endpoint.
        client: the client's id.
        user: whose password ``secret`` is; empty if it is the client's own secret.
        secret: sent to ``url`` alone.

    Raises:
        ValueError: there is no such place.
    """

    url: str
    client: str
    user: str
    secret: Secret

    def __post_init__(self) -> None:
        """Refuse what could not work."""
        if not is_http_url(self.url):
            raise ValueError('need the URL of a token endpoint, try "https://login.example/realms/x/protocol/token"')

    def form(self) -> dict[str, str]:
        """Return what is sent: the grant of a user's password, or of the client's credentials."""
        if self.user:
            return {
                "grant_type": "password",
                "client_id": self.client,
                "username": self.user,
                "password": self.secret.reveal(),
            }
        return {
            "grant_type": "client_credentials",
            "client_id": self.client,
            "client_secret": self.secret.reveal(),
        }


class Login:
    """Has a token that is good for a minute at least, as long as somebody gives one.

    Args:
        settings: where, and as whom.
        now_s: Unix time, seconds.
        part_s: how long a part of an answer may take, seconds (:func:`~controller.security.whole_answers.whole`).
    """

    def __init__(
        self, settings: LoginSettings, now_s: Callable[[], float] = time.time, part_s: float = _TIMEOUT_S
    ) -> None:
        self._settings = settings
        self._now_s = now_s
        self._part_s = part_s
        self._lock = threading.Lock()
        self._token = ""
        self._given_s = 0.0
        self._end_s = 0.0

    def token(self) -> str:
        """Return an access token; a new one a minute before the one before ends.

        Raises:
            SecretUnusable: none is to be had, and the one before has ended.
        """
        with self._lock:
            if self._now_s() >= self._end_s - _EARLY_S:
                try:
                    self._renew()
                except SecretUnusable:
                    if self._now_s() >= self._end_s:
                        raise
            return self._token

    def refused(self, token: str) -> None:
        """Ask for another one next, for this one was not accepted; a new one is kept, since another is no better."""
        with self._lock:
            now_s = self._now_s()
            if token == self._token and now_s >= self._given_s + _AGAIN_S:
                self._end_s = min(self._end_s, now_s)

    def _asked(self, client: httpx.AsyncClient) -> httpx.Request:
        return client.build_request("POST", self._settings.url, data=self._settings.form())

    def _renew(self) -> None:
        source = f"login at {self._settings.url}"
        asked_s = self._now_s()
        try:
            answer = whole_answer(self._asked, self._part_s, trusted())
        # Not "from error": its request has the secret.
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise SecretUnusable(source, f"does not answer ({type(error).__name__})") from None
        found = _object(answer.text)
        token, lasts_s = found.get("access_token"), _seconds(found.get("expires_in"))
        if answer.status_code != 200 or not isinstance(token, str) or not token:
            why = str(found.get("error_description") or found.get("error") or "no access_token")[:_SHOWN_CHARACTERS]
            raise SecretUnusable(source, f"gives no token: {answer.status_code}, {why}")
        known_s = ends_s(token) if lasts_s is None else asked_s + lasts_s
        self._token, self._given_s = one_line(source, token), asked_s
        self._end_s = asked_s + _UNSAID_S if known_s is None else known_s


def _seconds(value: object) -> float | None:
    """Return a time of a token's; None if it is no number, or one that no token means."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_S:
        return None
    return float(value)


def _object(text: str | bytes) -> dict[str, object]:
    try:
        found = without_halves(json.loads(text))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
