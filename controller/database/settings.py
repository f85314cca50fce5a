"""The section ``store``: the URL of the database, and how long it keeps what has ended."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from controller.database.database import Database
from controller.database.errors import UrlNotUsable
from controller.plan.leading import TTL_US
from controller.settings.listen import is_here
from controller.settings.sections import Section, within
from topology import units
from topology.problems import Problems

DEFAULT_URL = "sqlite:////var/lib/headway/headway.db"
DAY_US = 86_400_000_000
RETENTION_US = 90 * DAY_US
MOST_RETENTION_US = 36_500 * DAY_US  # beyond some 290,000 years a time is no number of a database


def _retention_us(value: Any) -> int | None:
    """Return how long something is kept; None for ever.

    Raises:
        ValueError: not a duration, too short for who asks again by an Idempotency-Key, or longer than a century.
    """
    if value == "never":
        return None
    retention_us = units.duration_us(str(value))
    if not DAY_US <= retention_us <= MOST_RETENTION_US:
        raise ValueError(f'"{value}" is not between "1 d" and "36500 d"; to keep all say "never"')
    return retention_us


class _Database(Section):
    url: str = DEFAULT_URL
    retention: Annotated[int | None, BeforeValidator(_retention_us)] = RETENTION_US


def _with_keys(value: Any) -> Any:
    """Return the section in full; a bare text is the URL."""
    return {"url": value} if isinstance(value, str) else value


DatabaseSection = Annotated[_Database, BeforeValidator(_with_keys)]


class DatabasePart(Section):
    """A configuration of which only the database is looked at."""

    store: DatabaseSection = Field(default_factory=dict, validate_default=True)


class PairedPart(DatabasePart):
    """That, and whether it is one of a pair; what is said of the pair need not be right."""

    pair: object = None


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """What is kept where.

    Attributes:
        url: of the database.
        retention_us: how long a reservation is kept after its end; None for ever.
    """

    url: str
    retention_us: int | None


def has_password(store: object) -> bool:
    """Return whether a section ``store``, as it is written, has the password of a database.

    >>> has_password("postgresql://a:secret@b/c"), has_password({"url": "postgresql://a@b/c?password=secret"})
    (True, True)
    >>> has_password("postgresql://a@b/c?passfile=/etc/headway/pgpass"), has_password("sqlite:////a.db")
    (False, False)
    """
    said = store.get("url") if isinstance(store, Mapping) else store
    try:
        url = make_url(str(said))
    except (ArgumentError, ValueError):
        return False
    return bool(url.password or url.query.get("password"))


def database_settings(section: DatabaseSection, problems: Problems) -> DatabaseSettings:
    """Return the settings; a problem if the URL names no database that we can use. Nothing is connected to."""
    try:
        Database(section.url)
        _check_lasting(section.url)
    except UrlNotUsable as error:
        problems.add(error)
    return DatabaseSettings(section.url, section.retention)


def _check_lasting(url: str) -> None:
    """Refuse SQLite in memory, or in whichever folder a controller begins: the next one would know no promise.

    Raises:
        UrlNotUsable: it is there.
    """
    said = make_url(url)
    if said.get_backend_name() == "sqlite" and not Path(said.database or "").is_absolute():
        raise UrlNotUsable("an SQLite database is named by its absolute path")


_PORT = re.compile(r":[0-9]+$")
_ADDRESS = re.compile(r"https?://([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?/?", re.ASCII)


class PairSection(Section):
    """One of several controllers that share a database: where it takes requests, and how long its row holds."""

    address: str
    others: tuple[str, ...] = ()
    ttl: Annotated[int, within("200 ms", "1 min")] = TTL_US


@dataclass(frozen=True, slots=True)
class PairSettings:
    """A controller of a pair.

    Attributes:
        address: where it takes requests, for clients that are passed on.
        ttl_us: how long the leader's row holds unless it is renewed.
        others: where the others take requests; a page in a browser goes to these, and to no other address.
    """

    address: str
    ttl_us: int
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestReach:
    """How REST is reached.

    Attributes:
        address: where it listens.
        is_here: whether only this machine reaches that.
        by_tls: whether it speaks TLS there.
        has_proxies: whether others may ask by a proxy.
    """

    address: str
    is_here: bool
    by_tls: bool
    has_proxies: bool


def pair_settings(
    section: PairSection | None, database: DatabaseSettings, reach: RestReach, problems: Problems
) -> PairSettings | None:
    """Return the settings; None if the controller is alone."""
    if section is None:
        return None
    if _check_address(section.address, problems.at("address")):
        _check_reached(section.address, reach, problems.at("address"))
    for number, other in enumerate(section.others):
        _check_address(other, problems.at(f"others[{number}]"))
    if not database.url.startswith("postgresql"):
        problems.add("several controllers need PostgreSQL: say store: postgresql://USER:PASSWORD@HOST/DATABASE")
    return PairSettings(section.address.rstrip("/"), section.ttl, tuple(one.rstrip("/") for one in section.others))


def _check_address(address: str, problems: Problems) -> bool:
    """Return whether it is an address, and note what is none; nothing else may stand in a header of a page."""
    is_one = _ADDRESS.fullmatch(address) is not None
    if not is_one:
        problems.add(f'"{address}" is no address, need https://HOST:PORT')
    return is_one


def _check_reached(address: str, reach: RestReach, problems: Problems) -> None:
    """Note an address to which others are passed on, and at which nobody answers them."""
    if reach.has_proxies:
        return
    scheme, _, where = address.rstrip("/").partition("://")
    if reach.is_here and not is_here(where if _PORT.search(where) else f"{where}:443"):
        problems.add(
            f'others are passed on to "{address}", and only this machine reaches listen.rest, {reach.address}: say '
            "listen: {rest: 0.0.0.0:8080, tls: {certificate: NAME.pem, key: NAME.key}}, made by: headway pki rest DIR "
            "--name NAME; or name the proxy before it in listen.proxies"
        )
    elif scheme == "https" and not reach.by_tls:
        problems.add(
            f'"{address}" is TLS, and listen.rest is plain text: say listen: {{tls: {{certificate: NAME.pem, key: '
            "NAME.key}}, made by: headway pki rest DIR --name NAME; or name the proxy before it in listen.proxies"
        )
    elif scheme == "http" and reach.by_tls:
        problems.add(f'"{address}" is plain text, and listen.rest is TLS: say https://{where}')
