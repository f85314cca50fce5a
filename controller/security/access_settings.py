"""The section ``access``: who may do what by REST, and what they may who do not say who they are."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from controller.asker import OWNER_PATTERN
from controller.plan.quotas import NO_QUOTAS, UNLIMITED, Quota, Quotas
from controller.security.oidc_settings import OidcSection, OidcSettings, oidc_settings
from controller.security.token_file import TokensUnusable, read_tokens
from controller.security.tokens import Principal, Role
from controller.settings.listen import is_here
from controller.settings.sections import Count, Duration, Rate, Section, Size
from topology.problems import Problems

HOW = (
    "say access: {tokens: tokens}, the file that is made by: headway token make NAME --role operate --file tokens; "
    "or access: {anybody: read}"
)

DEFAULT = "default"  # the quota of each owner that has none of its own
_CERTIFIED = re.compile(r"[\x21-\x7e]+")  # without a space, as ours and addresses of e-mail are
_OWNER = re.compile(f"(group|token|certificate|oidc):{OWNER_PATTERN}")


class QuotaSection(Section):
    """What one owner may have."""

    rate: Rate | None = None
    size: Size | None = Field(default=None, alias="bytes")
    ahead: Duration | None = None
    entries: Count | None = Field(default=None, ge=0)

    def value(self) -> Quota:
        """Return it as the plan knows it."""
        return Quota(self.rate, self.size, self.ahead, self.entries)


class CertificateSection(Section):
    """What somebody may who is known by a client certificate."""

    role: Role
    groups: tuple[str, ...] = ()


class AccessSection(Section):
    """The section, as it is written; a relative path is relative to the configuration."""

    tokens: str | None = Field(default=None, min_length=1)
    local: Role | None = None
    anybody: Role | None = None
    quotas: dict[str, QuotaSection] = Field(default_factory=dict)
    certificates: dict[str, CertificateSection] = Field(default_factory=dict)
    oidc: OidcSection | None = None
    requests_per_s: Count = Field(default=50, ge=1, le=100_000)


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Who may do what by REST.

    Attributes:
        tokens: the file of the tokens; None if there are none.
        local: what somebody on the controller's machine may who shows no token; None for nothing.
        anybody: the same for all others.
        quotas: how much each owner may have.
        requests_per_s: how often each principal may ask; None for as often as it likes.
        certificates: by a client certificate's name, who that is.
        oidc: whose tokens are taken beside our own; None for nobody's.
    """

    tokens: Path | None = None
    local: Role | None = None
    anybody: Role | None = None
    quotas: Quotas = NO_QUOTAS
    requests_per_s: int | None = None
    certificates: Mapping[str, Principal] = field(default_factory=dict)
    oidc: OidcSettings | None = None


NOBODY = AccessSettings()


def access_settings(
    section: AccessSection | None, rest: str, folder: Path, problems: Problems, *, asks_clients: bool, insecure: bool
) -> AccessSettings:
    """Return who may do what; without a section who is on this machine may all, and nobody else can be heard.

    Args:
        section: the section, if there is one.
        rest: where REST is served.
        folder: where relative paths begin.
        problems: those of the whole file.
        asks_clients: whether who asks by REST is asked for a certificate.
        insecure: whether it is said that nobody shall be asked who he is.
    """
    if section is None:
        if not insecure and not is_here(rest):
            problems.at("listen", "rest").add(
                f"{rest} can be reached from other machines, and anybody could change what is promised: {HOW}"
            )
        return AccessSettings(None, Role.ADMIN, Role.ADMIN if insecure else None)
    if section.certificates and not (asks_clients or insecure):
        problems.at("access", "certificates").add(
            "nobody is asked for a certificate: say listen: {tls: {..., clients: ca.pem}}, the authority of theirs"
        )
    _check_certificates(section.certificates, problems.at("access", "certificates"))
    path = None if section.tokens is None else folder / section.tokens
    if path is not None:
        try:
            read_tokens(path)
        except TokensUnusable as error:
            problems.at("access", "tokens").add(error)
    return AccessSettings(
        path,
        section.local,
        section.anybody,
        _quotas(section.quotas, problems.at("access", "quotas")),
        section.requests_per_s,
        {
            name: Principal(f"certificate:{name}", one.role, frozenset(one.groups))
            for name, one in section.certificates.items()
        },
        oidc_settings(section.oidc, folder, problems.at("access", "oidc")),
    )


def _check_certificates(said: Mapping[str, CertificateSection], problems: Problems) -> None:
    """Add a problem for each name that no certificate has, and for each group that can own nothing."""
    for name, section in said.items():
        if not _CERTIFIED.fullmatch(name):
            problems.at(name).add("no certificate has this name, try that of headway pki client DIR NAME")
        for number, group in enumerate(section.groups):
            if not re.fullmatch(OWNER_PATTERN, group):
                problems.at(name, "groups", number).add(f'"{group}" is no group, try "lsst"')


def _quotas(said: Mapping[str, QuotaSection], problems: Problems) -> Quotas:
    """Return the quotas by owner; those of ``default`` are of each who has none of its own."""
    for owner in said:
        if owner not in {DEFAULT, "local", "anybody"} and not _OWNER.fullmatch(owner):
            problems.at(owner).add(f'"{owner}" owns nothing, try "group:lsst", "token:ana" or "{DEFAULT}"')
    own = {owner: quota.value() for owner, quota in said.items() if owner != DEFAULT}
    return Quotas(own, said[DEFAULT].value() if DEFAULT in said else UNLIMITED)
