"""What outlives the process: reservations, announcements and purchases, in SQLite or PostgreSQL."""

from controller.store.ended import EndedQuery
from controller.store.errors import StoreBusy, StoreError, StoreFailed, StoreNewer, UrlNotUsable
from controller.store.rows import Changes, PurchaseRow, StoredRows
from controller.store.store import Store

__all__ = [
    "Changes",
    "EndedQuery",
    "PurchaseRow",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreFailed",
    "StoreNewer",
    "StoredRows",
    "UrlNotUsable",
]
