"""Tokens of an OpenID Connect issuer: its keys, fetched and kept, and what a token says that they have signed.

Whatever asks the issuer blocks, and is for a thread: :meth:`Issuer.refresh`, :meth:`Issuer.document`,
:meth:`Issuer.redeemed`. The rest goes by what is kept.
"""

import re
import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import httpx
import jwt
import structlog

from controller.errors import HeadwayError
from controller.security.oidc_settings import OidcSettings, client_secret
from controller.security.tokens import Principal, Role
from controller.security.whole_answers import reason, whole_answer

log = structlog.get_logger()

# Only with a public key: who knows that may not sign (RFC 8725, section 3.1).
OF_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS = (*OF_RSA, "ES256", "ES384", "ES512", "EdDSA")
SKEW_S = 30  # by which the issuer's clock may be off
FRESH_S = 300.0  # keys that are older are fetched again when a token comes
KEPT_S = 86_400.0  # an issuer that is down does not lock its people out before that
AGAIN_S = 10.0  # it is asked no more often, whatever tokens come
TIMEOUT_S = 5.0  # for a part of an answer
UNANSWERED = (httpx.HTTPError, httpx.InvalidURL, OSError)
MOST_BYTES = 8_192  # of a token
_SUBJECT = re.compile(r"[\x21-\x7e]{1,255}")  # OpenID Connect Core, section 2: at most 255 ASCII characters


class IssuerSilent(HeadwayError):
    """The issuer of a token cannot be asked for its keys, so that nobody knows whose it is (503)."""


class Freshness(Enum):
    """Whether the issuer's keys are to be fetched for a token."""

    GOOD = 0
    OLD = 1  # they are, meanwhile the old ones do
    MISSING = 2  # before it can be told whose it is


def is_jwt(shown: str) -> bool:
    """Return whether what is shown looks as a signed JSON Web Token does (RFC 7515, section 7.1)."""
    return shown.startswith("ey") and shown.count(".") == 2 and len(shown) <= MOST_BYTES


