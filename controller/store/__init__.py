"""What outlives the process: reservations, announcements and purchases, in SQLite or PostgreSQL."""

from controller.store.chain import BEGINNING, ChainEnd, ChainRow
from controller.store.changed import Noted, RefusedWish, SaveRecord
from controller.store.changes import ChangeQuery
from controller.store.ended import EndedQuery
from controller.store.errors import StoreBusy, StoreError, StoreFailed, StoreNewer, StoreTaken, UrlNotUsable
from controller.store.history import EndedKind, HistoryItem
from controller.store.past import WINDOW_ROWS, PastPage, PastQuery
from controller.store.rows import Changes, PurchaseRow, StoredRows
from controller.store.store import Store

__all__ = [
    "BEGINNING",
    "WINDOW_ROWS",
    "ChainEnd",
    "ChainRow",
    "ChangeQuery",
    "Changes",
    "EndedKind",
    "EndedQuery",
    "HistoryItem",
    "Noted",
    "PastPage",
    "PastQuery",
    "PurchaseRow",
    "RefusedWish",
    "SaveRecord",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreFailed",
    "StoreNewer",
    "StoreTaken",
    "StoredRows",
    "UrlNotUsable",
]
