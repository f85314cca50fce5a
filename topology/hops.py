"""One direction of a link, as a key."""

from functools import lru_cache
from typing import NamedTuple


class Hop(NamedTuple):
    """One direction between two neighbours, by their names; as text, an arrow between them.

    >>> str(Hop("ls1", "ch1"))
    'ls1->ch1'
    """

    tail: str
    head: str

    def __str__(self) -> str:
        """Return it as people and JSON have it."""
        return f"{self.tail}->{self.head}"


@lru_cache(maxsize=100_000)  # a network has few paths, and each is asked for at every plan
def hops(path: tuple[str, ...]) -> tuple[Hop, ...]:
    """Return the hops of a path, by its nodes.

    >>> [str(hop) for hop in hops(("base20", "ls1", "ch1"))]
    ['base20->ls1', 'ls1->ch1']
    """
    return tuple(map(Hop, path, path[1:]))
