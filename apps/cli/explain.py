"""The steps from plan to plan as a drawing for people."""

from itertools import groupby
from typing import TYPE_CHECKING

from apps.cli import printed
from topology import units

if TYPE_CHECKING:
    from rich.table import Table

    from headway.views import StepOut

BAR_COLUMNS = 30
HEAD = ("began", "took", "", "layer", "where", "what", "from", "to")


def show_transitions(steps: "list[StepOut]", count: int = 1) -> None:
    """Print the latest transitions, oldest first: each step with its times, and what it has changed."""
    grouped = [list(group) for _, group in groupby(steps, key=lambda step: _target(step["epoch"]))]
    changing = [group for group in grouped if any(step["changes"] or step["error"] for step in group)]
    if not changing:
        printed.show("there was no transition since the controller started")
    printed.show(*(_table(group) for group in changing[-count:]))


def _target(epoch: int) -> int:
    """Return the epoch that a step leads to: the odd one before it is on the way to it."""
    return epoch + epoch % 2


def _table(steps: "list[StepOut]") -> "Table":
    """Return one transition: a row for each change, the times in the first row of each step."""
    from rich.markup import escape

    began_us, ended_us = steps[0]["started_us"], max(step["done_us"] for step in steps)
    title = f"to epoch {_target(steps[0]['epoch'])}, {steps[0]['started']}, {_ms(ended_us - began_us)} in all"
    table = printed.new_table(title=title, caption="rates in Ethernet frames")
    for name in HEAD:
        table.add_column(name, justify="right" if name in {"began", "took", "from", "to"} else "left", no_wrap=True)
    for step in steps:
        span = step["started_us"] - began_us, step["done_us"] - began_us
        head = [_ms(span[0]), _ms(span[1] - span[0]), _bar(span, ended_us - began_us), step["place"]]
        if step["error"]:
            table.add_row(*head, "", f"[red]{escape(step['error'])}[/red]", "", "")
        elif not step["changes"]:
            table.add_row(*head, "", "nothing to change", "", "")
        for change in step["changes"]:
            rates = (units.shown_rate(change["from_frame_bps"]), units.shown_rate(change["to_frame_bps"]))
            table.add_row(*head, change["where"], change["what"], *rates)
            head = [""] * len(head)
    return table


def _ms(us: int) -> str:
    """Return a duration in milliseconds.

    >>> _ms(1_234)
    '1.2 ms'
    """
    return f"{us / 1000:.1f} ms"


def _bar(span_us: tuple[int, int], whole_us: int) -> str:
    """Return where in a transition a step lies.

    >>> _bar((10, 20), 30).replace("\u2588", "#").replace("\u00b7", ".")
    '..........##########..........'
    """
    if not whole_us:
        return ""
    first, last = (min(BAR_COLUMNS - 1, at_us * BAR_COLUMNS // whole_us) for at_us in (span_us[0], span_us[1] - 1))
    last = max(first, last)
    return "\u00b7" * first + "\u2588" * (last - first + 1) + "\u00b7" * (BAR_COLUMNS - 1 - last)
