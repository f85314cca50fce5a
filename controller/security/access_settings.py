"""The section ``access``: who may do what by REST, and what they may who do not say who they are."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from controller.security.token_file import TokensUnusable, read_tokens
from controller.security.tokens import Role
from controller.settings.listen import is_here
from controller.settings.sections import Section
from topology.problems import Problems

HOW = (
    "say access: {tokens: tokens}, the file that is made by: headway token make NAME --role operate --file tokens; "
    "or access: {anybody: read}"
)


class AccessSection(Section):
    """The section, as it is written; a relative path is relative to the configuration."""

    tokens: str | None = Field(default=None, min_length=1)
    local: Role | None = None
    anybody: Role | None = None


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Who may do what by REST.

    Attributes:
        tokens: the file of the tokens; None if there are none.
        local: what somebody on the controller's machine may who shows no token; None for nothing.
        anybody: the same for all others.
    """

    tokens: Path | None = None
    local: Role | None = None
    anybody: Role | None = None


NOBODY = AccessSettings()


def access_settings(
    section: AccessSection | None, rest: str, folder: Path, problems: Problems, *, insecure: bool
) -> AccessSettings:
    """Return who may do what; without a section who is on this machine may all, and nobody else can be heard.

    Args:
        section: the section, if there is one.
        rest: where REST is served.
        folder: where relative paths begin.
        problems: those of the whole file.
        insecure: whether it is said that nobody shall be asked who he is.
    """
    if section is None:
        if not insecure and not is_here(rest):
            problems.at("listen", "rest").add(
                f"{rest} can be reached from other machines, and anybody could change what is promised: {HOW}"
            )
        return AccessSettings(None, Role.ADMIN, Role.ADMIN if insecure else None)
    if section.tokens is None:
        return AccessSettings(None, section.local, section.anybody)
    path = folder / section.tokens
    try:
        read_tokens(path)
    except TokensUnusable as error:
        problems.at("access", "tokens").add(error)
    return AccessSettings(path, section.local, section.anybody)
