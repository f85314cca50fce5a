"""Times, durations and rates as the command line shows them, and as they can be typed again."""

import os
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo  # noqa: F401 - for the example

import typer

from topology import units
from topology.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PIPE_COLUMNS = 200  # no table of ours is wider


def console(*, stderr: bool = False) -> "Console":
    """Return where tables go; into a pipe they are as wide as they need, unless COLUMNS says otherwise."""
    from apps.cli.harmless import HarmlessConsole

    out = HarmlessConsole(stderr=stderr, highlight=False, emoji=False)  # an address of IPv6 may have :a: in it
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = PIPE_COLUMNS
    return out


def in_line(value: object) -> str:
    r"""Return what somebody has said as it stands in a line of ours.

    >>> in_line("no\x1b[2J\nAll is as planned.")
    'no\\x1b[2J\\nAll is as planned.'
    """
    return printable(str(value)).replace("\n", "\\n")


def say(text: str, *, stderr: bool = False) -> None:
    """Print lines for people; what would move the cursor of a terminal is written out, for they may be strangers'."""
    typer.echo(printable(text, len(text)), err=stderr)


def at(unix_us: int, where: tzinfo | None) -> datetime:
    """Return a Unix time as a moment in a zone."""
    return (EPOCH + timedelta(microseconds=unix_us)).astimezone(where)


def exact(rfc3339: str, where: tzinfo) -> str:
    """Return a time of the API with its offset in a zone; exact, so that it can be typed again."""
    return at(units.instant_us(rfc3339), where).isoformat()


def long(rfc3339: str, where: tzinfo) -> str:
    """Return a time of the API for people: in their zone, and in UTC.

    >>> long("2026-11-22T01:00:00Z", ZoneInfo("America/Santiago"))
    'Sat 2026-11-21 22:00 -03 (America/Santiago), 2026-11-22T01:00:00Z'
    """
    return short(rfc3339, where) + ("" if where is UTC else f" ({where}), {rfc3339}")


def short(rfc3339: str, where: tzinfo) -> str:
    """Return a time of the API in a zone; seconds only where there are.

    >>> short("2026-11-22T01:00:30.5Z", UTC)
    'Sun 2026-11-22 01:00:30 UTC'
    """
    moment = at(units.instant_us(rfc3339), where)
    return f"{moment:%a %Y-%m-%d %H:%M{':%S' if moment.second else ''} %Z}"


def written_duration(duration_us: int) -> str:
    """Return a duration as it can be typed again, exactly.

    >>> written_duration(36_000_000_000), written_duration(5_400_000_000), written_duration(24_973_001)
    ('10h', '90min', '24973001us')
    """
    for unit, unit_us in (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000)):
        if duration_us % unit_us == 0:
            return f"{duration_us // unit_us}{unit}"
    return f"{duration_us}us"


def seconds(duration_us: int) -> int | float:
    """Return a duration as the API takes it; whole seconds stay whole."""
    return duration_us // 1_000_000 if duration_us % 1_000_000 == 0 else duration_us / 1_000_000


def written_rate(rate_bps: int) -> str:
    """Return a rate as it can be typed again, exactly.

    >>> written_rate(338_800_000), written_rate(10_000_000_000), written_rate(1_234_567)
    ('338.8Mbps', '10Gbps', '1.234567Mbps')
    """
    for prefix, times_bps in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if rate_bps >= times_bps:
            return f"{(Decimal(rate_bps) / times_bps).normalize():f}{prefix}bps"
    return f"{rate_bps}bps"
