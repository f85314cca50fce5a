"""Logging in at the page by an OpenID Connect issuer: the authorization code flow (RFC 6749) with PKCE (RFC 7636).

What must come back with the code is in a cookie that only our own address is sent, so no page of somebody else can log
a browser in as somebody it is not.
"""

import asyncio
import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import ParamSpec, TypeVar
from urllib.parse import urlencode

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from controller.northbound.known import SESSION_S, IssuerTokens, Sessions
from controller.security.issuer import IssuerSilent
from controller.security.tokens import Principal

ATTEMPT = "headway-login"  # the cookie of a login that has begun
ATTEMPT_S = 600
DONE = "/login/done"
AT_ONCE = 4  # logins that ask the issuer: anybody may begin one, and each has one of the threads that answer everybody
WAIT_S = 10.0  # for a turn

P = ParamSpec("P")
T = TypeVar("T")


class NotLoggedIn(Exception):
    """A login that has not come about; the text says why, for people."""


class OidcLogin:
    """Takes a browser to the issuer, and what it brings back."""

    def __init__(self, tokens: IssuerTokens, sessions: Sessions) -> None:
        self._tokens = tokens
        self._sessions = sessions
        self._turns = asyncio.Semaphore(AT_ONCE)

    @property
    def is_offered(self) -> bool:
        """Whether the page is a client of the issuer's."""
        return self._tokens.issuer.settings.client is not None

    async def begun(self, request: Request) -> Response:
        """Return the way to the issuer, with what only this browser will be able to bring back.

        Raises:
            NotLoggedIn: the issuer does not answer.
        """
        try:
            address = (await self._asked(self._tokens.issuer.document))["authorization_endpoint"]
        except (IssuerSilent, KeyError) as error:
            raise NotLoggedIn(f"{self._tokens.issuer.settings.issuer} does not answer; try again later") from error
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        asked = {
            "response_type": "code",
            "client_id": self._tokens.issuer.settings.client,
            "redirect_uri": self._redirect(request),
            "scope": "openid profile",
            "state": state,
            "nonce": nonce,
            "code_challenge": urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        answer = RedirectResponse(f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}", 303)
        kept = f"{state}.{nonce}.{verifier}"
        # Lax and not Strict: the issuer's page leads back here, and then this must be sent.
        safe = self._is_secret(request)
        answer.set_cookie(ATTEMPT, kept, ATTEMPT_S, path=DONE, httponly=True, secure=safe, samesite="lax")
        return answer

    async def done(self, request: Request) -> tuple[Principal, str]:
        """Return who has logged in, and the session that begins.

        Raises:
            NotLoggedIn: nobody has.
        """
        kept = request.cookies.get(ATTEMPT, "").split(".")
        said = request.query_params
        if len(kept) != 3 or not hmac.compare_digest(kept[0].encode(), said.get("state", "").encode()):
            raise NotLoggedIn("this login was not begun in this browser, or too long ago: begin again")
        if "code" not in said:
            raise NotLoggedIn(f"the issuer says no: {said.get('error', 'without a word')[:100]}")
        issuer, client = self._tokens.issuer, self._tokens.issuer.settings.client or ""
        try:
            token = await self._asked(issuer.redeemed, said["code"], kept[2], self._redirect(request))
            await self._tokens.ready_for(token)
            claims = issuer.claims(token, client)
        except IssuerSilent as error:
            raise NotLoggedIn(str(error)) from error
        if claims is None or not hmac.compare_digest(str(claims.get("nonce", "")).encode(), kept[1].encode()):
            raise NotLoggedIn("what the issuer says of you is not for us, or not of this login: begin again")
        who = issuer.who(claims)
        if who is None:
            raise NotLoggedIn("you are in no group that may anything here: ask who operates the site")
        return who, self._sessions.begin(who)

    def keep(self, request: Request, answer: Response, cookie: str, session: str) -> None:
        """Let the browser keep a session."""
        safe = self._is_secret(request)
        answer.set_cookie(cookie, session, max_age=SESSION_S, httponly=True, secure=safe, samesite="strict")
        answer.delete_cookie(ATTEMPT, path=DONE, httponly=True, samesite="lax")

    def end(self, session: str) -> None:
        """Forget a session."""
        self._sessions.end(session)

    async def _asked(self, ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the issuer says, asked in a thread; who waits for a turn has none.

        Raises:
            IssuerSilent: so many log in that there is no turn in time, or the issuer does not answer.
        """
        try:
            async with asyncio.timeout(WAIT_S):
                await self._turns.acquire()
        except TimeoutError as error:
            raise IssuerSilent("too many log in: try again later") from error
        try:
            return await run_in_threadpool(ask, *args, **kwargs)
        finally:
            self._turns.release()

    def _redirect(self, request: Request) -> str:
        page = self._tokens.issuer.settings.page
        return f"{str(request.base_url).rstrip('/') if page is None else page}{DONE}"

    def _is_secret(self, request: Request) -> bool:
        return self._redirect(request).startswith("https:")
