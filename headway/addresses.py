"""Where a controller takes requests, as people write it."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from headway.errors import NotAUrl

PORTS = {"http": 80, "https": 443}
_NEED = "need http://HOST:PORT, https://HOST:PORT or unix:/PATH"


class RestAddress(NamedTuple):
    """Where a controller takes requests; the host of a ``unix`` one is the path of its socket."""

    url: str
    scheme: str
    host: str
    port: int | None
    prefix: str


def addresses(url: str) -> tuple[str, ...]:
    """Return the addresses that one address may stand for, those of a pair.

    None may be empty: most often a variable is not set, and the other one of a pair would never be asked.

    >>> addresses("https://ctl-a.example.org, https://ctl-b.example.org")
    ('https://ctl-a.example.org', 'https://ctl-b.example.org')

    Raises:
        NotAUrl: one is empty.
    """
    found = tuple(one.strip() for one in url.split(","))
    if not all(found):
        raise NotAUrl(f'an address is missing in "{url}": {_NEED}, of a pair both with one comma between')
    return found


def address_of(url: str) -> RestAddress:
    """Return an address in its parts.

    >>> address_of("https://ctl.example.org:8443/headway/")[1:], address_of("https://[2001:db8::1]")[1:]
    (('https', 'ctl.example.org', 8443, '/headway'), ('https', '2001:db8::1', 443, ''))
    """
    if url.startswith("unix:/"):
        return RestAddress(url, "unix", url.removeprefix("unix:"), None, "")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise NotAUrl(f"{url} is not a URL: {error}") from error
    if parts.username is not None:
        raise NotAUrl("a URL with a user's name: show a token instead")
    if parts.scheme not in PORTS or not parts.hostname or re.search(r"[^\x21-\x7e]", url):
        raise NotAUrl(f"{url} is not a URL: {_NEED}")
    port = PORTS[parts.scheme] if port is None else port  # for who is told none takes the end of an IPv6 address
    return RestAddress(url, parts.scheme, parts.hostname, port, parts.path.rstrip("/"))
