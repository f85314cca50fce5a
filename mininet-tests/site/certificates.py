"""Certificates of a site in a folder, made as its operator makes them (``headway pki``)."""

from collections.abc import Iterable
from pathlib import Path

from controller.security import pki, pki_files
from topology.certificates import Kind


def certified(folder: Path, address: str, hosts: Iterable[str]) -> dict[str, str]:
    """Make an authority, and certificates of a controller and of hosts' agents.

    What another run has left in the folder is made anew.

    Args:
        folder: for all of it.
        address: by which agents call the controller.
        hosts: that have agents.

    Returns:
        The section ``tls`` of the controller's configuration.
    """
    now, days = pki_files.now(), pki.CERTIFICATE_DAYS
    pki_files.init(folder, "site", now, pki.AUTHORITY_DAYS, force=True)
    own = pki_files.make(folder, Kind.CONTROLLER, (address,), now, days, force=True)
    for host in hosts:
        pki_files.make(folder, Kind.AGENT, (host,), now, days, force=True)
    shown = {"certificate": str(own.certificate), "key": str(own.key)}
    return {"authority": str(folder / "ca.pem"), **shown, "revoked": str(folder / "crl.pem")}
