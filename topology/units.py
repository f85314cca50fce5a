"""Quantities as people write them, read into integers of base units; and back."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

# More digits than anything has; Python writes 0.00005 as 5e-05.
_QUANTITY = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?(?:e-[0-9]{2})?)\s*([A-Za-zµ%/]*)\s*")
_DURATION = re.compile(r"(?:\s*[0-9]+(?:\.[0-9]+)?\s*[A-Za-zµ]+)+\s*")
_PARTS = re.compile(r"[0-9.]+\s*[A-Za-zµ]+")
_PREFIX = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
# A lone b is a bit and a lone B a byte, so that is the one letter of a rate whose case matters.
_BITS = ("bit/s", "Bit/s", "bits/s", "b/s", "bps", "bit", "Bit", "bits", "b")
_RATES = {f"{p}{unit}": n for prefix, n in _PREFIX.items() for p in {prefix, prefix.swapcase()} for unit in _BITS}
_SIZES = {f"{p}B": n for p, n in _PREFIX.items()} | {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "": 1}
_SIZES |= {"KB": 10**3}
_DURATION_NAMES = (
    (7 * 86_400 * 10**6, "w week weeks"),
    (86_400 * 10**6, "d day days"),
    (3600 * 10**6, "h hour hours"),
    (60 * 10**6, "m min mins minute minutes"),
    (10**6, "s sec secs second seconds"),
    (10**3, "ms"),
    (1, "us µs"),
)
_DURATIONS_US = {name: us for us, names in _DURATION_NAMES for name in names.split()}
_FRACTIONS_PPM = {"%": 10**4, "ppm": 1, "": 10**6}


def _parsed(text: str, units: dict[str, int], kind: str, example: str) -> int:
    """Return ``text`` in base units; the number must come out whole.

    Raises:
        ValueError: with the hint ``try "<example>"``.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in units:
        raise ValueError(f'"{text[:80]}" is not {kind}, try "{example}"')
    value = Decimal(match[1]) * units[match[2]]
    if value != value.to_integral_value():
        raise ValueError(f'"{text[:80]}" is finer than the smallest unit of {kind}, try "{example}"')
    return int(value)


def rate_bps(text: str) -> int:
    """Return a rate in bit/s; bytes per second are none of it, for a slip of one letter would be eightfold.

    >>> rate_bps("1 GBit/s"), rate_bps("2.5Gbps"), rate_bps("800 kbit/s"), rate_bps("1Gb")
    (1000000000, 2500000000, 800000, 1000000000)

    Raises:
        ValueError: not a rate.
    """
    return _parsed(text, _RATES, "a rate", "10 Gbit/s")


def size_bytes(text: str) -> int:
    """Return a size in bytes; kB, MB, GB are decimal, KiB, MiB, GiB binary.

    >>> size_bytes("2.7GB"), size_bytes("1344012290")
    (2700000000, 1344012290)

    Raises:
        ValueError: not a size.
    """
    return _parsed(text, _SIZES, "a size", "2.7 GB")


def duration_us(text: str) -> int:
    """Return a duration in microseconds: a number with its unit, or several, from the largest unit down.

    >>> duration_us("90 ms"), duration_us("2.5s"), duration_us("1h30m"), duration_us("2days")
    (90000, 2500000, 5400000000, 172800000000)

    Raises:
        ValueError: not a duration.
    """
    parts = _PARTS.findall(text) if _DURATION.fullmatch(text) else [text]
    counted = [_parsed(part, _DURATIONS_US, "a duration", "1h30m") for part in parts]
    units_us = [_DURATIONS_US[match[2]] for match in map(_QUANTITY.fullmatch, parts) if match]
    if any(small >= large for large, small in pairwise(units_us)):
        raise ValueError(f'"{text[:80]}" is not a duration: each unit once, the largest first, try "1h30m"')
    return sum(counted)


def fraction_ppm(text: str) -> int:
    """Return a fraction in parts per million.

    >>> fraction_ppm("0.01%"), fraction_ppm("95%"), fraction_ppm("0.47"), fraction_ppm(str(0.00005))
    (100, 950000, 470000, 50)

    Raises:
        ValueError: not a fraction.
    """
    return _parsed(text, _FRACTIONS_PPM, "a fraction", "0.01%")


def shown_rate(bps: int) -> str:
    """Return a rate for people: at most three decimals, the largest prefix that leaves at least 1.

    >>> shown_rate(941_482_444), shown_rate(10_000_000_000), shown_rate(0)
    ('941.482 Mbit/s', '10 Gbit/s', '0 bit/s')
    """
    for prefix in ("T", "G", "M", "k"):
        if bps >= _PREFIX[prefix]:
            return f"{bps / _PREFIX[prefix]:.3f}".rstrip("0").rstrip(".") + f" {prefix}bit/s"
    return f"{bps} bit/s"


def shown_size(size_bytes: int) -> str:
    """Return a size for people: at most one decimal, the largest decimal prefix that leaves at least 1.

    >>> shown_size(2_688_024_580), shown_size(6_291_456), shown_size(512)
    ('2.7 GB', '6.3 MB', '512 B')
    """
    for prefix in ("T", "G", "M", "k"):
        if size_bytes >= _PREFIX[prefix]:
            return f"{size_bytes / _PREFIX[prefix]:.1f}".removesuffix(".0") + f" {prefix}B"
    return f"{size_bytes} B"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


class BeyondAllYears(ValueError):
    """A time is well-formed, and not in the years 1 to 9999 of UTC."""


def shown_delay(delay_us: int) -> str:
    """Return a delay for people, exactly.

    >>> shown_delay(90_000), shown_delay(1_250)
    ('90 ms', '1.25 ms')
    """
    return f"{delay_us / 1000:.3f}".rstrip("0").rstrip(".") + " ms"


def shown_time(unix_us: int) -> str:
    """Return a Unix time in microseconds as RFC 3339 in UTC; a fraction only where there is one.

    >>> shown_time(1_767_225_600_000_000), shown_time(1_767_225_600_000_001)
    ('2026-01-01T00:00:00Z', '2026-01-01T00:00:00.000001Z')
    """
    text = (_EPOCH + timedelta(microseconds=unix_us)).isoformat()
    return text.removesuffix("+00:00") + "Z"


def instant_us(text: str) -> int:
    """Return an RFC 3339 time with its offset as Unix microseconds; finer fractions are cut off.

    >>> instant_us("2026-01-01T01:00:00+01:00"), instant_us("2026-01-01T00:00:00.5Z")
    (1767225600000000, 1767225600500000)

    Raises:
        BeyondAllYears: :func:`shown_time` could not show it.
        ValueError: not such a time, or one without an offset.
    """
    example = 'try "2026-11-21T22:00:00Z" or "2026-11-21T19:00:00-03:00"'
    if not _RFC3339.fullmatch(text):
        raise ValueError(f'"{text}" is not a time with its offset from UTC (RFC 3339), {example}')
    try:
        moment = datetime.fromisoformat(text.upper())
    except (ValueError, OverflowError) as error:
        raise ValueError(f'"{text}" is not a time: {error}, {example}') from error
    offset = moment.utcoffset() or timedelta()
    unix_us = (moment.replace(tzinfo=UTC) - _EPOCH - offset) // timedelta(microseconds=1)
    if not _FIRST_US <= unix_us <= _LAST_US:
        raise BeyondAllYears(f'"{text}" is not in the years 1 to 9999 of UTC, {example}')
    return unix_us


# RFC 3339 section 5.6; no leap second, which Unix time does not have.
_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)
