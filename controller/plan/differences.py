"""Where two values differ that have most of their parts in common. Pure.

What a change does not touch is the very same value afterwards (docs/decisions/0032), so parts are compared by identity.
"""

from collections.abc import Mapping
from itertools import compress
from operator import is_not, not_
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def differing_keys(old: Mapping[K, V], new: Mapping[K, V]) -> list[K]:
    """Return the keys under which two mappings do not have the very same value, those that only one has included.

    >>> differing_keys({"a": (1,), "b": (2,)}, {"b": (3,), "c": (4,)})
    ['b', 'c', 'a']
    """
    if old is new:
        return []
    if [*old] == [*new]:  # as nearly always; in C, a hundred times a microsecond
        return [*compress(new, map(is_not, old.values(), new.values()))]
    there = [*compress(new, map(is_not, map(old.get, new), new.values()))]
    return [*there, *compress(old, map(not_, map(new.__contains__, old)))]


def with_changed(known: Mapping[K, V], changed: Mapping[K, V]) -> dict[K, V]:
    """Return a mapping with some values changed; without those that are empty now.

    >>> with_changed({"a": (1,), "b": (2,)}, {"b": (), "c": (3,)})
    {'a': (1,), 'c': (3,)}
    """
    found = {**known, **changed}
    for key in [key for key, value in changed.items() if not value]:
        del found[key]
    return found
