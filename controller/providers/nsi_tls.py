"""How an NSI aggregator proxy is known, and how it knows us."""

import ssl

from controller.providers.nsi_values import TlsFiles


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
