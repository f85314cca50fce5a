"""Write ``docs/results.md`` again: it shows published cells, and published figures of ``lanes`` and ``pftp``."""

import json
from pathlib import Path

from mininet_tests.lab import commands
from mininet_tests.papers.freemon.cells import cells
from mininet_tests.papers.freemon.report import page

DOCS = commands.ROOT / "docs"


def page_again(docs: Path = DOCS) -> str:
    """Return the page of results by what is published now."""
    lines = (docs / "results" / "cells.jsonl").read_text().splitlines()
    return page([json.loads(line) for line in lines], cells(quick=False))


if __name__ == "__main__":
    (DOCS / "results.md").write_text(page_again())
