"""The commands that talk to a running controller, together."""

import typer

from apps.cli import (
    announce,
    announcements,
    availability,
    bursts,
    change,
    events,
    export,
    history,
    maintenance,
    receivers,
    reservations,
    reserve,
    show,
    top,
    whoami,
)

app = typer.Typer()
for _part in (
    reserve,
    reservations,
    change,
    availability,
    announce,
    announcements,
    show,
    top,
    bursts,
    receivers,
    events,
    export,
    history,
    whoami,
    maintenance,
):
    app.registered_commands += _part.app.registered_commands
