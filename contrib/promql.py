"""What expressions of PromQL ask for: the metrics that they name, and the labels that these are asked by."""

import re
from collections.abc import Iterator

WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
TEXT = re.compile(r'"[^"]*"')
NUMBER = re.compile(r"\b\d[\w.]*|\[[^]]*\]")
KEYWORDS = frozenset(
    {"and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring", "group_left", "group_right"}
)


def asked(expression: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each metric that an expression names, with the labels by which it is selected.

    >>> [(name, sorted(labels)) for name, labels in asked('sum by (a) (rate(b{c="d", e=~"f|g"}[5m])) > on (h) 2 * i')]
    [('b', ['c', 'e']), ('i', [])]
    """
    bare = NUMBER.sub(" ", GROUPING.sub(" ", TEXT.sub('""', expression)))
    for found in SELECTOR.finditer(bare):
        is_function = bare[found.end() :].lstrip().startswith("(")
        if not is_function and found[1] not in KEYWORDS:
            yield found[1], frozenset(WORD.findall(found[2] or ""))


def grouped(expression: str) -> frozenset[str]:
    """Return the labels that an expression groups or joins by.

    >>> sorted(grouped("sum by (a, b) (c) unless on (d) e"))
    ['a', 'b', 'd']
    """
    return frozenset(word for _, labels in GROUPING.findall(expression) for word in WORD.findall(labels))
