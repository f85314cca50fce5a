"""Who asks, and whether that may.

Both are known before a handler looks anything up, so that a refusal tells nothing of what exists.
"""

import re
import secrets
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from math import ceil
from urllib.parse import quote

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.asker import Asker, asking
from controller.northbound.gate import READS
from controller.northbound.known import SESSION, IssuerTokens, Sessions
from controller.northbound.rest.answers import problem
from controller.security.connections import counted_as
from controller.security.issuer import AGAIN_S, IssuerSilent, is_jwt
from controller.security.rates import Rates, RequestRate
from controller.security.tokens import Principal, Role, Tokens

log = structlog.get_logger()

FOR_ALL = frozenset(
    {"/docs", "/docs/style.css", "/openapi.json", "/login", "/login/oidc", "/login/done"}
)  # the same in every copy of this program
STATIC = "/static/"  # likewise
LOCAL = "headway.local"  # the extension of a request that has come by our socket on this machine
SESSION_PATH = "/session"  # where a browser is given its token to keep, and forgets it
COOKIE = "headway-token"
PAGES = ("/reservations/", "/announcements/", "/hosts/", "/circuits/", "/switches/", "/transitions", "/events")
CHANGES = "/v1/changes"  # what others do, and from where
CALENDAR = "/v1/calendar.ics"
REQUEST_ID = "x-request-id"
_GOOD_ID = re.compile(r"[\x21-\x7e]{1,64}")
_PROMISES = re.compile(r"/v1/(reservations|announcements)(/|$)")  # whose each is, is asked when it is changed


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Who may do what.

    Attributes:
        tokens: those in force.
        now: the wall clock; a token's end is a date that people know.
        local: what somebody on this machine may who shows no token; None for nothing.
        anybody: the same for all others.
        rate: how often each principal may ask; None for as often as it likes.
        certificates: by a client certificate's name, who that is.
        issuer: by whose tokens people are known, beside ours; None for nobody's.
        sessions: who has logged in at the page by the issuer.
    """

    tokens: Callable[[], Tokens]
    now: Callable[[], datetime]
    local: Role | None = None
    anybody: Role | None = None
    rate: RequestRate | None = None
    certificates: Mapping[str, Principal] = field(default_factory=dict)
    issuer: IssuerTokens | None = None
    sessions: Sessions = field(default_factory=Sessions)


def all_may(now: Callable[[], datetime]) -> AccessRules:
    """Return the rules of who can only be reached from where everybody is trusted."""
    return AccessRules(lambda: Tokens(()), now, Role.ADMIN, Role.ADMIN)


class Access:
    """Stands behind the gate and before the handlers."""

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        self._app = app
        self._rules = rules
        self._rates = None if rules.rate is None else Rates(rules.rate, lambda: time.monotonic_ns() // 1000)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its principal, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, client = Headers(scope=scope), scope.get("client")
        needed = role_needed(scope["method"], scope["path"])
        shown = headers.getlist("authorization") or _kept(scope["method"], headers)
        address = client[0] if client else ""
        silent, who = None, None
        try:
            who = await self._who(scope, shown, address)
        except IssuerSilent as error:
            silent = error
        asker = asker_of(who, "unix" if is_of_here(scope) else address, _request_id(headers))
        is_over = False

        async def named(message: Message) -> None:
            nonlocal is_over
            if is_over:
                return
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = asker.request_id
            elif message.get("more_body") and needed and not await self._may_still(scope, shown, address, needed):
                is_over, message = True, {"type": "http.response.body"}
            await send(message)

        answer = None if needed is None else self._too_often(who, asker)
        if answer is None and needed is not None and silent is not None:
            answer = problem(503, "issuer-silent", str(silent), {}, {"Retry-After": str(ceil(AGAIN_S))})
        if answer is None and needed is not None and (who is None or not who.role.includes(needed)):
            log.info(
                "access.refused",
                who=who.name if who else None,
                address=asker.address,
                needs=needed.value,
                request=asker.request_id,
            )
            answer = _refused(scope, who, needed, shown=bool(shown))
        if answer is not None:
            await answer(scope, receive, named)
            return
        scope.setdefault("state", {})["principal"] = who
        with asking(asker):
            await self._app(scope, receive, named)

    async def _who(self, scope: Scope, shown: list[str], address: str) -> Principal | None:
        """Return who asks.

        Raises:
            IssuerSilent: by a token of an issuer that does not answer.
        """
        token = _token(shown[0]) if len(shown) == 1 else ""
        if self._rules.issuer is not None and is_jwt(token):
            return await self._rules.issuer.principal(token)
        if not shown and is_of_here(scope):
            return Principal("local", Role.ADMIN)
        return principal(self._rules, shown, address, client_named(scope))

    async def _may_still(self, scope: Scope, shown: list[str], address: str, needed: Role) -> bool:
        """Return whether who asks may hear more of an answer that has no end, such as of what happens.

        A token may have been revoked since, or its end have come.
        """
        try:
            who = await self._who(scope, shown, address)
        except IssuerSilent:
            return False
        return who is not None and who.role.includes(needed)

    def _too_often(self, who: Principal | None, asker: Asker) -> Response | None:
        """Return the answer to who asks more often than it may; None for all others."""
        wait_us = 0 if self._rates is None else self._rates.wait_us(_counted_as(who, asker.address))
        if not wait_us:
            return None
        detail = f"you ask more often than {asker.who} may: wait {wait_us / 1e6:.1f} s"
        return problem(429, "too-many", detail, {}, {"Retry-After": str(ceil(wait_us / 1e6))})


def _refused(scope: Scope, who: Principal | None, needed: Role, *, shown: bool) -> Response:
    """Return the answer to who may not, whatever there is."""
    path = scope["path"]
    if who is not None:
        detail = f'this needs the role "{needed}", yours is "{who.role}"'
        return problem(403, "role-missing", detail, {"needs": needed, "has": who.role})
    if scope["method"] in READS and (path == "/" or path.startswith(PAGES)):
        return RedirectResponse(f"/login?to={quote(path)}", 303)
    why = "the token is none of ours, or its end has come" if shown else "say who you are"
    challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"' if shown else "Bearer"}
    if path == CALENDAR:  # a calendar program asks its user for what it can send
        challenge = {"WWW-Authenticate": 'Basic realm="Headway: any name, a token", Bearer'}
    detail = f'{why}: this needs "Authorization: Bearer TOKEN" with the role "{needed}"'
    return problem(401, "not-authenticated", detail, {"needs": needed}, challenge)


def is_of_here(scope: Scope) -> bool:
    """Return whether a request has come by our socket on this machine, which root and our user alone may open.

    A connection without an address is none: that of a stranger may be gone before it is looked at.
    """
    return LOCAL in scope.get("extensions", {})


def client_named(scope: Scope) -> str | None:
    """Return the name in the certificate that a client has shown, which was verified; None if it has shown none."""
    name = scope.get("extensions", {}).get("tls", {}).get("client_cert_name")
    return name if isinstance(name, str) else None


def role_needed(method: str, path: str) -> Role | None:
    """Return the role that a request needs; None if it is everybody's.

    It depends on what is asked for alone, and not on what there is: whose that is, is asked when the role suffices.

    >>> role_needed("GET", "/v1/plan"), role_needed("POST", "/v1/reservations/any/commit"), role_needed("GET", "/docs")
    (<Role.READ: 'read'>, <Role.RESERVE: 'reserve'>, None)
    """
    if path == CHANGES:
        return Role.ADMIN
    if path == SESSION_PATH:
        return None
    if method in READS:
        return None if path in FOR_ALL or path.startswith(STATIC) else Role.READ
    return Role.RESERVE if _PROMISES.match(path) else Role.OPERATE


def asker_of(who: Principal | None, address: str, request_id: str) -> Asker:
    """Return who asks, as what is decided must know it."""
    if who is None:
        return Asker("nobody", address, request_id)
    return Asker(who.name, address, request_id, who.groups, who.role.includes(Role.OPERATE))


def _counted_as(who: Principal | None, address: str) -> str:
    """Return whose requests are counted together: a principal's; of who has none, its network's."""
    return f"nobody at {counted_as(address)}" if who is None else who.name


def _request_id(headers: Headers) -> str:
    """Return the name of a request: its client's, or one that is made up."""
    said = headers.get(REQUEST_ID, "")
    return said if _GOOD_ID.fullmatch(said) else secrets.token_hex(8)


