"""Lists a page at a time, and requests that may be repeated."""

import base64
import binascii
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Header, Request

from controller.errors import NotAllowed
from controller.northbound.rest.bodies import MOST

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]{1,255}$",
        description="Your name for this request: asked again with it and the same body, it is not done twice.",
        examples=["night-2026-11-21"],
    ),
]
LINKED = {"Link": {"description": 'The next page, `rel="next"`; absent on the last', "schema": {"type": "string"}}}


def cursor_after(sequence: int) -> str:
    """Return the cursor that goes on behind a promise."""
    return base64.urlsafe_b64encode(f"after {sequence}".encode()).decode()


def sequence_after(cursor: str) -> int:
    """Return what :func:`cursor_after` was given.

    Raises:
        NotAllowed: it is not one of ours.
    """
    try:
        word, number = base64.b64decode(cursor, b"-_", validate=True).decode("ascii").split(" ")
        if word == "after" and number.isdecimal() and int(number) <= MOST:
            return int(number)
    except (binascii.Error, ValueError):
        pass
    raise NotAllowed("cursor", "is not the `next` of a page")


def linked(request: Request, at: str | None, parameter: str = "cursor", **same: str) -> dict[str, str]:
    """Return the header that says where the next page is; none on the last.

    Args:
        request: for this one.
        at: where the next one begins; None on the last.
        parameter: of the query that says so.
        same: parameters of the query that each page has as the first one answered them.
    """
    if at is None:
        return {}
    anew = {**same, parameter: at}
    query = [(name, value) for name, value in request.query_params.multi_items() if name not in anew]
    return {"Link": f'<{request.url.path}?{urlencode([*query, *anew.items()])}>; rel="next"'}
