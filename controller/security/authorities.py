"""The certificate authorities that our HTTP clients trust if nothing else is said."""

import ssl
from functools import cache

import httpx


@cache
def trusted() -> ssl.SSLContext:
    """Return what is known of authorities; to read them takes longer than a message, or the rest of a client.

    Raises:
        OSError: they cannot be read.
    """
    try:
        return httpx.create_ssl_context()
    except OSError as error:  # which does not name the file
        raise OSError(f"authorities cannot be read, see SSL_CERT_FILE and SSL_CERT_DIR: {error}") from error
