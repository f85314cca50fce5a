"""How an NSI aggregator proxy is known, and how it knows us."""

import ssl
from functools import partial

from controller.providers.nsi_values import TlsFiles
from controller.security.renewed import Renewed


def proxy_tls(files: TlsFiles) -> Renewed[ssl.SSLContext | None]:
    """Return what :func:`ssl_context` does, made anew when one of the files has changed.

    Raises:
        OSError: a file cannot be read, or does not fit the others.
    """
    paths = (path for path in (files.ca, files.certificate, files.key) if path is not None)
    return Renewed(paths, partial(ssl_context, files))


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
