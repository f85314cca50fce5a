"""One provider's server over HTTP: an answer, or an error that says whether the request may have been heard."""

import asyncio
import json
import ssl
from collections.abc import Generator
from dataclasses import dataclass, field
from http import HTTPStatus

import httpx
import structlog

from controller.providers.errors import AnswerLost, ProviderDenied, ProviderUnavailable, SecretUnusable
from controller.providers.secrets import Secret
from controller.security.authorities import trusted
from controller.security.renewed import Renewed
from controller.security.whole_answers import reason, whole

log = structlog.get_logger()

_SHOWN_CHARACTERS = 200  # of an answer that cannot be understood


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    request: str
    status: int
    text: str = field(repr=False)
    shown: str

    @property
    def done(self) -> bool:
        """Return whether it says that it is done."""
        return self.status < 300

    def unclear(self, why: str) -> ProviderUnavailable:
        """Return the error that says that the answer cannot be understood, with what was received."""
        return ProviderUnavailable(self.request, f"answer {self.status} is unclear ({why}): {self.shown}")


class HttpSession:
    """Requests to one server, one after the other. Not for a thread that has an event loop.

    Args:
        url: of the server.
        token: access token; None where another thing says who we are.
        timeout_s: for a part of an answer (:func:`~controller.security.whole_answers.whole`).
        tls: how its certificate is verified, and which is ours, looked at before each request; None for the system's
            authorities and none.
    """

    def __init__(
        self, url: str, token: Secret | None, timeout_s: float, tls: Renewed[ssl.SSLContext | None] | None = None
    ) -> None:
        self._url, self._timeout_s, self._tls = url, timeout_s, tls
        self._bearer = None if token is None else _Bearer(token)
        self._loop = asyncio.Runner()  # its connections live as long as it does
        self._client = self._connected()

    def _connected(self) -> httpx.AsyncClient:
        verify = (self._tls and self._tls.value) or trusted()
        return httpx.AsyncClient(base_url=self._url, auth=self._bearer, timeout=self._timeout_s, verify=verify)

    def _renew(self) -> None:
        """Take files of TLS that have changed into use; while they do not fit each other, those before are."""
        try:
            if self._tls is None or not self._tls.refreshed():
                return
        except OSError as error:
            log.error("tls.unusable", url=self._url, error=str(error))  # noqa: TRY400 (the text says all)
            return
        before, self._client = self._client, self._connected()
        self._loop.run(before.aclose())
        log.info("tls.read", url=self._url)

    def close(self) -> None:
        """Close its connections."""
        self._loop.run(self._client.aclose())
        self._loop.close()

    @property
    def sent_token(self) -> str:
        """The last token sent; its file may have another one by now."""
        return "" if self._bearer is None else self._bearer.sent.reveal()

    def sent(self, method: str, path: str, body: dict[str, object] | None = None) -> Reply:
        """Return the answer to one request, whatever its status.

        Raises:
            ProviderDenied: there is no token to send.
            ProviderUnavailable: nobody has heard it.
            AnswerLost: no answer, and it may have been heard.
        """
        self._renew()
        request = f"{method} {path}"
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            if self._bearer is not None:
                self._bearer.renew()
        except SecretUnusable as error:
            raise ProviderDenied(request, str(error), "put the secret where the configuration says") from None
        try:
            asked = self._client.build_request(method, path, content=content, headers=headers)
            response = self._loop.run(whole(self._client, asked, self._timeout_s))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.InvalidURL, ValueError) as error:
            raise ProviderUnavailable(request, self._shown(f"{type(error).__name__}: {reason(error)}")) from None
        except (httpx.HTTPError, OSError) as error:  # OSError: not whole in time, too long, or TLS has failed since
            # Not "from error": its frames hold the request with its headers, and some logs show what frames hold.
            raise AnswerLost(request, self._shown(f"{type(error).__name__}: {reason(error)}")) from None
        return Reply(request, response.status_code, response.text, self._shown(response.text))

    def _shown(self, text: str) -> str:
        """Return the beginning of what was received, on one line and without our token, should it be in there."""
        token = self.sent_token
        return " ".join((text.replace(token, "...") if token else text).split())[:_SHOWN_CHARACTERS]


class _Bearer(httpx.Auth):
    """Puts the token on a request when that is sent, so that it stands in no variable and no repr before.

    Attributes:
        sent: the last token sent, or the one that is sent next.
    """

    def __init__(self, token: Secret) -> None:
        self._token = token
        self.sent = token

    def renew(self) -> None:
        """Take the token as it is now. This may ask for a new one, and wait: not in an event loop.

        Raises:
            SecretUnusable: there is no token any more.
        """
        value = self._token.reveal()
        self.sent = Secret(lambda: value)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Set RFC 6750's header."""
        value = self.sent.reveal()
        request.headers["Authorization"] = f"Bearer {value}"
        response = yield request
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            self._token.refused(value)
