"""What stands before every handler: which names we answer to, what browsers may send, and what answers let them do.

A browser can be led to us by a page of somebody else: by a name of theirs that has our address (DNS rebinding), which
``Host`` shows, or by a form or script that writes, which ``Origin`` and ``Sec-Fetch-Site`` show (Fetch Standard).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.northbound.rest.answers import JSON, problem

READS = frozenset({"GET", "HEAD", "OPTIONS"})
FOREIGN = frozenset({"cross-site", "same-site"})  # what Sec-Fetch-Site says of pages that are not ours
# No answer runs a script, loads anything or stands in another's page; /docs says itself what it needs.
HARMLESS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """A request that no handler sees: its status, the problem's kind, and what to do about it."""

    status: int
    kind: str
    detail: str


class Gate:
    """Turns away what no client of ours sends, before anything of it is read; makes answers harmless to browsers."""

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        """Stand before an application.

        Args:
            app: that.
            names: by which we may be asked for, beside addresses and localhost.
        """
        self._app = app
        self._names = frozenset(name.lower().rstrip(".") for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def harmless(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HARMLESS.items():
                    headers.setdefault(name, value)
            await send(message)

        wrong = turned_away(scope["method"], scope["http_version"], Headers(scope=scope), self._names)
        if not scope["query_string"].isascii():  # RFC 3986, section 2: everything else is percent-encoded
            wrong = TurnedAway(400, "malformed", "the query has bytes that must be percent-encoded")
        if wrong is None:
            await self._app(scope, receive, harmless)
        else:
            await problem(wrong.status, wrong.kind, wrong.detail, {})(scope, receive, harmless)


def turned_away(method: str, version: str, headers: Headers, names: frozenset[str]) -> TurnedAway | None:
    """Return why a request is turned away; None if it is not.

    Args:
        method: its method.
        version: of HTTP.
        headers: its headers.
        names: by which we may be asked for, lower case, beside addresses and localhost; ``*`` is for any one label.
    """
    hosts = headers.getlist("host")
    if len(hosts) > 1 or (not hosts and version != "1.0"):
        return TurnedAway(400, "malformed", "say in one Host header whom you ask")  # RFC 9112, section 3.2
    if hosts and not _is_ours(hosts[0], names):
        return TurnedAway(421, "misdirected", "we do not go by this name; listen.names in the configuration has ours")
    return None if method in READS else _writing(headers)


def _writing(headers: Headers) -> TurnedAway | None:
    """Return why a request that changes something is turned away."""
    host = headers.get("host", "")
    if any(not _is_same(origin, host) for origin in headers.getlist("origin")) or (
        headers.get("sec-fetch-site") in FOREIGN
    ):
        return TurnedAway(403, "other-origin", "a page of another origin may not change anything here")
    said = headers.get("content-type")
    if (said is not None or _has_body(headers)) and not is_json(said or ""):
        return TurnedAway(415, "media-type", f'send "Content-Type: {JSON}", got "{said or ""}"')
    return None


def is_json(content_type: str) -> bool:
    """Return whether a media type is JSON or written in it.

    >>> is_json("application/problem+json; charset=utf-8"), is_json("text/plain")
    (True, False)
    """
    kind = content_type.partition(";")[0].strip().lower()
    return kind == JSON or (kind.startswith("application/") and kind.endswith("+json"))


def _has_body(headers: Mapping[str, str]) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _is_ours(host: str, names: frozenset[str]) -> bool:
    """Return whether a Host header is an address, this machine, or one of our names."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        if name == "localhost" or name in names or f"*.{name.partition('.')[2]}" in names:  # as RFC 6125, section 6.4.3
            return True
        return bool(ip_address(name.partition("%")[0]))
    except ValueError:
        return False


def _is_same(origin: str, host: str) -> bool:
    """Return whether a page's origin is the host that is asked; ``null``, which sandboxed pages send, is nobody's."""
    scheme, separator, place = origin.partition("://")
    return bool(separator) and scheme in {"http", "https"} and place.lower() == host.lower()
