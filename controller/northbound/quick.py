"""The two requests that must be quick, hold and commit, without FastAPI's way to a handler.

That way (routing, dependencies, stacks for what is to be closed) takes a fifth of the processor's time of a request.
Whatever is not plain goes that way still: so what is wrong with a request is said by the same code as ever.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable

from fastapi import Request, Response
from pydantic import ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.northbound.rest.bodies import ReservationIn

HOLD = "/v1/reservations"
_COMMIT = re.compile(r"/v1/reservations/([^/]+)/commit")
MOST_BODY_BYTES = 64 * 1024
_NOT_PLAIN = frozenset({b"idempotency-key", b"transfer-encoding"})


class Quick:
    """Stands behind everything that decides who may ask, before what counts the bytes of a body."""

    def __init__(
        self,
        app: ASGIApp,
        hold: Callable[[ReservationIn], Awaitable[Response]],
        commit: Callable[[str], Awaitable[Response]],
        errors: Iterable[type[Exception]],
        problem_of: Callable[[Request, Exception], Awaitable[Response]],
    ) -> None:
        """Stand before an application.

        Args:
            app: what answers all else.
            hold: answers a request for a reservation.
            commit: answers the request to commit the one of this name.
            errors: what both may raise.
            problem_of: makes an answer of that.
        """
        self._app = app
        self._hold = hold
        self._commit = commit
        self._errors = tuple(errors)
        self._problem_of = problem_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on as it has come."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
            await self._app(scope, receive, send)
            return
        answers: Awaitable[Response] | None = None
        if scope["path"] == HOLD and _is_plain(scope):
            message = await receive()
            if (asked := _asked(message)) is None:
                await self._app(scope, _again(message, receive), send)
                return
            answers = self._hold(asked)
        elif found := _COMMIT.fullmatch(scope["path"]):
            answers = self._commit(found[1])
        if answers is None:
            await self._app(scope, receive, send)
            return
        try:
            response = await answers
        except self._errors as error:
            response = await self._problem_of(Request(scope, receive), error)
        await response(scope, receive, send)


def _is_plain(scope: Scope) -> bool:
    """Return whether a request has a small body and asks for nothing but what that says."""
    headers = dict(scope["headers"])
    if _NOT_PLAIN & headers.keys() or len(headers) < len(scope["headers"]):
        return False
    length = headers.get(b"content-length", b"")
    return length.isdigit() and 0 < int(length) <= MOST_BODY_BYTES


def _asked(message: Message) -> ReservationIn | None:
    """Return what is asked for; None if it is not here whole, or makes no sense."""
    if message["type"] != "http.request" or message.get("more_body"):
        return None
    try:
        return ReservationIn.model_validate(json.loads(message.get("body", b"")))
    except (ValueError, RecursionError, ValidationError):
        return None


def _again(message: Message, receive: Receive) -> Receive:
    """Return what receives a message that was received already, and then all that comes."""
    first = [message]

    async def received() -> Message:
        return first.pop() if first else await receive()

    return received
