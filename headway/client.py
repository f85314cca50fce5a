"""A controller's REST API: one method for each of its operations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
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
        """Yield reservations, page after page; ``which`` is as in :meth:`list_reservations`.

        A ``RuntimeWarning`` says if those that have ended are not all there, as the page's ``lacks`` does.
        """
        return _pages(self.list_reservations, "reservations", which)

    def all_announcements(self, **which: Any) -> Iterator[AnnouncementOut]:
        """Yield announcements, page after page; ``which`` is as in :meth:`list_announcements`.

        A ``RuntimeWarning`` says if those that have ended are not all there, as the page's ``lacks`` does.
        """
        return _pages(self.list_announcements, "announcements", which)

    def all_ended(self, cursor: str | None = None) -> Iterator[EndedOut]:
        """Yield what has ended after a cursor, page after page."""
        return _pages(self.list_history, "ended", {"cursor": cursor})

    def all_changes(self, **which: Any) -> Iterator[RememberedOut]:
        """Yield who has changed what, page after page; ``which`` is as in :meth:`list_changes`."""
        return _pages(self.list_changes, "changes", which)


def _pages(listed: Callable[..., Any], of_page: str, which: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what pages of a list have under a key, page after page; ``which`` is what the list is asked with."""
    asked = {"limit": PAGE, "cursor": None, **which}
    is_whole = True
    while True:
        page = listed(**asked)
        if is_whole and page.get("lacks"):
            is_whole = False
            said = f"those that have ended are not all here, for the database cannot be read: {page['lacks']}"
            warnings.warn(said, RuntimeWarning, stacklevel=2)
        yield from page[of_page]
        asked["cursor"] = page["next"]
        if page["next"] is None:
            return
