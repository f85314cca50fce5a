"""``headway events``: what happens, as it happens."""

import json
import time
from collections.abc import Callable
from datetime import tzinfo
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from apps.cli import base, identity, options, shown
from headway.stream import ServerSentEvent

app = typer.Typer()
STEP = "transition.step"  # many at each change of plan, and nothing to a person
AGAIN_S = 1.0  # between two tries to have a token


@app.command()
def events(
    kinds: Annotated[
        list[str] | None, typer.Argument(metavar="[KIND]...", help="E.g. reservation, fault.began, 'drift.*'.")
    ] = None,
    about: Annotated[str | None, typer.Option(help="Only what names this: a reservation, a host, a place.")] = None,
    steps: Annotated[bool, typer.Option("--steps", help="Also each step from plan to plan.")] = False,
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Follow what happens until interrupted: reservations, announcements, switches, hosts.

    headway events

    headway events reservation fault --about base20

    headway events --json reservation.active
    """
    where = base.zone_option(zone)
    try:
        with base.client_of(url, _patient()) as controller:
            for event in controller.follow_events():
                if wanted(event, kinds or [], about, steps=steps):
                    typer.echo(_line(event, where, as_json))
    except KeyboardInterrupt:
        raise typer.Exit from None


def _patient() -> Callable[[str], str | None]:
    """Return what knows our token; after the first it waits for the next, as for a controller, and says so once."""
    had = False

    def token(url: str) -> str | None:
        nonlocal had
        is_said = False
        while True:
            try:
                found, had = identity.token(url), True
            except identity.NOTHING_TO_SHOW as why:
                if not had:
                    raise
                if not is_said:
                    typer.echo(f"headway: {why}; it is tried again until there is a token", err=True)
                is_said = True
                time.sleep(AGAIN_S)
            else:
                return found

    return token


def wanted(event: ServerSentEvent, kinds: list[str], about: str | None, *, steps: bool = False) -> bool:
    """Return whether an event is among those asked for; that some are lost is always told.

    Args:
        event: it.
        kinds: names, their first parts, or patterns of a shell; none for all but the steps of transitions.
        about: what one of its fields must be, or begin with before a slash, as a flow's name does; None for anything.
        steps: whether the steps of transitions are asked for too.

    >>> wanted(ServerSentEvent("7", "fault.began", {"place": "ls1"}), ["fault"], "ls1")
    True
    """
    if event.name == "lost":
        return True
    named = any(fnmatchcase(event.name, kind) or event.name.startswith(f"{kind}.") for kind in kinds)
    if not named and (kinds or event.name == STEP) and not (steps and event.name == STEP):
        return False
    return about is None or any(
        str(value).partition("/")[0] == about or str(value) == about for value in event.data.values()
    )


def _line(event: ServerSentEvent, where: tzinfo, as_json: bool) -> str:
    if as_json:
        return json.dumps({"id": event.event_id, "event": event.name, **event.data})
    if event.name == "lost":
        return "... some events are not remembered any more"
    at = shown.short(event.data["at"], where) if "at" in event.data else ""
    return " ".join([at, event.name, *(f"{name}={value}" for name, value in event.data.items() if name != "at")])
