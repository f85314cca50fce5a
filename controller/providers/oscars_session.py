"""One OSCARS over HTTP: an answer that means something, or an error of ours. Knows nothing of circuits."""

import time

from controller.providers.errors import AnswerLost, ProviderDenied, ProviderError, ProviderUnavailable
from controller.providers.http_session import HttpSession, Reply
from controller.providers.secrets import Secret
from controller.providers.tokens import ended

_PING = "/protected/ping"
_GROUPS = "ask who runs the login for one whose claim groups has a group of OSCARS' users"
RENEW = "put a new one where the configuration says; a token_file is read for each request"
_MEANT = frozenset({200, 201, 204, 400, 404, 500})  # 500 is how OSCARS refuses, and it gives no reason then


class OscarsSession(HttpSession):
    """Requests to one server.

    Args:
        url: of the server.
        token: access token.
        timeout_s: for a part of an answer.
    """

    def __init__(self, url: str, token: Secret, timeout_s: float) -> None:
        super().__init__(url, token, timeout_s)

    def call(self, method: str, path: str, body: dict[str, object] | None = None) -> Reply:
        """Return the answer to one request.

        Raises:
            ProviderDenied: our token is not accepted, or does not allow this.
            ProviderUnavailable: no answer, or one that says nothing.
            AnswerLost: and it may have been heard.
        """
        reply = self.sent(method, path, body)
        self._check_token(path, reply)
        if reply.status == 503:
            raise ProviderUnavailable(reply.request, "503, OSCARS is starting or stopping")
        if reply.status not in _MEANT:
            unclear = reply.unclear("unknown status")
            raise AnswerLost(reply.request, unclear.problem) if reply.status > 500 else unclear
        return reply

    def _check_token(self, path: str, reply: Reply) -> None:
        """See whether an answer is about our token.

        To one without groups OSCARS answers 500, as it refuses; but then to a question that nobody is refused, too.

        Raises:
            ProviderDenied: it is.
        """
        if reply.status == 401:
            why = ended(self.sent_token, time.time())
            raise ProviderDenied(reply.request, f"401, the token is not accepted{why and ', '}{why}", RENEW)
        if reply.status == 403:
            raise ProviderDenied(reply.request, "403, the token does not allow this", _GROUPS)
        if reply.status == 500 and path.startswith("/protected/") and self._ping() == 500:
            why = "500, as to whatever is asked with this token: OSCARS finds no groups in it"
            raise ProviderDenied(reply.request, why, _GROUPS)

    def _ping(self) -> int | None:
        """Return the status of a question that needs a good token and nothing else; None if nobody answers."""
        try:
            return self.sent("GET", _PING).status
        except ProviderError:
            return None
