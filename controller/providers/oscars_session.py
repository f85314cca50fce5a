"""One OSCARS over HTTP: an answer that means something, or an error of ours. Knows nothing of circuits."""

import json
from collections.abc import Generator
from dataclasses import dataclass, field

import httpx

from controller.providers.errors import AnswerLost, ProviderDenied, ProviderUnavailable, SecretUnusable
from controller.providers.oscars_wire import decoded
from controller.providers.secrets import Secret

_SHOWN_CHARACTERS = 200  # of an answer that cannot be understood; Spring's own error page has about 120
_MEANT = frozenset({200, 201, 204, 400, 404, 500})  # 500 is how OSCARS refuses, and it gives no reason then


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with one of the statuses that OSCARS gives a meaning."""

    request: str
    status: int
    text: str = field(repr=False)
    shown: str

    @property
    def done(self) -> bool:
        """Return whether it says that it is done."""
        return self.status < 300

    def fields(self) -> dict[str, object]:
        """Return its JSON object.

        Raises:
            Unclear: it is none.
        """
        return decoded(self.text)

    def unclear(self, why: str) -> ProviderUnavailable:
        """Return the error that says that the answer cannot be understood, with what was received."""
        return ProviderUnavailable(self.request, f"answer {self.status} is unclear ({why}): {self.shown}")


class OscarsSession:
    """Requests to one server.

    Args:
        url: of the server.
        token: access token.
        timeout_s: for each of connecting, sending and waiting.
    """

    def __init__(self, url: str, token: Secret, timeout_s: float) -> None:
        self._bearer = _Bearer(token)
        self._client = httpx.Client(base_url=url, auth=self._bearer, timeout=timeout_s)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def call(self, method: str, path: str, body: dict[str, object] | None = None) -> Reply:
        """Return the answer to one request.

        Raises:
            ProviderDenied: our token is not accepted, or does not allow this.
            ProviderUnavailable: no answer, or one that says nothing.
            AnswerLost: and it may have been heard.
        """
        request = f"{method} {path}"
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            response = self._client.request(method, path, content=content, headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise ProviderUnavailable(request, self._shown(f"{type(error).__name__}: {error}")) from None
        except httpx.HTTPError as error:
            # Not "from error": its frames hold the request with its headers, and some logs show what frames hold.
            raise AnswerLost(request, self._shown(f"{type(error).__name__}: {error}")) from None
        except SecretUnusable as error:
            raise ProviderDenied(request, str(error)) from None
        reply = Reply(request, response.status_code, response.text, self._shown(response.text))
        if reply.status in {401, 403}:
            why = "the token is not accepted" if reply.status == 401 else "the token does not allow this"
            raise ProviderDenied(request, f"{reply.status}, {why}")
        if reply.status == 503:
            raise ProviderUnavailable(request, "503, OSCARS is starting or stopping")
        if reply.status not in _MEANT:
            unclear = reply.unclear("unknown status")
            raise AnswerLost(request, unclear.problem) if reply.status > 500 else unclear
        return reply

    def _shown(self, text: str) -> str:
        """Return the beginning of what was received, on one line and without our token, should it be in there."""
        return " ".join(text.replace(self._bearer.sent.reveal(), "...").split())[:_SHOWN_CHARACTERS]


class _Bearer(httpx.Auth):
    """Puts the token on a request when that is sent, so that it stands in no variable and no repr before.

    Attributes:
        sent: the last token sent; its file may have another one by now.
    """

    def __init__(self, token: Secret) -> None:
        self._token = token
        self.sent = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Set RFC 6750's header.

        Raises:
            SecretUnusable: there is no token any more.
        """
        value = self._token.reveal()
        self.sent = Secret(lambda: value)
        request.headers["Authorization"] = f"Bearer {value}"
        yield request
