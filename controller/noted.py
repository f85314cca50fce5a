"""Changes beside promises, as they are remembered: tokens, and what the controller was told when it started. Pure."""

from collections.abc import Mapping

from controller.database import Noted
from controller.security.tokens import Token
from topology import __version__


def noted_token(what: str, token: Token) -> Noted:
    """Return a token that was made or revoked; nothing by which one could be it.

    Args:
        what: ``made`` or ``revoked``.
        token: it.
    """
    values = {
        "name": token.name,
        "role": token.role,
        "groups": list(token.groups),
        "until": f"{token.until:%Y-%m-%dT%H:%M:%SZ}",
    }
    old, new = (None, values) if what == "made" else (values, None)
    return Noted(f"token.{what}", token.id, old, new)


def noted_configuration(files: Mapping[str, str]) -> Noted:
    """Return by what a controller runs: the SHA-256 of each file, since they may have secrets, and its version."""
    return Noted("configuration.read", "configuration", None, {"headway": __version__, **files})
