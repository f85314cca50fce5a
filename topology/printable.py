"""Texts as they may stand in a log or on a terminal: those of strangers, and lists of names. Pure."""

import re
from collections.abc import Sequence

LONGEST = 4096  # characters of one field

# What moves a cursor or hides text: controls (ESC among them), and what reorders or joins letters unseen (Unicode's
# bidirectional marks, zero width, tags), and halves of surrogate pairs, which no output takes. Line ends are the log's.
_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_HALVES = re.compile("[\ud800-\udfff]")


def printable(text: str, longest: int = LONGEST) -> str:
    r"""Return a text without what could be taken for anything else, cut where it is too long.

    >>> printable("\x1b[2Jno\u202egnp.exe")
    '\\x1b[2Jno\\u202egnp.exe'
    >>> printable("a" * 10, longest=4)
    'aaaa... (6 more)'
    """
    cut = text if len(text) <= longest else f"{text[:longest]}... ({len(text) - longest} more)"
    return _UNSEEN.sub(_escaped, cut)


def printable_end(text: str, longest: int = LONGEST) -> str:
    """Return the same of a text whose end says most, such as a traceback.

    >>> printable_end("a" * 9 + "b", longest=4)
    '(6 more) ...aaab'
    """
    cut = text if len(text) <= longest else f"({len(text) - longest} more) ...{text[-longest:]}"
    return _UNSEEN.sub(_escaped, cut)


def whole(text: str) -> str:
    r"""Return a text with U+FFFD for halves of surrogate pairs, which UTF-8 has not.

    >>> whole("half of \ud83d")
    'half of \ufffd'
    """
    return _HALVES.sub("\ufffd", text)


def without_halves(value: object) -> object:
    r"""Return what was decoded of JSON with U+FFFD for halves of surrogate pairs: JSON may carry them, UTF-8 does not.

    >>> without_halves({"why": ["half of \ud83d", 1]})
    {'why': ['half of \ufffd', 1]}
    """
    match value:
        case str():
            return whole(value)
        case dict():
            return {without_halves(name): without_halves(one) for name, one in value.items()}
        case list() | tuple():
            return [without_halves(one) for one in value]
    return value


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def shown_names(names: Sequence[str]) -> str:
    """Return names as people list them; of many, how many more there are.

    >>> shown_names(["a", "b"]), shown_names(["a", "b", "c", "d"]), shown_names([])
    ('a, b', 'a, b and 2 more', '')
    """
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, {names[1]} and {len(names) - 2} more"
