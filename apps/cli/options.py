"""Options that several commands have."""

from collections.abc import Sequence
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal

import typer

from apps.cli import completion, place

DEFAULT_URL = place.DEFAULT_URL

Url = Annotated[
    str,
    typer.Option("--url", envvar="HEADWAY_URL", help="The controller's REST address; of a pair both, with a comma."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Zone = Annotated[str | None, typer.Option(help="Zone of local times, e.g. America/Santiago; this machine's if absent.")]
Key = Annotated[str | None, typer.Option(help="Your name for this request: however often sent, done once.")]
Class = Literal["urgent", "predictable", "background"]


def nearest(context: typer.Context, name: str) -> Any:
    """Return the value of an option that a group of commands has too: as typed behind the command, else before it."""
    levels = [context] if context.parent is None else [context, context.parent]
    typed = [level.params[name] for level in levels if _is_typed(level.get_parameter_source(name))]
    return typed[0] if typed else context.params[name]


def typed(context: typer.Context) -> list[str]:
    """Return the options of a command that were typed, as their first names are."""
    params = context.command.params
    return [param.opts[0] for param in params if param.name and _is_typed(context.get_parameter_source(param.name))]


def _is_typed(source: Enum | None) -> bool:
    """Return whether a value is from the command line, neither from the environment nor the usual one."""
    return source is not None and source.name == "COMMANDLINE"


def connections_asked(dest_port: int, local_port: int) -> dict[str, dict[str, int]]:
    """Return which connections are meant, as the API takes it; nothing if no port was said."""
    said = {"dest_port": dest_port, "local_port": local_port}
    return {"connections": said} if dest_port or local_port else {}


def words(chosen: Sequence[StrEnum] | None) -> Any:
    """Return the words of an option that may be repeated, as the API takes them; None if there is none."""
    return None if chosen is None else [one.value for one in chosen]


class AnyClass(StrEnum):
    """The classes of :class:`topology.protocol.FlowClass`, whose module takes longer to import than all of ours."""

    PREDICTABLE = "predictable"
    URGENT = "urgent"
    BACKGROUND = "background"
    UNPLANNED = "unplanned"


Owner = Annotated[str | None, typer.Option(help="Whose: a group of yours, or token:NAME.")]
Owners = Annotated[list[str] | None, typer.Option("--owner", help="Of this group, or token:NAME; repeatable.")]
Mine = Annotated[bool, typer.Option("--mine", help="Yours, and your groups'.")]
DestPort = Annotated[int, typer.Option(help="For connections to this TCP port of the receiver alone.", max=65535)]
LocalPort = Annotated[int, typer.Option(help="For connections from this TCP port of the sender alone.", max=65535)]
Include = Annotated[
    list[str] | None, typer.Option(help="Must be crossed; repeatable.", autocompletion=completion.path_parts)
]
Exclude = Annotated[
    list[str] | None, typer.Option(help="Must not be touched; repeatable.", autocompletion=completion.path_parts)
]
MaxRtt = Annotated[str | None, typer.Option(help="Longest round trip, e.g. 200ms.")]
Sender = Annotated[str, typer.Option("--from", help="Host or site that sends.", autocompletion=completion.end_names)]
Receiver = Annotated[str, typer.Option("--to", help="Host or site that receives.", autocompletion=completion.end_names)]
Id = Annotated[str, typer.Argument(help="The reservation's id.", autocompletion=completion.reservations)]
