"""``headway top``: what needs somebody and what is carried, live in a terminal."""

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from apps.cli import base, identity, options, output, shown, top_frame

if TYPE_CHECKING:
    from apps.cli.top_frame import TopLook
    from headway.client import Client

app = typer.Typer()
EXIT_NEEDS = base.EXIT_NOT_CARRIED

Interval = Annotated[float, typer.Option("--interval", min=0.5, max=3600, help="Seconds between two looks.")]
Once = Annotated[bool, typer.Option("--once", help="Print one look and end: 4 if something needs somebody, else 0.")]


@app.command()
def top(
    interval: Interval = 1.0,
    once: Once = False,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Follow what needs somebody, each class on each circuit, and every flow: planned and delivered; q ends.

    headway top

    headway top --once

    headway top --json --interval 10
    """
    with base.client_of(url) as controller:
        first = look(controller)
        if as_json and not once:
            _streamed(controller, first, interval)
        elif once or not (sys.stdout.isatty() and sys.stdin.isatty()):
            if as_json:
                typer.echo(json.dumps(first))
            else:
                top_frame.printed(first)
            if first["needs"]["needs"]:
                raise typer.Exit(EXIT_NEEDS)
        else:
            _followed(controller, first, interval)


def look(controller: "Client") -> "TopLook":
    """Return how things stand now."""
    return {
        "needs": controller.get_needs(),
        "plan": controller.get_plan(),
        "circuits": controller.list_circuits(),
        "announcements": list(controller.all_announcements(state=["promised", "under-way", "late"])),
    }


def _streamed(controller: "Client", first: "TopLook", interval_s: float) -> None:
    """Print a line of JSON for each look, until interrupted."""
    try:
        output.follow(json.dumps(first))
        while True:
            time.sleep(interval_s)
            output.follow(json.dumps(look(controller)))
    except KeyboardInterrupt:
        raise typer.Exit from None


def _followed(controller: "Client", first: "TopLook", interval_s: float) -> None:
    """Show look after look on the whole terminal, until q; for a controller or a token one waits."""
    from rich.live import Live

    from headway.errors import ApiError

    seen, silent = first, ""
    with _keys() as pressed, Live(console=shown.console(), screen=True, auto_refresh=False) as live:
        while True:
            live.update(top_frame.drawn(seen, silent, live.console.width), refresh=True)
            if pressed(interval_s) in {"q", "Q", "\x03"}:
                return
            try:
                seen, silent = look(controller), ""
            except (ApiError, *identity.NOTHING_TO_SHOW) as why:
                silent = str(why)


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Give what waits for a key, at most so many seconds; the terminal is as it was afterwards."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def pressed(within_s: float) -> str:
        ready, _, _ = select.select([terminal], [], [], within_s)
        return os.read(terminal, 1).decode(errors="replace") if ready else ""

    try:
        tty.setcbreak(terminal)
        yield pressed
    except KeyboardInterrupt:
        pass
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
