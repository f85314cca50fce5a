"""Tables in Markdown. Pure."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown.

    >>> print(table(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [list(head), ["---"] * len(head), *rows]
    return "".join(f"|{'|'.join(r)}|\n" if r[0] == "---" else f"| {' | '.join(r)} |\n" for r in lines)
