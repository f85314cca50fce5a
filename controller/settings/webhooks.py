"""The section ``webhooks``: who is told of what happens, by HTTP."""

import base64
import binascii
import secrets
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import Field

from controller.settings.sections import Section
from controller.settings.urls import is_http_url
from topology.problems import Problems

PREFIX = "whsec_"  # of a secret, as Standard Webhooks writes it
LEAST_BYTES, NEW_BYTES, MOST_BYTES = 24, 32, 64
HOW = "make one: headway webhook secret FILE"
EVENTS = (  # what the controller publishes; what happens to webhooks is not told by them
    "announcement.carried",
    "announcement.lapsed",
    "announcement.late",
    "announcement.not_carried",
    "announcement.promised",
    "announcement.refused",
    "announcement.released",
    "announcement.resumed",
    "burst.too_large",
    "circuit.delay_measured",
    "circuit.delay_refused",
    "circuit.down",
    "circuit.up",
    "clock.right",
    "clock.stepped",
    "drift.alarm",
    "drift.alarm_over",
    "drift.found",
    "drift.repaired",
    "fault.began",
    "fault.over",
    "host.declined",
    "host.demand",
    "host.fallback",
    "host.fallback_over",
    "host.led_by_another",
    "host.other_address",
    "host.repaired",
    "leader.leads",
    "leader.lost",
    "maintenance.cancelled",
    "maintenance.planned",
    "plan.violated",
    "promises.gone",
    "provider.asked",
    "provider.denied",
    "provider.failed",
    "provider.given_up",
    "provider.lacks",
    "provider.recovered",
    "provider.refused",
    "provider.state",
    "receiver.over",
    "receiver.slow",
    "reservation.active",
    "reservation.changed",
    "reservation.committed",
    "reservation.expired",
    "reservation.failed",
    "reservation.held",
    "reservation.keepable",
    "reservation.lost",
    "reservation.provisioning",
    "reservation.put_back",
    "reservation.refused",
    "reservation.released",
    "reservation.unkeepable",
    "standby.back",
    "standby.gone",
    "store.failed",
    "store.recovered",
    "store.taken",
    "switch.claim_over",
    "switch.claimed_twice",
    "switch.led_by_another",
    "switch.unknown",
    "transition.step",
    "transition.waits",
)
ALARMS = (
    "announcement.late",
    "announcement.not_carried",
    "announcement.refused",
    "circuit.down",
    "drift.alarm",
    "fault.began",
    "host.fallback",
    "leader.lost",
    "plan.violated",
    "promises.gone",
    "provider.denied",
    "reservation.failed",
    "reservation.lost",
    "reservation.put_back",
    "reservation.refused",
    "reservation.unkeepable",
    "standby.gone",
    "store.failed",
    "store.taken",
    "switch.claimed_twice",
    "switch.led_by_another",
    "switch.unknown",
)


class WebhookSection(Section):
    """One of them, as it is written; a relative path is relative to the configuration."""

    url: str = Field(min_length=1, max_length=2000)
    secret: str = Field(min_length=1)
    events: tuple[str, ...] = Field(default=ALARMS, min_length=1)


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Who is told.

    Attributes:
        url: where to POST.
        secret: the file with the secret that signs.
        events: names of events, or patterns of a shell.
    """

    url: str
    secret: Path
    events: tuple[str, ...]


def webhooks(sections: tuple[WebhookSection, ...], folder: Path, problems: Problems) -> tuple[WebhookSettings, ...]:
    """Return who is told; what is wrong goes to ``problems``."""
    found = []
    for number, section in enumerate(sections):
        place = problems.at(number)
        if not is_http_url(section.url, may_have_user=True):
            place.at("url").add(f'"{section.url}" is not an address such as https://chat.example.org/hook')
        path = folder / section.secret
        try:
            secret_of(path)
        except ValueError as error:
            place.at("secret").add(error)
        for i, pattern in enumerate(section.events):
            if not any(fnmatchcase(event, pattern) for event in EVENTS):
                place.at("events", i).add(
                    f'"{pattern}" is no event that is told, {_near(pattern)}docs/webhooks.md has them all'
                )
        found.append(WebhookSettings(section.url, path, section.events))
    return tuple(found)


def _near(pattern: str) -> str:
    """Return what may have been meant.

    >>> _near("reservation.lots"), _near("nonsense")
    ('try "reservation.lost" or "reservation.held"; ', '')
    """
    near = get_close_matches(pattern, EVENTS, n=2, cutoff=0.7)
    return "try " + " or ".join(f'"{one}"' for one in near) + "; " if near else ""


def new_secret() -> str:
    """Return a secret that nobody knows, as it is written into a file."""
    return PREFIX + base64.b64encode(secrets.token_bytes(NEW_BYTES)).decode()


def secret_of(path: Path) -> bytes:
    """Return the secret in a file.

    Raises:
        ValueError: there is none; what is wrong, and what helps.
    """
    try:
        is_open = path.stat().st_mode & 0o007
        text = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; {HOW}") from error
    except ValueError as error:
        raise ValueError(f"{path}: is not a secret; {HOW}") from error
    if is_open:
        raise ValueError(f"{path}: everybody on this machine can read it; chmod o= {path}")
    try:
        secret = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(f"{path}: is not base64; {HOW}") from error
    if not LEAST_BYTES <= len(secret) <= MOST_BYTES:
        raise ValueError(f"{path}: a secret has {LEAST_BYTES} to {MOST_BYTES} bytes, this one {len(secret)}; {HOW}")
    return secret
