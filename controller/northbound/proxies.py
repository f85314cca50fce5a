"""For whom a reverse proxy asks: believed of those that the configuration names, and of nobody else."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

UNKNOWN = "unknown"  # RFC 7239, section 6: whoever a proxy does not name
Proxies = tuple[IPv4Network | IPv6Network, ...]


class Proxied:
    """Stands before everything: says who has asked, and by what, where a named proxy has passed a request on."""

    def __init__(self, app: ASGIApp, proxies: Proxies) -> None:
        self._app = app
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        client = scope.get("client")
        if scope["type"] == "http" and client and is_named(client[0], self._proxies):
            headers = Headers(scope=scope)
            scope["client"] = (asked_for(headers.getlist("x-forwarded-for"), self._proxies), 0)
            said = headers.getlist("x-forwarded-proto")
            scope["scheme"] = "https" if [each.strip().lower() for each in said] == ["https"] else "http"
            scope.pop("extensions", None)  # the proxy's own certificate is not that of who asks
        await self._app(scope, receive, send)


def is_named(address: str, proxies: Proxies) -> bool:
    """Return whether an address is one of the proxies'."""
    if not proxies:
        return False
    found = _address(address)
    return found is not None and any(found in network for network in proxies)


def asked_for(said: list[str], proxies: Proxies) -> str:
    """Return for whom a proxy asks: the last address in ``X-Forwarded-For`` that is not a proxy's itself.

    What stands before it, anybody could have written. It is never this machine: what only its users may is not for who
    comes by a proxy.

    >>> from ipaddress import ip_network
    >>> asked_for(["127.0.0.1, 203.0.113.5"], ()), asked_for(["203.0.113.5, 192.0.2.7"], (ip_network("192.0.2.7"),))
    ('203.0.113.5', '203.0.113.5')
    >>> asked_for(["127.0.0.1"], ()), asked_for([], ()), asked_for(["203.0.113.5, x"], ())
    ('unknown', 'unknown', 'unknown')
    """
    for text in reversed([each.strip() for header in said for each in header.split(",")]):
        if is_named(text, proxies):
            continue
        found = _address(text)
        return UNKNOWN if found is None or found.is_loopback else str(found)
    return UNKNOWN


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
