"""What the page of one thing has on it, as values."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its heads, and rows of as many cells; a cell that is a pair is a link, its text and where to."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    none: str = "None."


@dataclass(frozen=True, slots=True)
class Detail:
    """A page of one thing.

    Attributes:
        kind: what it is.
        name: its name.
        state: how it is, in a word.
        facts: what there is to know, by label.
        tables: what there are several of.
        drawing: SVG; empty for none.
        curl: the request that a script makes for the same.
        act: what can be done, by a name that the page's script knows, with the request's path.
        version: what was seen, for a change that is made of it.
        owner: who may act; empty for nobody but who operates the site.
        extra: what only one kind of page has.
    """

    kind: str
    name: str
    state: str
    facts: tuple[tuple[str, Any], ...] = ()
    tables: tuple[Table, ...] = ()
    drawing: str = ""
    curl: str = ""
    act: tuple[tuple[str, str], ...] = ()
    version: int = 0
    owner: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