def _kept(method: str, headers: Headers) -> list[str]:
    """Return the token that a browser keeps for us, as the header of who shows one.

    A request that changes something counts only with the ``Origin`` that browsers send with it, which the gate has
    compared with ours: no page of somebody else can use the token.
    """
    if method not in READS and "origin" not in headers:
        return []
    token = cookie_parser(headers.get("cookie", "")).get(COOKIE)
    return [f"Bearer {token}"] if token else []


def principal(rules: AccessRules, shown: list[str], address: str, certificate: str | None = None) -> Principal | None:
    """Return who asks; who shows a token is known by that alone, else by a certificate, else by where from.

    Args:
        rules: the rules.
        shown: the headers ``Authorization``.
        address: where from; empty if that is not known.
        certificate: the name in a client certificate, if one was shown.
    """
    if shown:
        token = _token(shown[0]) if len(shown) == 1 else ""
        if token.startswith(SESSION):
            return rules.sessions.principal(token)
        return rules.tokens().principal(token, rules.now()) if token else None
    if certificate is not None and certificate in rules.certificates:
        return rules.certificates[certificate]
    name, role = ("local", rules.local) if _is_here(address) else ("anybody", rules.anybody)
    return None if role is None else Principal(name, role)


def _token(shown: str) -> str:
    """Return the token of a header ``Authorization``; empty if there is none.

    It is a bearer's (RFC 6750), or the password of the basic scheme (RFC 7617), which calendar programs can send.

    >>> _token("Bearer hw_a_b"), _token("Basic YW5hOmh3X2FfYg=="), _token("Basic !"), _token("Digest x")
    ('hw_a_b', 'hw_a_b', '', '')
    """
    kind, _, value = shown.partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() != "basic":
        return ""
    try:
        return b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _is_here(address: str) -> bool:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
