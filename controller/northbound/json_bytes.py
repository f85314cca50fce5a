"""What is told as JSON, as bytes. Pure."""

from collections.abc import Callable

from pydantic_core import PydanticSerializationError, to_json

from topology.printable import without_halves


def json_bytes(said: object, fallback: Callable[[object], object] | None = None) -> bytes:
    r"""Return JSON. A half of a surrogate pair, of whatever stranger's text, leaves nobody without an answer.

    Args:
        said: what is told.
        fallback: makes something that JSON has of what it has not.

    >>> json_bytes({"why": "half of \ud83d"}).decode()
    '{"why":"half of \ufffd"}'
    """
    try:
        return to_json(said, fallback=fallback)
    except PydanticSerializationError:  # of a half, or of what JSON has not, which is said again
        return to_json(without_halves(said), fallback=fallback)
