"""``headway history``: who has changed what, when and from where; and whether that is as it was written."""

import json
import time
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apps.cli import base, completion, database, options, shown, times
from apps.cli.printed import new_table, show
from topology import units

if TYPE_CHECKING:
    from controller.database import ChainEnd
    from headway.records import RememberedOut

app = typer.Typer()
_HASH_DIGITS = 64
_WORDS = {"a_end": "from", "z_end": "to", "flow_class": "class", "selector": "connections", "description": "words"}
_DURATIONS = {"max_rtt_us", "deadline_us", "session_us"}  # every other value in microseconds is an instant


@app.command()
def history(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            help="The reservation's or announcement's; all if absent.",
            autocompletion=completion.promises,
        ),
    ] = None,
    who: Annotated[str | None, typer.Option(help="By this principal, e.g. token:ana, local or controller.")] = None,
    since: Annotated[str | None, typer.Option(help="From then on, e.g. 22:00 or 2026-11-21T22:00:00Z.")] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Look in the database itself whether all is as it was written.")
    ] = False,
    noted: Annotated[
        str | None, typer.Option(metavar="NUMBER:HASH", help="With --verify: a change as the log has it.")
    ] = None,
    config: database.Config = database.USUAL,
    database_url: database.Url = None,
    zone: options.Zone = None,
    url: options.Url = options.DEFAULT_URL,
    as_json: options.AsJson = False,
) -> None:
    """Show what has become of a reservation or announcement: when, by whom, from where, what has changed.

    headway history 9f86d081884c7d65

    headway history --who token:ana --since "2026-11-21 22:00"

    headway history --verify --noted 4711:9f86d0...
    """
    if verify:
        _verify(database.url_of(config, database_url), _end(noted), as_json=as_json)
        return
    for option, value in (("--noted", noted), ("--store", database_url)):
        if value is not None:
            base.stop(f"{option} goes with --verify", base.EXIT_USAGE)
    if "" in {name, who}:
        base.stop('"" is no name that anything has', base.EXIT_USAGE)
    where = base.zone_option(zone)
    yesterday_us = times.day_before_us(time.time_ns() // 1000, where)  # a time without a date is the last one
    since = base.instant(since, where, "--since", units.shown_time(yesterday_us))
    with base.client_of(url, typed=options.typed(context)) as controller:
        found = list(controller.all_changes(id_=name, who=who, since=since))
    if name is not None and not found:
        base.stop(f'nothing is remembered of "{name}"', base.EXIT_FAILED)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        _show(found, where)


def _show(rows: "list[RememberedOut]", where: tzinfo) -> None:
    from rich.markup import escape

    table = new_table("when", "who", "from", "what", "id", "changed")
    for row in rows:
        what = row["kind"] if row["outcome"] == "done" else f"{row['kind']}: {row['outcome']}"
        changed = escape("; ".join(_said(row["old"], row["new"], where)))
        cells = (escape(row[name]) for name in ("who", "address"))
        table.add_row(shown.short(row["at"], where), *cells, what, escape(row["id"]), changed)
    show(table if rows else "no changes")


def _said(old: Mapping[str, Any] | None, new: Mapping[str, Any], where: tzinfo) -> Iterator[str]:
    """Yield what has changed in words; of something new what it has."""
    for name, value in new.items():
        if name == "version" or (old is None and name in {"state", "created_us"}):
            continue
        now = _value(name, value, where)
        if old is not None and name in old:
            yield f"{_word(name)} {_value(name, old[name], where) or 'none'} -> {now or 'none'}"
        elif now:
            yield f"{_word(name)} {now}"


def _word(name: str) -> str:
    """Return a value's name without its unit, which its text has.

    >>> _word("rate_bps"), _word("hold_until_us")
    ('rate', 'hold until')
    """
    return _WORDS.get(name) or name.removesuffix("_bps").removesuffix("_us").removesuffix("_bytes").replace("_", " ")


def _value(name: str, value: Any, where: tzinfo) -> str:
    """Return a value as people read it; empty if there is none."""
    if value is None or value is False or value in ("", []) or (value == 0 and name.endswith("_port")):
        return ""
    if name in _DURATIONS:
        return shown.written_duration(value) if value else ""
    if name.endswith("_us"):
        return shown.short(units.shown_time(value), where)
    if name.endswith("_bps"):
        return units.shown_rate(value)
    if name.endswith("_bytes"):
        return f"{value:,} bytes"
    match value:
        case list():
            said = (" - " if isinstance(value[0], str) else ", ").join(_value("", one, where) for one in value)
        case dict():
            parts = ((_word(key), _value(key, one, where)) for key, one in value.items())
            said = " ".join(f"{key} {part}" for key, part in parts if part)
        case _:
            said = value if isinstance(value, str) else json.dumps(value)
    return said


def _end(noted: str | None) -> "ChainEnd | None":
    if noted is None:
        return None
    from controller.database import ChainEnd

    number, _, its_hash = noted.strip().partition(":")
    if not number.isdecimal() or len(its_hash) != _HASH_DIGITS:
        base.stop("--noted: need NUMBER:HASH, as changes.last in the controller's log has them", base.EXIT_USAGE)
    return ChainEnd(int(number), its_hash.lower())


def _verify(url: str, noted: "ChainEnd | None", *, as_json: bool) -> None:
    from controller.database import DatabaseError
    from controller.database.verify import verified

    try:
        found = verified(url, noted)
    except DatabaseError as error:
        database.stop_for(error)
    end, fault = found.end, found.fault
    if as_json:
        broken = None if fault is None else {"number": fault.number, "why": fault.why}
        typer.echo(json.dumps({"rows": found.rows, "number": end.number, "hash": end.hash, "broken": broken}))
    elif fault is None:
        typer.echo(f"{found.rows:,} changes are as they were written; the last is {end.number}:{end.hash}")
    if fault is not None:
        base.stop(f"change {fault.number} is not as it should be: {fault.why}", base.EXIT_BROKEN)
