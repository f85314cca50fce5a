"""Who may do what: roles, and the tokens by which principals are known. Pure: no clock, no file."""

import hmac
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType

ID_BYTES, SECRET_BYTES = 4, 32
PREFIX = "hw"  # so that scanners of published code know one when they see it
MOST_DAYS = 400


class Role(StrEnum):
    """What somebody may do; each may all that those before it may."""

    READ = "read"
    RESERVE = "reserve"
    OPERATE = "operate"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Return whether this may all that the other may.

        >>> Role.OPERATE.includes(Role.RESERVE), Role.READ.includes(Role.RESERVE)
        (True, False)
        """
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token; it itself is known to its holder only.

    Attributes:
        id: names it in lists and to revoke it; no secret.
        name: of the principal.
        role: what that may do.
        sha256: of the whole token, hexadecimal. It has 256 random bits, so nothing slower is needed.
        made: when.
        until: from when on it is worth nothing.
        groups: that the principal is in.
    """

    id: str
    name: str
    role: Role
    sha256: str
    made: datetime
    until: datetime
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, what that may do, and the groups it is in."""

    name: str
    role: Role
    groups: frozenset[str] = frozenset()


def new_token(
    name: str, role: Role, made: datetime, until: datetime, groups: tuple[str, ...] = ()
) -> tuple[str, Token]:
    """Return a new token, to be given away, and what is kept of it."""
    token_id = secrets.token_hex(ID_BYTES)
    text = f"{PREFIX}_{token_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
    return text, Token(token_id, name, role, _hash(text), made, until, groups)


def changed(before: tuple[Token, ...], now: tuple[Token, ...]) -> Iterator[tuple[str, Token]]:
    """Yield what has become of tokens from one look at their file to the next: made, or revoked."""
    ids, were = {token.id for token in now}, {token.id for token in before}
    yield from (("revoked", token) for token in before if token.id not in ids)
    yield from (("made", token) for token in now if token.id not in were)


class Tokens:
    """All tokens that there are, to be found by what somebody shows."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self.all = tokens
        self._by_id = MappingProxyType({token.id: token for token in tokens})

    def principal(self, shown: str, now: datetime) -> Principal | None:
        """Return whose token is shown; None if it is none, or its end has come."""
        parts = shown.split("_", 2)
        token = self._by_id.get(parts[1]) if len(parts) == 3 and parts[0] == PREFIX else None
        if token is None or not hmac.compare_digest(token.sha256, _hash(shown)) or now >= token.until:
            return None
        return Principal(f"token:{token.name}", token.role, frozenset(token.groups))


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogateescape")).hexdigest()
