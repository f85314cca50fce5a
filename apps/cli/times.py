"""Times as people write them at a command line, in their own zone."""

import os
import re
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apps.cli import shown
from topology import units

_LOCAL = re.compile(
    r"(?:(?P<day>today|tomorrow)[ T]+|(?P<date>\d{4}-\d\d-\d\d)[ T]+)?(?P<time>\d\d?:\d\d(?::\d\d)?)", re.ASCII
)
EXAMPLES = 'try "22:00", "tomorrow 06:30", "2026-11-22 22:00" or "2026-11-22T22:00:00-03:00"'


def zone(name: str | None, localtime: Path = Path("/etc/localtime")) -> tzinfo:
    """Return a zone by its name, or this machine's.

    Raises:
        ValueError: there is none of this name.
    """
    if name is None:
        name = os.environ.get("TZ", "").removeprefix(":")
        if not name and localtime.exists():
            name = str(localtime.resolve()).rpartition("zoneinfo/")[2]
            if name.startswith("/"):  # a copy instead of a link: its name is lost, its rules are not
                with localtime.open("rb") as rules:
                    return ZoneInfo.from_file(rules, "local time")
    if name in {"", "UTC", "Etc/UTC"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f'there is no time zone "{name}", try "America/Santiago" or "UTC"') from error


def local_instant_us(text: str, where: tzinfo, now_us: int, after_us: int | None = None) -> int:
    """Return a time as Unix microseconds: RFC 3339, or a local time.

    Args:
        text: as it was written.
        where: the zone of local times.
        now_us: Unix time, by which today and tomorrow are known.
        after_us: a time without a date is the next one after this; after now if absent.

    Raises:
        ValueError: not such a time, or one that the zone's clocks show twice or never.
    """
    written = text.strip()
    if written == "now":
        return now_us
    match = _LOCAL.fullmatch(written)
    if match is None:
        return _with_offset_us(written)
    after_us = now_us if after_us is None or match["day"] else after_us
    try:
        clock = datetime.strptime(match["time"], "%H:%M:%S" if match["time"].count(":") == 2 else "%H:%M").time()  # noqa: DTZ007
        day = datetime.fromisoformat(match["date"]).date() if match["date"] else shown.at(after_us, where).date()
    except ValueError as error:
        raise ValueError(f'"{text}" is not a time: {error}, {EXAMPLES}') from error
    wanted = datetime.combine(day, clock, where)
    past = us(wanted.replace(fold=1)) <= after_us
    if match["day"] == "tomorrow" or (past and not match["day"] and not match["date"]):
        wanted += timedelta(days=1)
    return us(_once(wanted))


def _with_offset_us(text: str) -> int:
    try:
        return units.instant_us(text)
    except ValueError as error:
        raise ValueError(f'"{text}" is not a time, {EXAMPLES}') from error


def _once(wanted: datetime) -> datetime:
    """Return a local time that is shown exactly once.

    Raises:
        ValueError: where clocks are put back it is shown twice, where they are put forward never.
    """
    first, second = wanted.replace(fold=0), wanted.replace(fold=1)
    if first.utcoffset() == second.utcoffset():
        return first
    said, name = f"{wanted:%Y-%m-%d %H:%M}", str(wanted.tzinfo)
    if first.timestamp() < second.timestamp():
        why = "comes twice: the clocks are put back"
        choices = [first.isoformat(), second.isoformat()]
    else:
        why = "does not come: the clocks are put forward"
        choices = [shown.at(us(moment), wanted.tzinfo).isoformat() for moment in (second, first)]
    raise ValueError(f'{said} {why} in {name}; write "{choices[0]}" or "{choices[1]}"')


def us(moment: datetime) -> int:
    """Return a moment as Unix microseconds."""
    return (moment - shown.EPOCH) // timedelta(microseconds=1)
