"""The options behind the API's fields: what is wrong with a request is said by what was typed."""

from collections.abc import Collection, Mapping
from typing import Any

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "Idempotency-Key": ("--key",),
    "after": ("--after",),
    "before": ("--before",),
    "bytes": ("--bytes",),
    "class": ("--class",),
    "connects": ("--connects",),
    "deadline_for": ("--deadline-for",),
    "deadline_s": ("--deadline",),
    "description": ("--description",),
    "dest_port": ("--dest-port",),
    "duration_s": ("--for",),
    "end": ("--until", "--end"),
    "exclude": ("--exclude",),
    "from": ("--from",),
    "hold_s": ("--for",),
    "id": ("--id",),
    "include": ("--include",),
    "lanes": ("--lanes",),
    "local_port": ("--local-port",),
    "max_rtt_ms": ("--max-rtt",),
    "owner": ("--owner",),
    "rate_bps": ("--rate",),
    "session_s": ("--session",),
    "since": ("--since",),
    "start": ("--start",),
    "tail": ("--tail",),
    "to": ("--to",),
    "who": ("--who",),
}
"""By the API's field, or the last part of its name that is one, the options that say it."""


def in_options(problem: Mapping[str, Any], typed: Collection[str]) -> str:
    """Return what is wrong, by the options that were typed; in the API's words where none of them says the field.

    Args:
        problem: as the API says it.
        typed: the options of the command line.

    >>> in_options({"detail": "end: must come after the start", "field": "end"}, ["--start", "--until"])
    '--until: must come after the start'
    >>> in_options({"detail": "end: must come after the start", "field": "end"}, ["--start", "--for"])
    'end: must come after the start'
    """
    match problem:
        case {"errors": [*errors]}:
            said = ((_option(one["field"], typed) or one["field"], one["detail"]) for one in errors)
            return "; ".join(": ".join(part for part in parts if part) for parts in said)
        case {"field": str(field), "detail": str(detail)} if option := _option(field, typed):
            return option + detail.removeprefix(field)
    return str(problem["detail"])


def _option(field: str, typed: Collection[str]) -> str | None:
    """Return the option that says a field; None if none of those that were typed does.

    >>> _option("constraints.include.0", ["--rate", "--include"])
    '--include'
    """
    found = next((OPTIONS[part] for part in reversed(field.split(".")) if part in OPTIONS), ())
    return next((option for option in found if option in typed), None)
