"""Times as people write them at a command line, in their own zone."""

import os
import re
import struct
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apps.cli import shown
from topology import units

_LOCAL = re.compile(
    r"(?:(?P<day>today|tomorrow)[ T]+|(?P<date>\d{4}-\d\d-\d\d)[ T]+)?(?P<time>\d\d?:\d\d(?::\d\d)?)", re.ASCII
)
_NAME, _CLOCK, _DAY = (
    r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)",
    r"[+-]?\d{1,3}(?::\d\d){0,2}",
    r"(?:J?\d{1,3}|M\d\d?\.\d\.\d)",
)
_POSIX = re.compile(  # POSIX.1-2024, 8.3, TZ, in its first format
    rf"{_NAME}{_CLOCK}(?:{_NAME}(?:{_CLOCK})?(?:,{_DAY}(?:/{_CLOCK})?,{_DAY}(?:/{_CLOCK})?)?)?", re.ASCII
)
EXAMPLES = 'try "22:00", "tomorrow 06:30", "2026-11-22 22:00" or "2026-11-22T22:00:00-03:00"'


def zone(name: str | None, localtime: Path = Path("/etc/localtime")) -> tzinfo:
    """Return a zone by its name, or this machine's: by TZ, which may be a name, a file or a rule of POSIX.

    Raises:
        ValueError: there is none of this name.
    """
    if name is not None:
        return _named(name)
    if "TZ" not in os.environ:
        return _of_file(localtime) if localtime.exists() else UTC
    said = os.environ["TZ"].removeprefix(":")  # UTC if it is empty, as for the C library
    if said.startswith("/"):
        return _of_file(Path(said))
    try:
        return _named(said)
    except ValueError:
        if _POSIX.fullmatch(said):
            return LibcZone(said)
        raise


def _named(name: str) -> tzinfo:
    if name in {"", "UTC", "Etc/UTC"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f'there is no time zone "{name}", try "America/Santiago" or "UTC"') from error


def _of_file(path: Path) -> tzinfo:
    """Return the zone of a file of rules, by its name where it is, or links to, one of the system's."""
    try:
        name = str(path.resolve()).rpartition("zoneinfo/")[2]
        if not name.startswith("/"):
            return _named(name)
        with path.open("rb") as rules:  # a copy instead of a link: its name is lost, its rules are not
            return ZoneInfo.from_file(rules, "local time")
    except (ValueError, OSError, EOFError, struct.error) as error:
        raise ValueError(f'there is no time zone in "{path}", try TZ=America/Santiago') from error


class LibcZone(tzinfo):
    """The zone of a rule of POSIX in TZ: what the C library makes of it, as ``date`` does."""

    def __init__(self, rule: str) -> None:
        self._rule = rule

    def __str__(self) -> str:
        """Return the rule."""
        return self._rule

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """Return how far its clocks are ahead; of a time that comes twice, or never, as ``fold`` says (PEP 495)."""
        if moment is None:
            return None
        there = moment.replace(tzinfo=None, microsecond=0)
        return there.replace(tzinfo=UTC) - shown.EPOCH - timedelta(seconds=there.timestamp())

    def dst(self, _: datetime | None) -> timedelta | None:
        """Return nothing: it is not known how much of it is of the summer."""
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        """Return what it is called then."""
        return None if moment is None else moment.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, moment: datetime) -> datetime:
        """Return what its clocks show at a moment of UTC."""
        local = moment.replace(tzinfo=UTC).astimezone()
        wanted = local.replace(tzinfo=self, fold=0)
        return wanted.replace(fold=int(wanted.utcoffset() != local.utcoffset()))


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


def day_before_us(now_us: int, where: tzinfo) -> int:
    """Return when a zone's clocks showed the same the day before; the next such time after it is the last one."""
    return us((shown.at(now_us, where) - timedelta(days=1)).replace(fold=1))


def _with_offset_us(text: str) -> int:
    try:
        return units.instant_us(text)
    except units.BeyondAllYears:
        raise
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
