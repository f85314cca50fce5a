"""``headway events``: what happens, as it happens."""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from apps.cli import base, options, shown

app = typer.Typer()
RETRY_S = 1.0
STEP = "transition.step"  # many at each change of plan, and nothing to a person
SILENT_S = 45.0  # the controller gives a sign of life every 15 s


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """One server-sent event; attributes as in the HTML standard, section 9.2."""

    event_id: str
    name: str
    data: dict[str, Any]


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
    where = base.zone(zone)
    try:
        for event in _followed(url):
            if wanted(event, kinds or [], about, steps=steps):
                typer.echo(_line(event, where, as_json))
    except KeyboardInterrupt:
        raise typer.Exit from None


def _followed(url: str) -> Iterator[ShownEvent]:
    """Yield events; a connection that breaks is made again, and what happened meanwhile is told then."""
    import httpx

    last, connected = "", False
    while True:
        headers = base.signed(url) | ({"Last-Event-ID": last} if last else {})
        try:
            with httpx.stream("GET", f"{url}/v1/events", headers=headers, timeout=SILENT_S) as answer:
                if answer.status_code in {401, 403, 429}:  # a controller says why not
                    answer.read()
                    base.read(url, answer)
                answer.raise_for_status()
                connected = True
                for event in stream_events(answer.iter_lines()):
                    last = event.event_id or last
                    if event.name:
                        yield event
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            if not connected:
                why = str(error).partition("\n")[0]
                base.stop(f"no controller at {url}: {why}; is it running? set --url or HEADWAY_URL", base.EXIT_FAILED)
        time.sleep(RETRY_S)


def stream_events(lines: Iterable[str]) -> Iterator[ShownEvent]:
    """Yield the events of a stream. Source: HTML standard, section 9.2.6.

    >>> list(stream_events([": hello", "id: 7", "event: reservation.held", 'data: {"at": "now"}', ""]))
    [ShownEvent(event_id='7', name='reservation.held', data={'at': 'now'})]
    """
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            yield ShownEvent(fields.get("id", ""), fields.get("event", "message"), json.loads(fields["data"]))
        elif "id" in fields:  # nothing happened; only where to go on from
            yield ShownEvent(fields["id"], "", {})
        fields = {}


def wanted(event: ShownEvent, kinds: list[str], about: str | None, *, steps: bool = False) -> bool:
    """Return whether an event is among those asked for; that some are lost is always told.

    Args:
        event: it.
        kinds: names, their first parts, or patterns of a shell; none for all but the steps of transitions.
        about: what one of its fields must be, or begin with before a slash, as a flow's name does; None for anything.
        steps: whether the steps of transitions are asked for too.

    >>> wanted(ShownEvent("7", "fault.began", {"place": "ls1"}), ["fault"], "ls1")
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


def _line(event: ShownEvent, where: tzinfo, as_json: bool) -> str:
    if as_json:
        return json.dumps({"id": event.event_id, "event": event.name, **event.data})
    if event.name == "lost":
        return "... some events are not remembered any more"
    at = shown.short(event.data["at"], where) if "at" in event.data else ""
    return " ".join([at, event.name, *(f"{name}={value}" for name, value in event.data.items() if name != "at")])
