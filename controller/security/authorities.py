"""The certificate authorities that our HTTP clients trust if nothing else is said."""

import ssl
from functools import cache

import httpx


@cache
def trusted() -> ssl.SSLContext:
    """Return what is known of authorities; to read them takes longer than a message, or the rest of a client."""
    return httpx.create_ssl_context()
