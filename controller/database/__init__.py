"""What outlives the process: reservations, announcements and purchases, in SQLite or PostgreSQL."""

from controller.database.chain import BEGINNING, ChainEnd, ChainRow
from controller.database.changed import Noted, RefusedWish, SaveRecord
from controller.database.changes import ChangeQuery
from controller.database.database import STANDS_BY, Database
from controller.database.ended import EndedQuery
from controller.database.errors import (
    DatabaseBusy,
    DatabaseError,
    DatabaseFailed,
    DatabaseNewer,
    DatabaseTaken,
    UrlNotUsable,
)
from controller.database.history import EndedKind, HistoryItem
from controller.database.live import changed_since, ended_numbered, past_named
from controller.database.past import WINDOW_ROWS, PastPage, PastQuery
from controller.database.rows import Changes, PurchaseRow, SavedPoint, SavedRows, SavedSince

__all__ = [
    "BEGINNING",
    "STANDS_BY",
    "WINDOW_ROWS",
    "ChainEnd",
    "ChainRow",
    "ChangeQuery",
    "Changes",
    "Database",
    "DatabaseBusy",
    "DatabaseError",
    "DatabaseFailed",
    "DatabaseNewer",
    "DatabaseTaken",
    "EndedKind",
    "EndedQuery",
    "HistoryItem",
    "Noted",
    "PastPage",
    "PastQuery",
    "PurchaseRow",
    "RefusedWish",
    "SaveRecord",
    "SavedPoint",
    "SavedRows",
    "SavedSince",
    "UrlNotUsable",
    "changed_since",
    "ended_numbered",
    "past_named",
]
