"""A controller's REST API: one method for each of its operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headway.operations import Operations

if TYPE_CHECKING:
    from headway.promises import AnnouncementOut, ReservationOut
    from headway.records import EndedOut, RememberedOut

PAGE = 1000


class Client(Operations):
    """A controller, by its REST API.

    Each operation of the API's description is a method of the same name, with the same parameters (in Python words with
    an underscore behind, as ``from_``) and the same types. A request that may be sent again is sent again for a few
    seconds if no answer comes or the controller asks for it, no sooner than it says; one that makes something has an
    ``Idempotency-Key`` of its own, so it is done once, however often it was sent.

    Errors are :class:`headway.ApiError`.
    """

    def all_reservations(self, **which: Any) -> Iterator[ReservationOut]:
        """Yield reservations, page after page; ``which`` is as in :meth:`list_reservations`."""
        which = {"limit": PAGE, "cursor": None, **which}
        while True:
            page = self.list_reservations(**which)
            yield from page["reservations"]
            which["cursor"] = page["next"]
            if page["next"] is None:
                return

    def all_announcements(self, **which: Any) -> Iterator[AnnouncementOut]:
        """Yield announcements, page after page; ``which`` is as in :meth:`list_announcements`."""
        which = {"limit": PAGE, "cursor": None, **which}
        while True:
            page = self.list_announcements(**which)
            yield from page["announcements"]
            which["cursor"] = page["next"]
            if page["next"] is None:
                return

    def all_ended(self, cursor: str | None = None) -> Iterator[EndedOut]:
        """Yield what has ended after a cursor, page after page."""
        while True:
            page = self.list_history(limit=PAGE, cursor=cursor)
            yield from page["ended"]
            cursor = page["next"]
            if cursor is None:
                return

    def all_changes(self, **which: Any) -> Iterator[RememberedOut]:
        """Yield who has changed what, page after page; ``which`` is as in :meth:`list_changes`."""
        which = {"limit": PAGE, "cursor": None, **which}
        while True:
            page = self.list_changes(**which)
            yield from page["changes"]
            which["cursor"] = page["next"]
            if page["next"] is None:
                return
