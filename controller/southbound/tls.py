"""The files of mutual TLS towards switches."""

import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tls:
    """Files for mutual TLS: who has no certificate of our authority is turned away.

    Attributes:
        key: our private key, PEM.
        certificate: our certificate, PEM.
        authority: certificates that sign the switches', PEM.
    """

    key: str
    certificate: str
    authority: str

    def server_context(self) -> ssl.SSLContext:
        """Return the server's side of it, TLS 1.2 or newer.

        Raises:
            OSError: a file cannot be read, or does not fit the others.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.certificate, self.key)
        context.load_verify_locations(self.authority)
        return context
