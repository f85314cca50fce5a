"""Entity tags, and what a client says that it has seen: conditional requests (RFC 9110, section 13)."""

import re
from collections.abc import Iterable
from typing import Annotated

from fastapi import Header

from controller.errors import NotAllowed

MOST_DIGITS = 18  # a version that any database holds has no more
IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", description="The entity tag of what you have.", examples=['"3"']),
]

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e]*)"')


def etag(version: int) -> str:
    """Return the entity tag of a version."""
    return f'"{version}"'


def strong_tags(header: str, field: str) -> frozenset[str] | None:
    """Return the strong entity tags of ``If-Match`` or ``If-None-Match``; None for ``*``, which is any.

    >>> sorted(strong_tags('"3", W/"4", "5"', "If-Match"))
    ['3', '5']

    Raises:
        NotAllowed: it has none.
    """
    if header.strip() == "*":
        return None
    tags = _TAG.findall(header)
    if not tags:
        raise NotAllowed(field, f'need an entity tag in its quotes, as in "3", or *; got {header!r}')
    return frozenset(tag for weak, tag in tags if not weak)


def highest_version(tags: Iterable[str]) -> int:
    """Return the highest version among entity tags; 0 if none of them is one of ours.

    >>> highest_version({"3", "12", "abc", "9" * 5_000})
    12
    """
    return max((int(tag) for tag in tags if len(tag) <= MOST_DIGITS and tag.isdecimal()), default=0)
