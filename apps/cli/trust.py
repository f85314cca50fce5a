"""Whom we trust to be a controller or an issuer, and the certificate that we show, for https alone."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

CA_ENV, CERTIFICATE_ENV = "HEADWAY_CA", "HEADWAY_CERTIFICATE"
SYSTEM_CA = Path("/etc/headway/ca.pem")  # where the site's authority is on its controllers and hosts
NOWHERE = Path("/nonexistent/headway")  # of who has no home; Debian's users without one are said to have that


class NotUsable(Exception):
    """A file of ours for TLS cannot be used."""


def own_folder() -> Path:
    """Return where our own files are: ``NOWHERE`` if neither the environment nor the list of users says our home."""
    try:
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "headway"
    except RuntimeError:
        return NOWHERE


def context(url: str, *, is_issuer: bool = False) -> "ssl.SSLContext | None":
    """Return how a controller, or an issuer of logins, at a URL is asked by TLS; None if it is asked in plain text.

    ``HEADWAY_CA`` alone is trusted if it is set, for an issuer the system's authorities too; else the system's
    authorities, and the site's where its file is and we may read it. The certificate in ``HEADWAY_CERTIFICATE``, or
    else in ``client.pem``, is shown to who asks for one; its key is in the file beside it that ends in ``.key``, or in
    the same.

    Raises:
        NotUsable: a file cannot be read, or is something else.
    """
    if "https:" not in url:  # of a pair, all its addresses
        return None
    import ssl

    said = os.environ.get(CA_ENV)
    usual = (SYSTEM_CA, os.R_OK), (own_folder() / "ca.pem", os.F_OK)  # a site may keep its own from some of its users
    authorities = [Path(said)] if said else [path for path, how in usual if os.access(path, how)]
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if said else ssl.create_default_context()
    if said and is_issuer:
        made.load_default_certs()
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.hostname_checks_common_name = False
    shown = os.environ.get(CERTIFICATE_ENV)
    certificate = Path(shown) if shown else own_folder() / "client.pem"
    path = certificate
    try:
        for path in authorities:
            made.load_verify_locations(path)
        if shown or certificate.exists():
            path, key = certificate, certificate.with_suffix(".key")
            made.load_cert_chain(certificate, key if key.exists() else None)
    except OSError as error:  # an SSLError too
        raise NotUsable(f"{path}: {error.strerror or error}") from error
    return made
