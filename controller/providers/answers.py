"""What a provider has answered, taken apart: values of the kinds that are expected, or that they are not. Pure."""

import json
from decimal import Decimal

from topology.printable import without_halves

_MOST = 10**9  # as Mbit/s a million times what a circuit carries, and as bit/s still what a database holds


class Unclear(Exception):
    """An answer that cannot be understood; the text says what was missing."""


def decoded(text: str) -> dict[str, object]:
    """Return a JSON object; its decimal fractions exactly, its texts such as can be told on.

    Raises:
        Unclear: it is none.
    """
    try:
        value = without_halves(json.loads(text, parse_float=Decimal))
    except (ValueError, ArithmeticError, RecursionError):  # of an exponent that Decimal has not
        raise Unclear("not JSON") from None
    return object_of(value, "the answer")


def object_of(value: object, what: str) -> dict[str, object]:
    """Return a JSON object.

    Raises:
        Unclear: it is something else.
    """
    if not isinstance(value, dict):
        raise Unclear(f"{what} is no object")
    return value


def text_of(fields: dict[str, object], name: str) -> str:
    """Return a field that is text.

    Raises:
        Unclear: it is missing, or something else.
    """
    value = fields.get(name)
    if not isinstance(value, str):
        raise Unclear(f"{name} is no text")
    return value


def whole_of(fields: dict[str, object], name: str) -> int:
    """Return a field that is a whole number, not negative, and no larger than any rate or port is.

    Raises:
        Unclear: it is missing, or something else.
    """
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise Unclear(f"{name} is no whole number, or one that nothing has")
    return value
