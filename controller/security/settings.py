"""The sections ``tls`` and ``insecure``: how agents and the controller know each other, and where they need not."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from controller.security.tls import ServerTls
from controller.settings.listen import RestTlsSection, is_here
from controller.settings.sections import Section
from topology import certificates
from topology.certificates import Kind, Pems, certificates_in, names
from topology.problems import Problems

HOW = (
    "say tls: {authority: ca.pem, certificate: NAME.pem, key: NAME.key, revoked: crl.pem}, made by: "
    "headway pki init DIR --name SITE; headway pki controller DIR --name {host}; or insecure: true"
)


class ToSwitchesSection(Section):
    """What is shown to switches, PEM: of an authority that they trust, and that signs for no agent."""

    certificate: str = Field(min_length=1)
    key: str = Field(min_length=1)


class TlsSection(Section):
    """The files of mutual TLS, PEM; a relative path is relative to the configuration."""

    authority: str = Field(min_length=1)
    certificate: str = Field(min_length=1)
    key: str = Field(min_length=1)
    revoked: str | None = Field(default=None, min_length=1)
    switches: ToSwitchesSection | None = None


def trusted(section: TlsSection | None, folder: Path, problems: Problems) -> ServerTls | None:
    """Return the files of a section, None without one; everything that is wrong with them now goes to ``problems``."""
    if section is None:
        return None
    paths = {name: folder / path for name, path in section if isinstance(path, str)}
    _checked(paths, Kind.CONTROLLER, problems)
    revoked = paths.get("revoked")
    return ServerTls(str(paths["key"]), str(paths["certificate"]), str(paths["authority"]), str(revoked or ""))


def to_switches(
    section: TlsSection | None, tls: ServerTls | None, folder: Path, problems: Problems
) -> ServerTls | None:
    """Return the files towards switches, if they differ from those towards agents; what is wrong is a problem.

    Args:
        section: the section ``tls``.
        tls: the files towards agents; the same authority has signed for switches.
        folder: where relative paths begin.
        problems: those of ``tls.switches``.
    """
    if section is None or section.switches is None or tls is None:
        return None
    paths = {name: folder / path for name, path in section.switches}
    _checked(paths, Kind.OVSDB, problems)
    return replace(tls, key=str(paths["key"]), certificate=str(paths["certificate"]))


def rest_tls(section: RestTlsSection | None, folder: Path, problems: Problems) -> ServerTls | None:
    """Return the files of REST's TLS, None without a section; everything that is wrong with them now is a problem."""
    if section is None:
        return None
    if section.revoked is not None and section.clients is None:
        problems.at("revoked").add("is for certificates of clients, and there is no authority of theirs: say clients")
    paths = {name: folder / path for name, path in section if path is not None}
    _checked(paths, Kind.REST, problems)
    clients, revoked = (str(paths.get(name, "")) for name in ("clients", "revoked"))
    return ServerTls(str(paths["key"]), str(paths["certificate"]), clients, revoked, is_mutual=False)


def rest_certified(tls: ServerTls | None) -> tuple[str, ...]:
    """Return the names that REST's certificate is for; none if it cannot be read, of which there is a problem."""
    try:
        return names(certificates_in(Path(tls.certificate).read_bytes())[0]) if tls else ()
    except (OSError, ValueError):
        return ()


def _checked(paths: dict[str, Path], kind: Kind, problems: Problems) -> None:
    """Add what is wrong with the files of a section, by the names that they have there."""
    texts = dict.fromkeys(("authority", "clients", "certificate", "key", "revoked"), b"")
    for name, path in paths.items():
        try:
            texts[name] = path.read_bytes()
        except OSError as error:
            problems.at(name).add(f"{path}: {error.strerror}")
            continue
        if not texts[name]:
            problems.at(name).add(f"{path} is empty")
        if name == "key" and path.stat().st_mode & 0o007:
            problems.at(name).add(f"{path}: everybody on this machine can read it; chmod o= {path}")
    authority = texts["authority"] if kind is Kind.CONTROLLER else b""  # others' need not have signed our certificate
    pems = Pems(authority, texts["certificate"], texts["key"], texts["revoked"] or None)
    found = certificates.certificate_faults(pems, kind, datetime.now(UTC))
    if kind is Kind.REST:
        theirs = Pems(texts["clients"], b"", b"", pems.revoked)
        found += tuple(
            replace(wrong, field="clients") if wrong.field == "authority" else wrong
            for wrong in certificates.certificate_faults(theirs, kind, datetime.now(UTC))
        )
    for wrong in dict.fromkeys(found):  # of the list both may say the same
        problems.at(wrong.field).add(f"{paths[wrong.field]} {wrong.what}")


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
