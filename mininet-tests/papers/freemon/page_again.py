"""Write ``docs/results.md`` again: it shows published cells, and published figures of ``lanes`` and ``pftp``."""

import json

from mininet_tests.lab import commands
from mininet_tests.lab.cells import Cell
from mininet_tests.papers.freemon.cells import cells
from mininet_tests.papers.freemon.report import page

DOCS = commands.ROOT / "docs"


def published_cells() -> list[Cell]:
    """Return the cells that the page is made of."""
    return [json.loads(line) for line in (DOCS / "results" / "cells.jsonl").read_text().splitlines()]


def page_again() -> str:
    """Return the page of results by what is published now."""
    return page(published_cells(), cells(quick=False))


if __name__ == "__main__":
    (DOCS / "results.md").write_text(page_again())
