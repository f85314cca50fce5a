"""What outlives the process: reservations, announcements and purchases, in SQLite or PostgreSQL."""

from controller.store.ended import EndedQuery
from controller.store.errors import StoreBusy, StoreError, StoreFailed, StoreNewer, UrlNotUsable
from controller.store.history import EndedKind, HistoryItem
from controller.store.past import WINDOW_ROWS, PastPage, PastQuery
from controller.store.rows import Changes, PurchaseRow, StoredRows
from controller.store.store import Store

__all__ = [
    "WINDOW_ROWS",
    "Changes",
    "EndedKind",
    "EndedQuery",
    "HistoryItem",
    "PastPage",
    "PastQuery",
    "PurchaseRow",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreFailed",
    "StoreNewer",
    "StoredRows",
    "UrlNotUsable",
]
