"""What the shell offers at the tab key. It asks the controller, briefly, and says nothing if that fails."""

import os
from typing import Any

from apps.cli import identity

TIMEOUT_S = 0.5  # more than a controller needs, less than a person notices


def _asked(path: str) -> Any:
    """Return the controller's answer; nothing if there is none."""
    import httpx

    url = os.environ.get("HEADWAY_URL", "http://127.0.0.1:8080")
    try:
        signed = identity.headers(url)
        return httpx.get(f"{url}{path}", headers=signed, timeout=TIMEOUT_S).raise_for_status().json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, identity.NotOursAlone):
        return {}


def reservations(incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of the reservations that have not ended, with what they are."""
    living = "&".join(f"state={state}" for state in ("held", "committed", "provisioning", "active"))
    found = _asked(f"/v1/reservations?limit=1000&{living}").get("reservations", [])
    return [
        (r["id"], f"{r['state']}, {r['class']}, {r['from']} to {r['to']}, from {r['start']}")
        for r in found
        if r["id"].startswith(incomplete)
    ]


def announcements(incomplete: str) -> list[str]:
    """Return the names of what is announced."""
    found = _asked("/v1/announcements?limit=1000").get("announcements", [])
    return list(dict.fromkeys(a["id"] for a in found if a["id"].startswith(incomplete)))


def ends(incomplete: str) -> list[tuple[str, str]]:
    """Return the sites and hosts."""
    network = _asked("/v1/topology")
    known = [(site, "site") for site in network.get("sites", [])]
    known += [(host["name"], f"host at {host['site']}") for host in network.get("hosts", [])]
    return [(name, what) for name, what in known if name.startswith(incomplete)]


def hosts(incomplete: str) -> list[tuple[str, str]]:
    """Return the hosts."""
    return [(name, what) for name, what in ends(incomplete) if what != "site"]


def parts(incomplete: str) -> list[str]:
    """Return what a path can cross: circuits and switches."""
    network = _asked("/v1/topology")
    known = [*network.get("circuits", []), *(switch["name"] for switch in network.get("switches", []))]
    return [name for name in known if name.startswith(incomplete)]
