"""Why something went wrong with a database, in a line for people."""

from pathlib import Path

from sqlalchemy.exc import StatementError

from controller.database.errors import DatabaseBusy, DatabaseNewer, DatabaseTaken


def why_of(error: Exception) -> str:
    """Return what happened in one line: the database's own words, without our statements and their values."""
    match error:
        case DatabaseBusy():
            return f"meanwhile it is in use by {error.holder}"
        case DatabaseTaken():
            return f"another controller has had it meanwhile (term {error.found})"
        case DatabaseNewer():
            return f"meanwhile Headway {error.written_by} has written it (schema {error.found})"
        case StatementError(orig=BaseException() as cause):
            text = str(cause)
        case FileNotFoundError():
            text = f"there is no folder {Path(error.filename).parent}: make it first"
        case OSError():
            text = str(error)
        case _:
            text = f"{type(error).__name__}: {error}"
    return "; ".join(line.strip() for line in text.splitlines() if line.strip()) or type(error).__name__
