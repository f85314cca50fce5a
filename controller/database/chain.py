"""A chain of hashes over what is remembered: each row's hash is of its predecessor's and of its own content. Pure.

So whoever removes, alters or swaps rows must make all that follow anew, to the last one; and the number and hash of
that are kept beside the table, and go to the log, which is shipped elsewhere.

The canonical content is a JSON array of ASCII without blanks: the number, then the fields in the order of
:class:`Remembered`, as the columns have them. The hash is SHA-256, 64 hexadecimal digits, of the 64 digits of the
predecessor's and the canonical content behind them. The first row has 64 zeros before it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

_CANONICAL = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=repr)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is remembered of a change, as the columns have it.

    Attributes:
        at_us: when, calendar time in Unix microseconds.
        who: the principal.
        address: where from.
        request_id: names the request.
        kind: what has happened, as the event is called: ``reservation.held``.
        id: of the reservation or announcement.
        old: the values that have changed, as they were: a JSON object; None if there was nothing before.
        new: the same as they are; all values of something new.
        outcome: ``done``, or why it was refused.
    """

    at_us: int
    who: str
    address: str
    request_id: str
    kind: str
    id: str
    old: str | None
    new: str
    outcome: str


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """Where a part of the chain ends: the number and the hash of a row."""

    number: int
    hash: str


BEGINNING = ChainEnd(0, "0" * 64)


@dataclass(frozen=True, slots=True)
class ChainRow:
    """A row: its number, what is remembered, and its hash."""

    number: int
    change: Remembered
    hash: str

    @property
    def end(self) -> ChainEnd:
        """Where the chain ends with it."""
        return ChainEnd(self.number, self.hash)


@dataclass(frozen=True, slots=True)
class ChainFault:
    """The first row that is not as it was written, and why that is known."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class ChainChecked:
    """What a look along the chain has found.

    Attributes:
        rows: how many were right.
        end: the last that was.
        fault: what comes behind it; None if nothing is wrong.
    """

    rows: int
    end: ChainEnd
    fault: ChainFault | None


def canonical(number: int, change: Remembered) -> str:
    """Return a row's content in the one way in which it is hashed."""
    c = change
    return _CANONICAL.encode([number, c.at_us, c.who, c.address, c.request_id, c.kind, c.id, c.old, c.new, c.outcome])


def hash_of(before: str, number: int, change: Remembered) -> str:
    """Return the hash of a row.

    Args:
        before: its predecessor's.
        number: its own.
        change: what is remembered.
    """
    return sha256(f"{before}{canonical(number, change)}".encode()).hexdigest()


def chained(end: ChainEnd, changes: Iterable[Remembered]) -> list[ChainRow]:
    """Return the rows that follow an end."""
    rows: list[ChainRow] = []
    for change in changes:
        number = end.number + 1
        rows.append(ChainRow(number, change, hash_of(end.hash, number, change)))
        end = rows[-1].end
    return rows


def checked(rows: Iterable[ChainRow], cut: ChainEnd, last: ChainEnd) -> ChainChecked:
    """Go along the chain, to its end or to the first row that is wrong.

    Args:
        rows: in the order of their numbers.
        cut: the last row that was forgotten; :data:`BEGINNING` if none was.
        last: the last row that was written.
    """
    end, count = cut, 0
    for row in rows:
        if row.number != end.number + 1:
            return ChainChecked(count, end, ChainFault(end.number + 1, "it is missing"))
        if row.hash != hash_of(end.hash, row.number, row.change):
            return ChainChecked(count, end, ChainFault(row.number, "it is not as it was written"))
        end, count = row.end, count + 1
    fault = None
    if end.number < last.number:
        fault = ChainFault(end.number + 1, f"it is missing, as is all up to {last.number}, the last that was written")
    elif end != last:
        fault = ChainFault(end.number, f"it is not the last that was written: that was {last.number}, {last.hash}")
    return ChainChecked(count, end, fault)
