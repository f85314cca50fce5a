"""The sections ``tls`` and ``insecure``: how agents and the controller know each other, and where they need not."""

from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from controller.security.tls import ServerTls
from controller.settings.listen import is_here
from controller.settings.sections import Section
from topology import certificates
from topology.certificates import Kind, Pems
from topology.problems import Problems

HOW = (
    "say tls: {authority: ca.pem, certificate: NAME.pem, key: NAME.key, revoked: crl.pem}, made by: "
    "headway pki init DIR --name SITE; headway pki controller DIR --name {host}; or insecure: true"
)


class TlsSection(Section):
    """The files of mutual TLS with the agents, PEM; a relative path is relative to the configuration."""

    authority: str = Field(min_length=1)
    certificate: str = Field(min_length=1)
    key: str = Field(min_length=1)
    revoked: str | None = Field(default=None, min_length=1)


def trusted(section: TlsSection | None, folder: Path, problems: Problems) -> ServerTls | None:
    """Return the files of a section, None without one; everything that is wrong with them now goes to ``problems``."""
    if section is None:
        return None
    texts = {"authority": b"", "certificate": b"", "key": b"", "revoked": b""}
    paths = {name: folder / path for name, path in section if path is not None}
    for name, path in paths.items():
        try:
            texts[name] = path.read_bytes()
        except OSError as error:
            problems.at(name).add(f"{path}: {error.strerror}")
            continue
        if not texts[name]:
            problems.at(name).add(f"{path} is empty")
    pems = Pems(texts["authority"], texts["certificate"], texts["key"], texts["revoked"] or None)
    for wrong in certificates.problems(pems, Kind.CONTROLLER, datetime.now(UTC)):
        problems.at(wrong.field).add(f"{paths[wrong.field]} {wrong.what}")
    revoked = paths.get("revoked")
    return ServerTls(str(paths["key"]), str(paths["certificate"]), str(paths["authority"]), str(revoked or ""))


def check_guarded(address: str, problems: Problems, *, tls: bool, insecure: bool) -> None:
    """Add a problem if agents of other machines are let in without being asked who they are.

    Args:
        address: where agents connect.
        problems: those of the whole file.
        tls: whether there is a section ``tls``.
        insecure: whether it is said that it shall be so.
    """
    if tls and insecure:
        problems.at("insecure").add("says that TLS is not wanted, and there is a tls section: take one of them away")
    if tls or insecure or is_here(address):
        return
    host = address.rpartition(":")[0].strip("[]")
    how = HOW.replace("{host}", "ctl.example.org" if host in {"0.0.0.0", "::", ""} else host)  # noqa: S104 (compared)
    problems.at("listen", "agents").add(
        f"{address} can be reached from other machines, and anybody could pass for a host: {how}"
    )
