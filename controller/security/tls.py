"""The files of mutual TLS, towards switches and towards agents."""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from topology.certificates import Kind, revoked_serials
from topology.handshake import why_failed, why_untrusted


@dataclass(frozen=True, slots=True)
class ServerTls:
    """Files for mutual TLS: who has no certificate of our authority is turned away.

    Attributes:
        key: our private key, PEM.
        certificate: our certificate, PEM.
        authority: certificates that sign the other ends', PEM.
        revoked: list of certificates of the authority that are not believed any more, PEM; empty for none.
    """

    key: str
    certificate: str
    authority: str
    revoked: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(path for path in (self.key, self.certificate, self.authority, self.revoked) if path)

    def server_context(self, oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> ssl.SSLContext:
        """Return the server's side of it.

        Args:
            oldest: the version below which nobody is spoken to.

        Raises:
            OSError: a file cannot be read, or does not fit the others.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = oldest
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.certificate, self.key)
        context.load_verify_locations(self.authority)
        if self.revoked:
            context.load_verify_locations(self.revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        return context


class Credentials:
    """The files of a port, read again when one of them has changed. Of one thread."""

    def __init__(self, tls: ServerTls, oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> None:
        """Read them.

        Args:
            tls: the files.
            oldest: the version below which nobody is spoken to.

        Raises:
            OSError: a file cannot be read, or does not fit the others.
        """
        self._tls = tls
        self._oldest = oldest
        self._seen = self._stamps()
        self.context, self.revoked = self._loaded()

    def refreshed(self) -> bool:
        """Return whether a file has changed since the last call, and what there is now is in force.

        Raises:
            OSError: what there is now does not fit together; what was in force stays. Raised once for each change.
        """
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        self._seen = stamps
        self.context, self.revoked = self._loaded()
        return True

    def _loaded(self) -> tuple[ssl.SSLContext, frozenset[int]]:
        context = self._tls.server_context(self._oldest)
        # No session is resumed: each handshake looks at the certificate anew.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        try:
            revoked = revoked_serials(Path(self._tls.revoked).read_bytes()) if self._tls.revoked else frozenset[int]()
        except ValueError as error:
            raise OSError(f"{self._tls.revoked}: {error}") from error
        return context, revoked

    def _stamps(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(stamp(path) for path in self._tls.files)


def stamp(path: str) -> tuple[int, int, int] | None:
    """Return what changes when a file is written or replaced; None while there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 (a thousandth of the cost, each second)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def why(error: OSError) -> str:
    """Return why TLS with an agent failed, in an operator's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return why_untrusted(Kind.AGENT, error.verify_code, error.verify_message)
    if isinstance(error, ssl.SSLError):
        return why_failed(Kind.AGENT, error.reason or "")
    return f"the agent hung up: {error.strerror or error}"
