"""What ``headway top`` shows of one look. Pure, but for printing it."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, TypedDict

from apps.cli.printed import new_table, show
from apps.cli.shown import in_line
from topology import units

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from headway.promises import AnnouncementOut
    from headway.views import AllocationOut, CircuitOut, NeedsOut, ViewOut

UP = "up"
STATES = {"late": "[red]! late[/red]", "under-way": "under way", "promised": "○ promised"}


class TopLook(TypedDict):
    """How things stand at one moment, as the API says it."""

    needs: "NeedsOut"
    plan: "ViewOut"
    circuits: "list[CircuitOut]"
    announcements: "list[AnnouncementOut]"


def drawn(seen: TopLook, silent: str, columns: int) -> "Group":
    """Return what a terminal shows.

    Args:
        seen: the latest look.
        silent: why there is no newer one; empty if there is.
        columns: how wide the terminal is.
    """
    from rich.console import Group
    from rich.text import Text

    parts = [Text.from_markup(line, emoji=False, overflow="fold") for line in headline(seen["needs"], silent)]
    hint = Text("q ends", style="dim")
    for table in tables(seen, columns):
        parts += [Text(""), table]  # type: ignore[list-item]
    return Group(*parts, Text(""), hint)


def printed(seen: TopLook) -> None:
    """Print one look."""
    for line in headline(seen["needs"], ""):
        show(line)
    for table in tables(seen, 10**6):
        show(table)


def headline(needs: "NeedsOut", silent: str) -> list[str]:
    """Return the lines on what needs somebody."""
    from rich.markup import escape

    at = needs["at"][11:19]
    found = needs["needs"]
    mark = "[bold red]![/bold red]" if found else "[green]✓[/green]"
    lines = [f"[red]✕ No news since {at} UTC: {escape(in_line(silent))}[/red]"] if silent else []
    lines.append(f"{mark} [bold]{escape(needs['headline'])}[/bold]" + ("" if silent else f"  {at} UTC"))
    for one in found:
        since = one["since"][11:19]
        lines.append(f"  {since}  {escape(in_line(one['what']))}. {escape(one['means'])}")
        lines += [f"            {escape(in_line(promise))}" for promise in one["touches"]]
        lines.append(f"            [bold]{escape(one['command'])}[/bold]")
    return lines


def tables(seen: TopLook, columns: int) -> "Iterator[Table]":
    """Yield the classes of each circuit, the flows, and the announcements under way."""
    yield _classes(seen)
    if seen["plan"]["desired"]["allocations"]:
        yield _flows(seen, is_wide=columns >= 110)
    if seen["announcements"]:
        yield _announcements(seen["announcements"])


def by_class(plan: "ViewOut") -> dict[tuple[str, str], tuple[int, int]]:
    """Return what is planned and delivered by direction of a circuit and class, payload, bit/s."""
    desired = plan["desired"]
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for entry in desired["allocations"]:
        for tail, head in pairwise(entry["path"]):
            if (name := f"{tail}->{head}") in desired["links"]:
                sums[name, entry["class"]][0] += entry["payload_bps"]
                sums[name, entry["class"]][1] += _delivered_bps(entry)
    return {key: (planned_bps, delivered_bps) for key, (planned_bps, delivered_bps) in sums.items()}


def _delivered_bps(entry: "AllocationOut") -> int:
    progress = entry["progress"]
    return progress["delivered_bps"] if progress else 0


def _classes(seen: TopLook) -> "Table":
    """Return the table of circuits: each direction that somebody uses, class by class."""
    table = _table("circuit", "line", "direction", "class", ">planned", ">delivered", "")
    sums, links = by_class(seen["plan"]), seen["plan"]["desired"]["links"]
    for circuit in seen["circuits"]:
        line = str(circuit["state"])
        rows = [
            (name, flow_class, *sums[name, flow_class])
            for name, link in links.items()
            if link["circuit"] == circuit["name"]
            for flow_class in link["classes"]
            if (name, flow_class) in sums
        ]
        first = (circuit["name"], line if line == UP else f"[red]✕ {line}[/red]")
        for name, flow_class, planned_bps, delivered_bps in rows or [("", "nothing is planned", 0, 0)]:
            rates = (_rate(planned_bps), _rate(delivered_bps)) if rows else ("", "")
            table.add_row(*first, name, flow_class, *rates, _bar(planned_bps, delivered_bps))
            first = ("", "")
    return table


def _flows(seen: TopLook, *, is_wide: bool) -> "Table":
    """Return the table of flows; those that have least of what is planned first."""
    table = _table("flow", "class", ">planned", ">delivered", "in the way", *(["path", "since"] if is_wide else []))
    entries = seen["plan"]["desired"]["allocations"]
    for entry in sorted(entries, key=lambda one: _delivered_bps(one) / max(1, one["payload_bps"])):
        progress = entry["progress"]
        way = (progress["hindrance"] if progress else None) or ""
        more = [" ".join(entry["path"]), progress["since"][11:19] if progress else ""] if is_wide else []
        rates = _rate(entry["payload_bps"]), _rate(_delivered_bps(entry))
        table.add_row(entry["name"], entry["class"], *rates, way, *more)
    table.columns[0].overflow = "fold"
    return table


def _announcements(found: "list[AnnouncementOut]") -> "Table":
    """Return the table of what is announced and has not ended; what is late first, and what goes on before the rest."""
    table = _table("announcement", "state", ">delivered", "promised for")
    for one in sorted(found, key=lambda one: (*STATES, one["state"]).index(one["state"])):
        part = 100 * one["delivered_bytes"] // max(1, one["bytes"])
        size = f"{part}% of {units.shown_size(one['bytes'])}"
        table.add_row(one["id"], STATES.get(one["state"], one["state"]), size, f"{one['promised'][11:19]} UTC")
    table.columns[0].overflow = "fold"
    return table


def _table(*columns: str) -> "Table":
    """Return a table without a grid; a column whose name begins with > is of numbers."""
    table = new_table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    return table


def _rate(bps: int) -> str:
    """Return a rate in four digits.

    >>> _rate(838_812_345), _rate(0)
    ('838.8 Mbit/s', '0 bit/s')
    """
    digits = len(str(bps))
    return units.shown_rate(round(bps, 4 - digits) if digits > 4 else bps)


def _bar(planned_bps: int, delivered_bps: int) -> str:
    """Return how much of what is planned is delivered, as ten signs.

    >>> _bar(100, 38), _bar(0, 0)
    ('████░░░░░░', '')
    """
    if not planned_bps:
        return ""
    full = min(10, round(10 * delivered_bps / planned_bps))
    return "█" * full + "░" * (10 - full)
