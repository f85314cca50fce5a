"""Who is known beside those with a token of ours: by an issuer's token, by a login at the page, by a certificate."""

import asyncio
import secrets
import time
from collections.abc import Callable

from controller.security.issuer import Freshness, Issuer
from controller.security.tokens import Principal

SESSION = "hs_"
SESSION_S = 3_600  # then the issuer is asked again: it may know somebody no more
MOST_SESSIONS = 10_000


class IssuerTokens:
    """Knows people by an issuer's tokens; it is asked in a thread, and by one request for all that wait for it."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self._refreshing: asyncio.Task[None] | None = None

    async def principal(self, token: str) -> Principal | None:
        """Return whose token it is; None if it is none.

        Raises:
            IssuerSilent: nobody can tell.
        """
        await self.ready_for(token)
        return self.issuer.principal(token)

    async def ready_for(self, token: str) -> None:
        """Have the keys for a token, if the issuer has them and answers."""
        freshness = self.issuer.freshness(token)
        running = self._refreshing
        if running is not None and (running.done() or running.get_loop() is not asyncio.get_running_loop()):
            running = self._refreshing = None
        if running is None and freshness is not Freshness.GOOD:
            running = self._refreshing = asyncio.create_task(asyncio.to_thread(self.issuer.refresh))
        if running is not None and (freshness is Freshness.MISSING or not self.issuer.has_key(token)):
            await asyncio.shield(running)


class Sessions:
    """Who has logged in at the page by an issuer; kept in memory, so that a browser never has the issuer's token."""

    def __init__(self, elapsed_s: Callable[[], float] = time.monotonic) -> None:
        self._elapsed_s = elapsed_s
        self._known: dict[str, tuple[Principal, float]] = {}

    def begin(self, who: Principal) -> str:
        """Return the name of a session that begins; only its browser knows it."""
        now_s = self._elapsed_s()
        self._known = {name: one for name, one in self._known.items() if one[1] > now_s}
        while len(self._known) >= MOST_SESSIONS:
            del self._known[next(iter(self._known))]
        name = SESSION + secrets.token_urlsafe(32)
        self._known[name] = (who, now_s + SESSION_S)
        return name

    def principal(self, name: str) -> Principal | None:
        """Return whose session it is; None if it is none, or over."""
        who, until_s = self._known.get(name, (None, 0.0))
        return who if until_s > self._elapsed_s() else None

    def end(self, name: str) -> None:
        """Forget a session."""
        self._known.pop(name, None)
