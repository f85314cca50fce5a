"""What the shell offers at the tab key. It asks the controller, briefly, and says nothing if that fails."""

import os
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from apps.cli import identity, trust
from apps.cli.place import DEFAULT_URL, local

if TYPE_CHECKING:
    from headway.client import Client
    from headway.promises import AnnouncementOut, AnnouncementState, ReservationState

TIMEOUT_S = 0.5  # more than a controller needs, less than a person notices
MOST = 1000  # that a page has
LIVING: "tuple[ReservationState, ...]" = ("held", "committed", "provisioning", "active")
PROMISED: "tuple[AnnouncementState, ...]" = ("promised", "under-way", "late")

Answer = TypeVar("Answer")


def _asked(ask: "Callable[[Client], Answer]") -> Answer | None:
    """Return the controller's answer; nothing if there is none."""
    from headway import ApiError, Client

    url = local(os.environ.get("HEADWAY_URL", DEFAULT_URL))
    try:
        shown = cache(partial(identity.token, url, quickly=True))
        return ask(Client(url, token=shown, tls=trust.context(url), timeout_s=TIMEOUT_S, waits_s=()))
    except (ApiError, *identity.NOTHING_TO_SHOW, trust.NotUsable):
        return None


def reservations(incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of the reservations that have not ended, with what they are."""
    page = _asked(lambda controller: controller.list_reservations(limit=MOST, state=LIVING))
    found = page["reservations"] if page else []
    return [
        (r["id"], f"{r['state']}, {r['class']}, {r['from']} to {r['to']}, from {r['start']}")
        for r in found
        if r["id"].startswith(incomplete)
    ]


def live_announcements(incomplete: str) -> list[str]:
    """Return the names of what is announced and has not ended."""
    return _names(_asked(_live), incomplete)


def announcements(incomplete: str) -> list[str]:
    """Return the names of what is announced: first those that have not ended, of the others the earliest."""
    found = _asked(lambda controller: [*_live(controller), *controller.list_announcements(limit=MOST)["announcements"]])
    return _names(found, incomplete)


def _live(controller: "Client") -> "list[AnnouncementOut]":
    return controller.list_announcements(limit=MOST, state=PROMISED)["announcements"]


def _names(found: "list[AnnouncementOut] | None", incomplete: str) -> list[str]:
    return list(dict.fromkeys(one["id"] for one in found or () if one["id"].startswith(incomplete)))


def end_names(incomplete: str) -> list[tuple[str, str]]:
    """Return the sites and hosts."""
    network = _asked(lambda controller: controller.get_topology())
    if network is None:
        return []
    known = [(site, "site") for site in network["sites"]]
    known += [(host["name"], f"host at {host['site']}") for host in network["hosts"]]
    return [(name, what) for name, what in known if name.startswith(incomplete)]


def hosts(incomplete: str) -> list[tuple[str, str]]:
    """Return the hosts."""
    return [(name, what) for name, what in end_names(incomplete) if what != "site"]


def path_parts(incomplete: str) -> list[str]:
    """Return what a path can cross: circuits and switches."""
    network = _asked(lambda controller: controller.get_topology())
    if network is None:
        return []
    known = [*network["circuits"], *(switch["name"] for switch in network["switches"])]
    return [name for name in known if name.startswith(incomplete)]
