"""Tables as whoever reads them can use them: a grid, below each other where that is too wide, tabs for a program."""

import os
from typing import TYPE_CHECKING, Any

import typer

from apps.cli import shown
from topology.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.table import Table


def new_table(*columns: str, **more: Any) -> "Table":
    """Return an empty table; only who draws one waits for rich to be loaded."""
    from rich.table import Table

    return Table(*columns, **more)


def show(*parts: "RenderableType", stderr: bool = False) -> None:
    """Print tables and texts.

    A table that is wider than the terminal becomes a line ``name: value`` for each cell. Into a pipe or a file goes a
    line for each row with tabs between the cells, below one with the columns' names, and one with ``#`` and the
    table's title if it has one; unless COLUMNS says how wide it may be.
    """
    from rich.table import Table

    console = shown.console(stderr=stderr)
    unbounded = console.options.update(width=shown.PIPE_COLUMNS * 10)
    piped = not console.is_terminal and "COLUMNS" not in os.environ
    for part in parts:
        if not isinstance(part, Table):
            console.print(part, soft_wrap=piped)
        elif piped:
            typer.echo("\n".join(_tabbed(part)), err=stderr)
        elif console.measure(part, options=unbounded).maximum <= console.width:
            console.print(part)
        else:
            console.print(_listed(part, console))


def _rows(table: "Table") -> "list[tuple[RenderableType, ...]]":
    return list(zip(*(column.cells for column in table.columns), strict=True))


def _plain(cell: "RenderableType") -> str:
    """Return a cell's words; a bar has none."""
    from rich.text import Text

    text = Text.from_markup(cell, emoji=False).plain if isinstance(cell, str) else ""
    return printable(" ".join(text.split()), len(text))


def _tabbed(table: "Table") -> list[str]:
    """Return a table as lines with tabs; columns of bars alone, which have no name, are left out."""
    named = [column for column in table.columns if column.header]
    lines = [[f"# {table.title}"]] if table.title else []
    lines += [[_plain(column.header) for column in named]]
    lines += [list(row) for row in zip(*([_plain(cell) for cell in column.cells] for column in named), strict=True)]
    return ["\t".join(line) for line in lines]


def _listed(table: "Table", console: "Console") -> "Group":
    """Return a table with a line for each cell that says something, and an empty one between rows."""
    from rich.console import Group
    from rich.text import Text

    heads = [_plain(column.header) for column in table.columns]
    width = max(len(head) for head in heads)
    lines: list[RenderableType] = [Text(str(table.title), style="italic")] if table.title else []
    for number, row in enumerate(_rows(table)):
        lines += [Text("")] if number else []
        for head, cell in zip(heads, row, strict=True):
            if not isinstance(cell, str) or not _plain(cell):
                continue
            line = Text(f"{head}:".ljust(width + 2) if head else "") + console.render_str(cell)
            line.no_wrap = False
            lines.append(line)
    return Group(*lines)
