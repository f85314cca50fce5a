"""Where a provider's server is."""

from urllib.parse import urlsplit

import httpx


def is_server(url: str) -> bool:
    """Return whether a request can be made to a URL: over HTTP, without user and password, at a port that there is.

    >>> [is_server(url) for url in ("https://oscars:8201", "http://[::1]/a", "oscars:8201", "https://me:word@oscars")]
    [True, True, False, False]
    >>> [is_server(f"https://oscars:{port}") for port in ("8201x", "82011", "0")]
    [False, False, False]
    """
    try:
        httpx.URL(url)
        parts = urlsplit(url)
        is_there = bool(parts.hostname) and parts.port != 0  # a ValueError if it is none
    except (ValueError, httpx.InvalidURL):
        return False
    return is_there and parts.scheme in {"http", "https"} and parts.username is None
