"""How an NSI aggregator proxy is known, and how it knows us."""

import ssl

from controller.providers.nsi_values import TlsFiles
from controller.security.tls import stamp


class ProxyTls:
    """What the files say, read again when one of them has changed. Of one thread.

    Args:
        files: of which each may be renewed in place.

    Attributes:
        context: how certificates are verified and which is ours; None if the files say nothing.

    Raises:
        OSError: a file cannot be read, or does not fit the others.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._seen = self._stamps()
        self.context = ssl_context(files)

    def refreshed(self) -> bool:
        """Return whether a file has changed since the last call, and what there is now is in force.

        Raises:
            OSError: what there is now does not fit together; what was in force stays. Raised once for each change.
        """
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        self._seen = stamps
        self.context = ssl_context(self._files)
        return True

    def _stamps(self) -> tuple[tuple[int, ...] | None, ...]:
        files = self._files
        return tuple(stamp(path) for path in (files.ca, files.certificate, files.key) if path is not None)


def ssl_context(files: TlsFiles) -> ssl.SSLContext | None:
    """Return how certificates are verified and which is ours; None if the files say nothing.

    Raises:
        OSError: a file cannot be read, or does not fit the others.
    """
    if files == TlsFiles():
        return None
    context = ssl.create_default_context(cafile=files.ca)
    if files.certificate is not None:
        context.load_cert_chain(files.certificate, files.key)
    return context
