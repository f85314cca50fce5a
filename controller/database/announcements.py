"""Announcements as the database has them: JSON, in which what they book has its name. Pure."""

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
    tree["need"] = _need_tree(announcement.need)
    for lane, of_lane in zip(tree["lanes"], announcement.lanes, strict=True):
        lane["need"] = _need_tree(of_lane.need)
    return to_json(tree).decode()


def announcement_of(text: str) -> Announcement:
    """Return the announcement of which this is the text.

    Raises:
        ValueError, KeyError, TypeError: it was not written by us.
    """
    tree = json.loads(text)
    lanes = [lane | {"need": _need(lane["need"])} for lane in tree.get("lanes", ())]
    return _ANNOUNCEMENT.validate_python(tree | {"need": _need(tree["need"]), "lanes": lanes})


def _need_tree(need: Need) -> dict[str, list[tuple[str, int]]]:
    return {"shares_ppm": [(str(resource), ppm) for resource, ppm in need.shares_ppm]}


def _need(tree: dict[str, list[tuple[str, int]]]) -> Need:
    return Need(tuple((resource_of(resource), ppm) for resource, ppm in tree["shares_ppm"]))
