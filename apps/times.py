"""Times and durations as people write them at a command line, in their own zone; and back."""

import os
import re
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from topology import units

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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


def instant_us(text: str, where: tzinfo, now_us: int, after_us: int | None = None) -> int:
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
        day = datetime.fromisoformat(match["date"]).date() if match["date"] else _at(after_us, where).date()
    except ValueError as error:
        raise ValueError(f'"{text}" is not a time: {error}, {EXAMPLES}') from error
    wanted = datetime.combine(day, clock, where)
    past = _us(wanted.replace(fold=1)) <= after_us
    if match["day"] == "tomorrow" or (past and not match["day"] and not match["date"]):
        wanted += timedelta(days=1)
    return _us(_once(wanted))


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
        choices = [_written(first), _written(second)]
    else:
        why = "does not come: the clocks are put forward"
        choices = [_written(_at(_us(moment), wanted.tzinfo)) for moment in (second, first)]
    raise ValueError(f'{said} {why} in {name}; write "{choices[0]}" or "{choices[1]}"')


def _written(moment: datetime) -> str:
    return moment.isoformat()


def _at(unix_us: int, where: tzinfo | None) -> datetime:
    return (_EPOCH + timedelta(microseconds=unix_us)).astimezone(where)


def _us(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def written(rfc3339: str, where: tzinfo) -> str:
    """Return a time of the API with its offset in a zone; exact, so that it can be typed again."""
    return _written(_at(units.instant_us(rfc3339), where))


def shown(rfc3339: str, where: tzinfo) -> str:
    """Return a time of the API for people: in their zone, and in UTC.

    >>> shown("2026-11-22T01:00:00Z", ZoneInfo("America/Santiago"))
    'Sat 2026-11-21 22:00 -03 (America/Santiago), 2026-11-22T01:00:00Z'
    """
    return short(rfc3339, where) + ("" if where is UTC else f" ({where}), {rfc3339}")


def short(rfc3339: str, where: tzinfo) -> str:
    """Return a time of the API in a zone; seconds only where there are.

    >>> short("2026-11-22T01:00:30.5Z", UTC)
    'Sun 2026-11-22 01:00:30 UTC'
    """
    moment = _at(units.instant_us(rfc3339), where)
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