class Issuer:
    """One issuer, and its keys. Of the event loop's thread, but for what blocks.

    Args:
        settings: who it is, and whom of its people we know.
        elapsed_s: time that goes on, seconds.
        part_s: how long a part of an answer may take, seconds (:func:`~controller.security.whole_answers.whole`).
    """

    def __init__(
        self, settings: OidcSettings, elapsed_s: Callable[[], float] = time.monotonic, part_s: float = TIMEOUT_S
    ) -> None:
        self.settings = settings
        self._elapsed_s = elapsed_s
        self._part_s = part_s
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._open: frozenset[str] = frozenset()  # names of keys that name no algorithm (RFC 7517, section 4.4)
        self._fetched_s = float("-inf")
        self._asked_s = float("-inf")

    def freshness(self, token: str) -> Freshness:
        """Return whether keys are to be fetched for a token; not if that was tried just now."""
        now_s = self._elapsed_s()
        if now_s - self._asked_s < AGAIN_S:
            return Freshness.GOOD
        if self._key_of(token) is None:
            return Freshness.MISSING
        return Freshness.OLD if now_s - self._fetched_s > FRESH_S else Freshness.GOOD

    def has_key(self, token: str) -> bool:
        """Return whether the key is here that a token names."""
        return self._key_of(token) is not None

    def principal(self, token: str) -> Principal | None:
        """Return whose token this is; None if it is not signed by the issuer for us now, or its groups have no role.

        Raises:
            IssuerSilent: there are no keys.
        """
        said = self.claims(token, self.settings.audience)
        return None if said is None else self.who(said)

    def claims(self, token: str, audience: str) -> Mapping[str, Any] | None:
        """Return what a token says, if the issuer has signed it for an audience, and it is in force; else None.

        Raises:
            IssuerSilent: there are no keys.
        """
        key = self._key_of(token)
        if key is None:
            if self._elapsed_s() - self._fetched_s > KEPT_S:
                raise IssuerSilent(f"{self.settings.issuer} does not answer, so nobody can be known by its tokens")
            return None
        # PyJWT takes a key of RSA that names no algorithm for one of RS256; a curve says which is its own.
        is_open = key.key_type == "RSA" and (key.key_id or "") in self._open
        try:
            said: Mapping[str, Any] = jwt.decode(
                token,
                key.key if is_open else key,
                algorithms=OF_RSA if is_open else ALGORITHMS,
                audience=audience,
                issuer=self.settings.issuer,
                leeway=SKEW_S,
                options={"require": ["iss", "aud", "exp", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        return said

    def who(self, said: Mapping[str, Any]) -> Principal | None:
        """Return who a token's claims are about; None if its groups have no role here."""
        groups = frozenset(_listed(said, self.settings.claim)) & self.settings.groups.keys()
        roles = {self.settings.groups[name] for name in groups}
        subject = said.get("sub")
        if not roles or not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
            return None
        role = next(role for role in reversed(Role) if role in roles)
        return Principal(f"oidc:{self.settings.issuer}#{subject}", role, groups)

    def _key_of(self, token: str) -> jwt.PyJWK | None:
        """Return the key that a token names, if it is one of the issuer's that is not too old."""
        if self._elapsed_s() - self._fetched_s > KEPT_S:
            return None
        try:
            name = jwt.get_unverified_header(token).get("kid")
        except (jwt.PyJWTError, ValueError):
            return None
        if name is None and len(self._keys) == 1:
            (name,) = self._keys
        return self._keys.get(name) if isinstance(name, str) else None

    # What blocks.

    def refresh(self) -> None:
        """Fetch the keys; if the issuer does not answer, those before stay, and the log says so."""
        self._asked_s = self._elapsed_s()
        try:
            known = self._fetched(self.document()["jwks_uri"])["keys"]
            keys = jwt.PyJWKSet(known).keys
        except (IssuerSilent, jwt.PyJWTError, KeyError, TypeError, ValueError) as error:
            log.warning("oidc.silent", issuer=self.settings.issuer, why=str(error))
            return
        usable = [key for key in keys if key.public_key_use in {None, "sig"} and key.key_type != "oct"]
        self._keys = {key.key_id or "": key for key in usable}
        self._open = frozenset(one.get("kid") or "" for one in known if isinstance(one, dict) and not one.get("alg"))
        self._fetched_s = self._elapsed_s()

    def document(self) -> Mapping[str, Any]:
        """Return what the issuer says of itself (OpenID Connect Discovery 1.0, section 4).

        Raises:
            IssuerSilent: it does not answer, or it is another one.
        """
        address = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        said = self._fetched(address)
        if not isinstance(said, dict) or said.get("issuer") != self.settings.issuer:
            raise IssuerSilent(f"{address} is of another issuer than {self.settings.issuer}")
        return said

    def _fetched(self, address: str) -> Any:
        """Return the JSON that is at an address of the issuer's.

        Raises:
            IssuerSilent: it is not had.
        """
        try:
            answer = whole_answer(lambda client: client.build_request("GET", address), self._part_s, self.settings.tls)
            return answer.raise_for_status().json()
        except (*UNANSWERED, ValueError, RecursionError) as error:
            raise IssuerSilent(f"{address}: {reason(error)}") from error

    def redeemed(self, code: str, verifier: str, redirect: str) -> str:
        """Return the ID token that a code of a login is worth (RFC 6749, section 4.1.3; RFC 7636, section 4.5).

        Raises:
            IssuerSilent: the issuer does not answer, or has none for it.
        """
        settings = self.settings
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": redirect}
        try:
            secret = None if settings.secret is None else client_secret(settings.secret)
            auth = None if secret is None else httpx.BasicAuth(settings.client or "", secret)
            form |= {"client_id": settings.client or ""} if auth is None else {}
            where = self.document()["token_endpoint"]
            answer = whole_answer(
                lambda client: client.build_request("POST", where, data=form), self._part_s, settings.tls, auth
            )
            token = answer.raise_for_status().json()["id_token"]
        except (*UNANSWERED, KeyError, TypeError, ValueError, RecursionError) as error:
            raise IssuerSilent(f"{settings.issuer} has no ID token for this login: {type(error).__name__}") from error
        if not isinstance(token, str):
            raise IssuerSilent(f"{settings.issuer} has no ID token for this login")
        return token


def _listed(said: Mapping[str, Any], claim: str) -> list[str]:
    """Return the texts in a claim, which may be inside another.

    >>> _listed({"groups": ["a", 1]}, "groups"), _listed({"realm": {"roles": "a b"}}, "realm.roles")
    (['a'], ['a', 'b'])
    """
    value: Any = said
    for part in (claim,) if claim in said else claim.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return value.split()
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
