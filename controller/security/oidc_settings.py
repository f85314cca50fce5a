"""The section ``access.oidc``: whose tokens are taken beside our own, and what the groups in them may."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field

from controller.security.tokens import Role
from controller.settings.listen import is_here
from controller.settings.sections import Section
from controller.settings.urls import is_http_url
from topology.problems import Problems

HOW = "one line, that others cannot read: chmod o="


class OidcSection(Section):
    """The section, as it is written; relative paths are relative to the configuration."""

    issuer: str = Field(min_length=1, max_length=500)
    audience: str = Field(min_length=1, max_length=255)
    groups: dict[str, Role] = Field(min_length=1)
    claim: str = Field(default="groups", min_length=1, max_length=255)
    client: str | None = Field(default=None, min_length=1, max_length=255)
    secret: str | None = Field(default=None, min_length=1)
    page: str | None = Field(default=None, min_length=1, max_length=500)
    authority: str | None = Field(default=None, min_length=1)


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """An issuer of OpenID Connect, and what its people may.

    Attributes:
        issuer: its address, exactly as its tokens have it.
        audience: for whom a token must be (``aud``) that a request shows.
        groups: by name in the claim, what its members may; in other groups nobody is.
        claim: where in a token the groups are; ``realm_access.roles`` is one inside another.
        client: as which the page asks for a login; None if it does not.
        secret: the file with that client's secret; None for a public one.
        page: where people reach the page, without a slash at its end; None for where they have asked for it.
        authority: the certificates that its own is trusted by; None for the system's.
    """

    issuer: str
    audience: str
    groups: Mapping[str, Role]
    claim: str = "groups"
    client: str | None = None
    secret: Path | None = None
    page: str | None = None
    authority: Path | None = None

    @property
    def tls(self) -> ssl.SSLContext:
        """Whom to trust, read anew."""
        return ssl.create_default_context(cafile=None if self.authority is None else str(self.authority))


def oidc_settings(section: OidcSection | None, folder: Path, problems: Problems) -> OidcSettings | None:
    """Return the issuer; None without a section. What is wrong goes to ``problems``."""
    if section is None:
        return None
    for name, address in (("issuer", section.issuer), ("page", section.page)):
        if address is not None and not _is_safe(address):
            problems.at(name).add(f'"{address}" is not an address such as https://login.example.org/realms/site')
    secret = None if section.secret is None else folder / section.secret
    authority = None if section.authority is None else folder / section.authority
    if secret is not None:
        try:
            client_secret(secret)
        except ValueError as error:
            problems.at("secret").add(error)
    if secret is not None and section.client is None:
        problems.at("secret").add("is of a client: name that too")
    page = None if section.page is None else section.page.rstrip("/")
    found = OidcSettings(
        section.issuer, section.audience, section.groups, section.claim, section.client, secret, page, authority
    )
    try:
        _ = found.tls
    except (OSError, ssl.SSLError) as error:
        problems.at("authority").add(f"{authority}: {error.strerror or error}")
    return found


def client_secret(path: Path) -> str:
    """Return the secret in a file.

    Raises:
        ValueError: there is none, or everybody can read it; what helps.
    """
    try:
        is_open = path.stat().st_mode & 0o007
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {getattr(error, 'strerror', None) or 'is not text'}; {HOW}") from error
    if is_open or not text or "\n" in text:
        raise ValueError(f"{path}: need a secret in {HOW} {path}")
    return text


def _is_safe(address: str) -> bool:
    """Return whether an address is of TLS, or of this machine.

    >>> _is_safe("https://login.example.org"), _is_safe("http://login.example.org"), _is_safe("http://127.0.0.1:9")
    (True, False, True)
    >>> _is_safe("https://login.example.org:443o")
    False
    """
    if not is_http_url(address, may_have_user=True):
        return False
    parts = urlsplit(address)
    return parts.scheme == "https" or is_here(f"{parts.hostname}:80")
