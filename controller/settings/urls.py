"""Whether an HTTP server can be asked for by a URL, before anybody does."""

from urllib.parse import urlsplit


def is_host_name(text: str) -> bool:
    """Return whether a name server can be asked for a text.

    >>> is_host_name("a.example"), is_host_name("bücher.example"), is_host_name("a..b"), is_host_name("a" * 64)
    (True, True, False, False)
    """
    try:
        text.encode("idna")
    except ValueError:
        return False
    return True


def is_http_url(text: str, *, may_have_user: bool = False) -> bool:
    """Return whether a text is the URL of an HTTP server, with a port that there is if it says one.

    >>> is_http_url("https://a.example:8201/x"), is_http_url("http://[::1]:9"), is_http_url("https://a.example")
    (True, True, True)
    >>> is_http_url("http://a:99999/"), is_http_url("http://a:abc/"), is_http_url("http://a..b/"), is_http_url("ftp://a")
    (False, False, False, False)

    Args:
        text: that.
        may_have_user: whether it may have a user and a password.
    """
    try:
        parts = urlsplit(text)
        is_port = parts.port != 0  # an error for what is none
    except ValueError:
        return False
    is_one_line = text.isprintable() and " " not in text
    is_server = parts.scheme in {"http", "https"} and bool(parts.hostname) and is_host_name(parts.hostname or "")
    return is_server and is_port and is_one_line and (may_have_user or parts.username is None)
