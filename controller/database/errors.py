"""What can go wrong between us and the database.

DatabaseError
├── UrlNotUsable    the URL names no database that we can use
├── DatabaseBusy    another controller has it
├── DatabaseTaken   another controller has had it since we were alone with it
├── DatabaseNewer   a newer Headway has written it
├── NotRestorable   a backup cannot be put into it
└── DatabaseFailed  it cannot be read or written; nothing since the last acknowledged save is in it for certain

Every ``url`` here is without password. They are data classes, but not frozen ones: contextlib writes ``__traceback__``
of an exception that passes through it.
"""

from dataclasses import dataclass


class DatabaseError(Exception):
    """Root of everything raised by ``controller.database``."""


@dataclass(eq=False)
class UrlNotUsable(DatabaseError):
    """The URL names no database that we can use; it is not repeated here, for it may have a password in it."""

    why: str

    def __str__(self) -> str:
        """Return what is wrong, and what is right, for people."""
        return (
            f"the database's URL cannot be used: {self.why}; "
            "need sqlite:////<absolute path> or postgresql://<user>:<password>@<host>/<database>"
        )


@dataclass(eq=False)
class DatabaseBusy(DatabaseError):
    """Another controller has the database, and one must be alone with it."""

    url: str
    holder: str

    def __str__(self) -> str:
        """Return who has it, and what to do, for people."""
        return f"{self.url} is in use by {self.holder}: only one controller may use a database, stop that one first"


@dataclass(eq=False)
class DatabaseTaken(DatabaseError):
    """Another controller has had the database since we were alone with it: what we remember may be of the past."""

    url: str
    ours: int
    found: int

    def __str__(self) -> str:
        """Return what has happened, and what follows, for people."""
        return (
            f"{self.url} has had another controller meanwhile (term {self.found}, ours was {self.ours}): "
            "this one decides nothing any more and must be started again"
        )


@dataclass(eq=False)
class DatabaseNewer(DatabaseError):
    """A newer Headway has written the database, in a way that this one does not understand.

    Attributes:
        url: the database.
        found: the revision of its schema.
        known: the newest revision that this Headway knows.
        written_by: the version of the Headway that opened it last.
        running: the version of this one.
    """

    url: str
    found: str
    known: str
    written_by: str
    running: str

    def __str__(self) -> str:
        """Return what was found, and what to do, for people."""
        return (
            f"{self.url} was written by Headway {self.written_by} (schema {self.found}), this is {self.running} and "
            f"knows schemas up to {self.known}: install {self.written_by} or newer, or restore a backup"
        )


@dataclass(eq=False)
class NotRestorable(DatabaseError):
    """A backup is not whole, or the database has something already; nothing was written."""

    why: str

    def __str__(self) -> str:
        """Return what is in the way, for people."""
        return self.why


@dataclass(eq=False)
class DatabaseFailed(DatabaseError):
    """The database cannot be read or written; saves are refused until it was loaded again."""

    url: str
    why: str

    def __str__(self) -> str:
        """Return what happened, for people."""
        return f"{self.url}: {self.why}"
