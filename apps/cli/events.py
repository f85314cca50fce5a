"""``headway events``: what happens, as it happens."""

import json
import time
from collections.abc import Callable
from datetime import tzinfo
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from apps.cli import base, identity, options, output, shown
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
    _say_unknown(kinds or [])
    try:
        with base.client_of(url, _patient()) as controller:
            for event in controller.follow_events():
                if wanted(event, kinds or [], about, steps=steps):
                    output.follow(_line(event, where, as_json))
    except KeyboardInterrupt:
        raise typer.Exit from None


def _say_unknown(kinds: list[str]) -> None:
    """Say which kinds nothing is known to be of: mistyped, or of a controller that is newer than this command."""
    if not kinds:
        return
    from controller.settings.webhooks import EVENTS  # takes time to import

    subjects = dict.fromkeys(name.partition(".")[0] for name in EVENTS)
    for kind in kinds:
        if not kind.startswith("webhook") and not any(_is_of(name, kind) for name in EVENTS):
            near = get_close_matches(kind, [*subjects, *EVENTS], n=1, cutoff=0.7)
            hint = f', try "{near[0]}"' if near else ""
            typer.echo(f'headway: there is no event "{kind}" here{hint}; docs/webhooks.md has them all', err=True)


def _is_of(name: str, kind: str) -> bool:
    """Return whether an event's name is of a kind: that name, its first part, or a pattern of a shell."""
    return fnmatchcase(name, kind) or name.startswith(f"{kind}.")


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
    named = any(_is_of(event.name, kind) for kind in kinds)
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
    return " ".join(
        [at, event.name, *(f"{name}={shown.in_line(value)}" for name, value in event.data.items() if name != "at")]
    )
