"""Moments, durations and measured rates for people. Pure."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc(unix_us: int) -> datetime:
    """Return a moment, exactly: a fraction is not rounded up beyond the last year that there is."""
    return _EPOCH + timedelta(microseconds=unix_us)


def when(unix_us: int) -> str:
    """Return a moment, always of UTC.

    >>> when(1_767_225_600_000_000)
    '2026-01-01 00:00:00 UTC'
    """
    return f"{utc(unix_us):%Y-%m-%d %H:%M:%S} UTC"


def clock(unix_us: int) -> str:
    """Return a moment of these days, of UTC.

    >>> clock(1_767_225_600_000_000)
    '01 Jan 00:00 UTC'
    """
    return f"{utc(unix_us):%d %b %H:%M} UTC"


def duration(us: int) -> str:
    """Return for how long.

    >>> duration(5_400_000), duration(3_720_000_000)
    ('5 s', '1 h 2 min')
    """
    seconds = max(0, us // 1_000_000)
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def measured_rate(bps: int) -> str:
    """Return a measured rate, rounded.

    >>> measured_rate(94_321_000), measured_rate(0)
    ('94.3 Mbit/s', '0')
    """
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= size:
            return f"{bps / size:.3g} {unit}"
    return str(bps)
