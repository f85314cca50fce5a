"""The files of TLS, towards switches, agents and who asks by REST."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from controller.security.renewed import Renewed
from topology.certificates import Kind, Pems, certificate_faults, client_name, revoked_serials, uri_dpid, uri_kind
from topology.handshake import why_failed, why_untrusted


@dataclass(frozen=True, slots=True)
class ServerTls:
    """Files for TLS: who shows a certificate that is not of our authority is turned away.

    Attributes:
        key: our private key, PEM.
        certificate: our certificate, PEM.
        authority: certificates that sign the other ends', PEM; empty if nobody is asked for one.
        revoked: list of certificates of the authority that are not believed any more, PEM; empty for none.
        is_mutual: whether the other end must show a certificate.
    """

    key: str
    certificate: str
    authority: str
    revoked: str = ""
    is_mutual: bool = True

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
        # No session is resumed: each handshake looks at the certificate anew.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        if self.authority:
            context.verify_mode = ssl.CERT_REQUIRED if self.is_mutual else ssl.CERT_OPTIONAL
        return self._loaded(context, oldest)

    def client_context(self, oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> ssl.SSLContext:
        """Return the client's side of it; whose certificate it is shown, who dials must look at himself.

        Raises:
            OSError: a file cannot be read, or does not fit the others.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        return self._loaded(context, oldest)

    def revoked_now(self) -> frozenset[int]:
        """Return the serial numbers in the list of revoked certificates; none without a list.

        Raises:
            OSError: it cannot be read, or TLS would refuse everybody by it: it is another authority's, or has expired.
        """
        if not self.revoked:
            return frozenset()
        pem = Path(self.revoked).read_bytes()
        authority = Path(self.authority).read_bytes() if self.authority else b""
        wrong = certificate_faults(Pems(authority, b"", b"", pem), Kind.CONTROLLER, datetime.now(UTC))
        unfit = [fault.what for fault in wrong if fault.field == "revoked"]
        if unfit:
            raise OSError(f"{self.revoked} {unfit[0]}")
        try:
            return revoked_serials(pem)
        except ValueError as error:
            raise OSError(f"{self.revoked}: {error}") from error

    def _loaded(self, context: ssl.SSLContext, oldest: ssl.TLSVersion) -> ssl.SSLContext:
        context.minimum_version = oldest
        context.load_cert_chain(self.certificate, self.key)
        if self.authority:
            context.load_verify_locations(self.authority)
        if self.revoked:
            context.load_verify_locations(self.revoked)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        return context


class Credentials(Renewed[tuple[ssl.SSLContext, frozenset[int]]]):
    """The files of a port, read again when one of them has changed. Of one thread."""

    def __init__(
        self, tls: ServerTls, oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, *, is_client: bool = False
    ) -> None:
        """Read them.

        Args:
            tls: the files.
            oldest: the version below which nobody is spoken to.
            is_client: whether it is we who dial.

        Raises:
            OSError: a file cannot be read, or does not fit the others.
        """
        make = tls.client_context if is_client else tls.server_context
        super().__init__(tls.files, lambda: (make(oldest), tls.revoked_now()))

    @property
    def context(self) -> ssl.SSLContext:
        """How the other ends are verified, and what we show."""
        return self.value[0]

    @property
    def revoked(self) -> frozenset[int]:
        """The serial numbers of certificates that are not believed any more."""
        return self.value[1]


class ShownEnd(NamedTuple):
    """When a certificate ends that somebody has shown; of two, the greater was shown later.

    Attributes:
        at_s: when it was shown, monotonic.
        end_s: when it ends, Unix time.
    """

    at_s: float
    end_s: int


def shown_end(shown: Any, at_s: float) -> ShownEnd:
    """Return when a certificate ends, as :meth:`ssl.SSLSocket.getpeercert` shows it.

    >>> shown_end({"notAfter": "Jan  1 00:00:00 2028 GMT"}, 7.5)
    ShownEnd(at_s=7.5, end_s=1830297600)
    """
    return ShownEnd(at_s, ssl.cert_time_to_seconds(str(shown["notAfter"])))


def shown_serial(shown: Any) -> int:
    """Return the serial number of a certificate as :meth:`ssl.SSLSocket.getpeercert` shows it; 0 if there is none."""
    return int(str((shown or {}).get("serialNumber", "0")), 16)


def shown_dpid(shown: Any) -> int | None:
    """Return the datapath id that a certificate is for, as ``getpeercert`` shows it; None if it is none of a switch."""
    uris = (name for kind, name in (shown or {}).get("subjectAltName", ()) if kind == "URI")
    return next((dpid for uri in uris if (dpid := uri_dpid(uri)) is not None), None)


def shown_client(shown: Any) -> str | None:
    """Return whose a certificate is, as :meth:`ssl.SSLSocket.getpeercert` shows it; None if it names nobody who asks.

    It is the name of our own URI, or else the first address of e-mail, which other authorities' certificates have.
    Agents' and controllers' have neither.

    >>> shown_client({"subjectAltName": (("URI", "headway:client:ana"), ("email", "ana@example.org"))})
    'ana'
    >>> shown_client({"subjectAltName": (("email", "ana@example.org"),)})
    'ana@example.org'
    >>> shown_client({"subjectAltName": (("URI", "headway:rest"), ("email", "ana@example.org"))})
    >>> shown_client({"subjectAltName": (("DNS", "base20"),)})
    """
    alternative = (shown or {}).get("subjectAltName", ())
    ours = [name for kind, name in alternative if kind == "URI" and uri_kind(name) is not None]
    if ours:
        return client_name(ours[0]) if len(ours) == 1 else None
    return next((name for kind, name in alternative if kind == "email"), None)


def why_agent_failed(error: OSError) -> str:
    """Return why TLS with an agent failed, in an operator's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return why_untrusted(Kind.AGENT, error.verify_code, error.verify_message)
    if isinstance(error, ssl.SSLError):
        return why_failed(Kind.AGENT, error.reason or "")
    return f"the agent hung up: {error.strerror or error}"
