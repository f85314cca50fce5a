"""Announcements as the store has them: JSON, in which what they book has its name. Pure."""

import json

from pydantic import TypeAdapter
from pydantic_core import to_json

from controller.plan.announcements import Announcement
from controller.plan.calendar import Need
from controller.plan.keys import resource_of

_ANNOUNCEMENT = TypeAdapter(Announcement)


def announcement_text(announcement: Announcement) -> str:
    """Return an announcement as its JSON text."""
    tree = _ANNOUNCEMENT.dump_python(announcement, mode="json")
    tree["need"]["shares_ppm"] = [(str(resource), ppm) for resource, ppm in announcement.need.shares_ppm]
    return to_json(tree).decode()


def announcement_of(text: str) -> Announcement:
    """Return the announcement of which this is the text.

    Raises:
        ValueError, KeyError, TypeError: it was not written by us.
    """
    tree = json.loads(text)
    need = Need(tuple((resource_of(resource), ppm) for resource, ppm in tree["need"]["shares_ppm"]))
    return _ANNOUNCEMENT.validate_python(tree | {"need": need})
