"""What the shell offers at the tab key. It asks the controller, briefly, and says nothing if that fails."""

import os
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from apps.cli import identity, trust
from apps.cli.place import DEFAULT_URL, local

if TYPE_CHECKING:
    from headway.client import Client
    from headway.promises import AnnouncementState, ReservationState

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
    return [(name, what) for name, what in _asked(_reserved) or () if name.startswith(incomplete)]


def live_announcements(incomplete: str) -> list[str]:
    """Return the names of what is announced and has not ended."""
    return [name for name in _asked(_live) or () if name.startswith(incomplete)]


def announcements(incomplete: str) -> list[str]:
    """Return the names of what is announced: first those that have not ended, of the others the earliest."""
    return [name for name in _asked(_announced) or () if name.startswith(incomplete)]


def promises(incomplete: str) -> list[tuple[str, str]]:
    """Return the reservations that have not ended, with what they are, and what is announced."""
    found = _asked(
        lambda controller: [*_reserved(controller), *((name, "announced") for name in _announced(controller))]
    )
    return [(name, what) for name, what in found or () if name.startswith(incomplete)]


def _reserved(controller: "Client") -> list[tuple[str, str]]:
    found = controller.list_reservations(limit=MOST, state=LIVING)["reservations"]
    return [(r["id"], f"{r['state']}, {r['class']}, {r['from']} to {r['to']}, from {r['start']}") for r in found]


def _live(controller: "Client") -> list[str]:
    return [one["id"] for one in controller.list_announcements(limit=MOST, state=PROMISED)["announcements"]]


def _announced(controller: "Client") -> list[str]:
    others = (one["id"] for one in controller.list_announcements(limit=MOST)["announcements"])
    return list(dict.fromkeys((*_live(controller), *others)))


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


def sending_hosts(incomplete: str) -> list[tuple[str, str]]:
    """Return the hosts, behind those that stand before a comma already."""
    before, comma, last = incomplete.rpartition(",")
    return [(f"{before}{comma}{name}", what) for name, what in hosts(last)]


def circuits(incomplete: str) -> list[str]:
    """Return the circuits."""
    network = _asked(lambda controller: controller.get_topology())
    return [] if network is None else [name for name in network["circuits"] if name.startswith(incomplete)]


def path_parts(incomplete: str) -> list[str]:
    """Return what a path can cross: circuits and switches."""
    network = _asked(lambda controller: controller.get_topology())
    if network is None:
        return []
    known = [*network["circuits"], *(switch["name"] for switch in network["switches"])]
    return [name for name in known if name.startswith(incomplete)]


def planned_maintenance(incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of the maintenance that is planned, with what it is."""
    planned = _asked(lambda controller: controller.list_maintenance()) or []
    return [
        (one["id"], f"{one['circuit']}, from {one['start']}") for one in planned if one["id"].startswith(incomplete)
    ]
