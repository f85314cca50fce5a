"""What a provider has answered, taken apart: values of the kinds that are expected, or that they are not. Pure."""

import json
from decimal import Decimal


class Unclear(Exception):
    """An answer that cannot be understood; the text says what was missing."""


def decoded(text: str) -> dict[str, object]:
    """Return a JSON object; its decimal fractions exactly.

    Raises:
        Unclear: it is none.
    """
    try:
        value: object = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
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
    """Return a field that is a whole number, not negative.

    Raises:
        Unclear: it is missing, or something else.
    """
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Unclear(f"{name} is no whole number")
    return value
