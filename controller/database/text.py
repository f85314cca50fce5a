"""Texts of people as every database takes them, and back. Pure."""

import re

# People's words come as JSON, which may carry what no database takes as text: NUL (PostgreSQL) and halves of surrogate
# pairs (both). One such description would fail the saves of everybody, so they are escaped, and the escape's own mark.
_TROUBLE = re.compile("[\\\\\x00\ud800-\udfff]")
_PATH = re.compile(r"(?<![\w/])/+[^\s'\":;,)]*")
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")


def storable(text: str) -> str:
    r"""Return a text that every database takes.

    >>> storable("a\\b\x00")
    'a\\u005cb\\u0000'
    """
    return _TROUBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def original(text: str) -> str:
    r"""Return the text that :func:`storable` was given.

    >>> original("a\\u005cb")
    'a\\b'
    """
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "\\" in text else text


def without_paths(text: str) -> str:
    """Return a text in which no file is named: what is for people who ask, and not for who runs us.

    >>> without_paths("[Errno 13] Permission denied: '/var/lib/headway/headway.db.lock'")
    "[Errno 13] Permission denied: '(a file)'"
    >>> without_paths("sqlite:////var/lib/x.db: disk I/O error; 3 and/or 4")
    'sqlite:(a file): disk I/O error; 3 and/or 4'
    """
    return _PATH.sub("(a file)", text)


def one_line(error: object) -> str:
    r"""Return what an error says, in one line.

    >>> one_line("disk full\nHINT: buy another")
    'disk full; HINT: buy another'
    """
    return "; ".join(str(error).split("\n"))
