"""The agent's side of mutual TLS: its files, what is wrong with them, and why a handshake failed."""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from hostagent.errors import AttachmentRefused
from topology.certificates import Kind, Pems, certificate_faults, certificates_in, expires, names, revoked_serials
from topology.handshake import why_failed, why_untrusted


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class ClientTls:
    """The files of mutual TLS, PEM; a relative path is relative to the configuration.

    Attributes:
        authority: certificates that sign the controllers'.
        certificate: ours.
        key: ours.
        revoked: list of certificates of controllers that are not believed any more.
    """

    authority: Path
    certificate: Path
    key: Path
    revoked: Path | None = None

    def problems(self, host: str) -> tuple[str, ...]:
        """Return everything that is wrong with the files for a host's agent now, each with its key."""
        texts = {"authority": b"", "certificate": b"", "key": b"", "revoked": b""}
        found: list[str] = []
        for field in tuple(texts):
            path = getattr(self, field)
            try:
                texts[field] = data = path.read_bytes() if path else b""
            except OSError as error:
                found.append(f"tls.{field}: {path}: {error.strerror}")
            else:
                found += [f"tls.{field}: {path} is empty"] if path and not data else []
        pems = Pems(texts["authority"], texts["certificate"], texts["key"], texts["revoked"] or None)
        wrong = certificate_faults(pems, Kind.AGENT, datetime.now(UTC))
        found += [f"tls.{problem.field}: {getattr(self, problem.field)} {problem.what}" for problem in wrong]
        if not found:
            found += _of_another(texts["certificate"], host)
        return tuple(found)

    def ends_s(self) -> int:
        """Return when our certificate expires, Unix seconds.

        Raises:
            AttachmentRefused: there is none.
        """
        try:
            certificate = certificates_in(self.certificate.read_bytes())[0]
        except (OSError, ValueError) as error:
            raise AttachmentRefused(f"the files of tls cannot be used: {self.certificate}: {error}") from error
        return int(expires(certificate).timestamp())

    def has_revoked(self, serial: int) -> bool:
        """Return whether a controller's certificate is on the list as that is now; not if there is none that is fit."""
        try:
            return self.revoked is not None and serial in revoked_serials(self.revoked.read_bytes())
        except (OSError, ValueError):
            return False

    def context(self) -> ssl.SSLContext:
        """Return the client's side of it, as the files are now.

        Raises:
            AttachmentRefused: a file cannot be read, or does not fit the others.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # asks for a certificate, and for its name
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.hostname_checks_common_name = False
        try:
            context.load_cert_chain(self.certificate, self.key)
            context.load_verify_locations(self.authority)
            if self.revoked is not None:
                context.load_verify_locations(self.revoked)
                context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        except OSError as error:
            raise AttachmentRefused(
                f"the files of tls cannot be used: {error.strerror or error}: {self.certificate}"
            ) from error
        return context


def _of_another(certificate: bytes, host: str) -> Iterator[str]:
    for_names = names(certificates_in(certificate)[0])
    if host not in for_names:
        yield f"tls.certificate: is for {', '.join(for_names)}, not for {host}"


def tls_failure(error: OSError, dialled: str) -> str | None:
    """Return why TLS with a controller failed, in an operator's words; None if it is not TLS that failed.

    Args:
        error: what came of it.
        dialled: the name or address of the controller that was dialled.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return why_untrusted(Kind.CONTROLLER, error.verify_code, error.verify_message, dialled)
    if isinstance(error, ssl.SSLError):
        return why_failed(Kind.CONTROLLER, error.reason or "")
    return None
