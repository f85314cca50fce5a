"""The folder of a site's certificate authority.

::

    ca.pem, ca.key              the authority; ca.key never leaves this folder
    crl.pem                     the revoked ones
    controllers/NAME.pem .key   for each controller
    agents/HOST.pem .key        for each agent
    switches/NAME.pem .key      for each switch
    rest/NAME.pem .key          for each address of REST
    clients/NAME.pem .key       for each person or script that asks REST
    issued/SERIAL.pem           everything that was ever signed
    ovsdb/                      an authority of its own, of the same form: what controllers show to switches

A switch lets in whomever its authority has signed, by whatever name (Open vSwitch asks for none), and reads no list of
revoked ones. So what it trusts is an authority that signs for controllers and for nobody else.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from controller.errors import HeadwayError
from controller.security import pki
from controller.security.pki import Authority, Issued, NotAName
from topology.certificates import (
    CLIENT_URI,
    Kind,
    called,
    certificates_in,
    client_name,
    kind_of,
    revocations_in,
)
from topology.whole_files import written_whole

LONGEST_SITE_BYTES = 64  # ub-organization-name of RFC 5280
PRIVATE, PUBLIC = 0o600, 0o644
TO_SWITCHES = "ovsdb"
_FOLDERS = {
    Kind.AGENT: "agents",
    Kind.CONTROLLER: "controllers",
    Kind.SWITCH: "switches",
    Kind.REST: "rest",
    Kind.CLIENT: "clients",
    Kind.OVSDB: "controllers",
}


class PkiError(HeadwayError):
    """A folder or a file of an authority is not as it must be; the text says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Made:
    """A certificate and its key, where they were written."""

    issued: Issued
    certificate: Path
    key: Path


def init(folder: Path, site: str, now: datetime, days: int, *, force: bool = False) -> None:
    """Make an authority in a folder, with an empty list of revoked certificates.

    Raises:
        PkiError: there is one already, or the site's name does not fit into a certificate.
        OSError: the folder cannot be written.
    """
    if (its_file := authority_file(folder)) is not None and not force:
        raise PkiError(f"{its_file} exists: another authority would make every certificate of it worthless (--force)")
    if not 0 < len(site.encode()) <= LONGEST_SITE_BYTES:
        raise PkiError(f"the site's name must have 1 to {LONGEST_SITE_BYTES} bytes, and has {len(site.encode())}")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "issued").mkdir(exist_ok=True, mode=0o700)
    authority = pki.new_authority(site, now, days)
    _written(
        (folder / "ca.key", pki.key_pem(authority.key), PRIVATE),
        (folder / "ca.pem", pki.certificate_pem(authority.certificate), PUBLIC),
        (folder / "crl.pem", pki.revocations(authority, (), now), PUBLIC),
    )
    for made in (folder / "issued").glob("*.pem"):
        made.unlink()  # of the authority that is replaced


def authority_file(folder: Path) -> Path | None:
    """Return a file by which a folder has an authority, or has a link of that name; its key may be kept elsewhere."""
    return next((path for path in (folder / "ca.key", folder / "ca.pem") if os.path.lexists(path)), None)


def site_of(folder: Path) -> str:
    """Return the site's name, as the authority of a folder has it.

    Raises:
        PkiError: there is no authority in the folder.
    """
    return _authority(folder).site


def make(
    folder: Path, kind: Kind, its_names: tuple[str, ...], now: datetime, days: int, *, force: bool = False
) -> Made:
    """Make a key and a certificate of a kind; the first name is the files'. A key without a certificate is used.

    Raises:
        PkiError: there is one of this name already, or no authority in the folder that is still good.
        NotAName: one of the names cannot be in a certificate.
        OSError: the folder cannot be written.
    """
    authority = _signer(folder, kind, now)
    is_host = kind.is_dialled or kind is Kind.OVSDB  # a controller's, by its name or address
    for name in its_names[not is_host :]:
        pki.general_name(name)  # before it is part of a path
    if not is_host and client_name(f"{CLIENT_URI}{its_names[0]}") is None:
        raise NotAName(its_names[0])
    stem = _stem(folder, kind, its_names[0])
    stem.parent.mkdir(exist_ok=True, mode=0o700)  # of an authority from before there were switches'
    key_path = stem.with_name(f"{stem.name}.key")
    if not key_path.exists() or force:
        key = pki.new_key()
    elif stem.with_name(f"{stem.name}.pem").exists():
        raise PkiError(
            f"{stem}.key exists: headway pki renew makes another certificate for it, --force another key too; "
            "the certificate there stays good until it is revoked"
        )
    elif its_names[0] in _who_is_revoked(folder, kind):
        raise _no_more(kind, its_names[0])
    else:
        with _read_well(key_path, "remove it"):
            key = pki.key_of(key_path.read_bytes())
    made = pki.certificate(authority, kind, its_names, key.public_key(), now + timedelta(days=days))
    # The key first: a certificate without its key is of no use.
    return _kept(folder, made, kind, stem, (key_path, pki.key_pem(key), PRIVATE))


def without(folder: Path, kind: Kind, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of some names of whom there is no certificate; who is revoked gets another one only if named.

    Raises:
        PkiError: there is no authority, or a file is damaged.
    """
    revoked = _who_is_revoked(folder, kind)
    stems = {name: _stem(folder, kind, name) for name in names if name not in revoked}
    return tuple(name for name, stem in stems.items() if not stem.with_name(f"{stem.name}.pem").exists())


def renew(folder: Path, kind: Kind, name: str, now: datetime, days: int) -> Made:
    """Make another certificate of the same names for the same key; the older one stays good until it expires.

    Raises:
        PkiError: there is none, or its authority has expired; or it is revoked: then its key must not be used any more.
        OSError: the folder cannot be written.
    """
    authority = _signer(folder, kind, now)
    stem = _stem(folder, kind, name)
    with _read_well(stem.with_name(f"{stem.name}.pem"), f"headway pki {kind} makes both anew, revoke lets it go"):
        before = certificates_in(stem.with_name(f"{stem.name}.pem").read_bytes())[0]
        key = pki.key_of(stem.with_name(f"{stem.name}.key").read_bytes())
    if before.serial_number in _revoked(folder):
        raise _no_more(kind, name)
    made = pki.certificate(authority, kind, called(before), key.public_key(), now + timedelta(days=days))
    return _kept(folder, made, kind, stem)


def revoke(folder: Path, which: str, now: datetime) -> tuple[Issued, ...]:
    """Revoke what is called so, all of its certificates that are still good, or the one of a serial; return these.

    Raises:
        PkiError: there is no such certificate, or none that is still good.
        OSError: the folder cannot be written.
    """
    authority = _authority(folder)
    known = listed(folder)
    chosen = named(known, which)
    if not chosen:
        raise PkiError(f'no certificate was made for "{which}"; there are {", ".join(sorted({k.name for k in known}))}')
    going = tuple(one for one in chosen if not one.revoked and one.ends_s > now.timestamp())
    if not going:
        raise PkiError(f'every certificate of "{which}" has expired or is revoked already')
    revoked = _revoked(folder) | {int(one.serial, 16): now for one in going}
    _written((folder / "crl.pem", pki.revocations(authority, revoked.items(), now), PUBLIC))
    return going


def named(known: tuple[Issued, ...], which: str) -> tuple[Issued, ...]:
    """Return those certificates that are for a name; if there are none, the one of a serial."""
    serial = which.lower().replace(":", "").removeprefix("0x")
    return tuple(one for one in known if which in one.names) or tuple(one for one in known if one.serial == serial)


def listed(folder: Path) -> tuple[Issued, ...]:
    """Return every certificate that the authority of a folder has made, by kind, name and end.

    Raises:
        PkiError: there is no authority, or a file is damaged.
    """
    revoked = frozenset(_revoked(folder))
    found: list[Issued] = []
    for path in (folder / "issued").glob("*.pem"):
        with _read_well(path, "remove it"):
            made = certificates_in(path.read_bytes())[0]
            kind, names = kind_of(made), called(made)
        if kind is not None and names:
            found.append(pki.issued(made, kind, revoked))
    return tuple(sorted(found, key=lambda one: (one.kind, one.name, one.ends_s)))


def _stem(folder: Path, kind: Kind, name: str) -> Path:
    """Return where somebody's two files are, without their ends."""
    return folder / _FOLDERS[kind] / name.replace(":", "_")


def _who_is_revoked(folder: Path, kind: Kind) -> set[str]:
    return {one.name for one in listed(folder) if one.kind is kind and one.revoked}


def _no_more(kind: Kind, name: str) -> PkiError:
    """Return what is said of a key that must not be used any more."""
    return PkiError(f'the certificate of {kind} "{name}" is revoked: make it a new key, headway pki {kind} --force')


def _kept(folder: Path, made: x509.Certificate, kind: Kind, stem: Path, *before: tuple[Path, bytes, int]) -> Made:
    """Write a certificate where it is remembered, and where it is taken from, after other files."""
    issued = pki.issued(made, kind, frozenset())
    path, pem = stem.with_name(f"{stem.name}.pem"), pki.certificate_pem(made)
    _written(*before, (folder / "issued" / f"{issued.serial}.pem", pem, PUBLIC), (path, pem, PUBLIC))
    return Made(issued, path, stem.with_name(f"{stem.name}.key"))


def _authority(folder: Path) -> Authority:
    with _read_well(folder / "ca.pem", _hint(folder, "ca.pem")):
        certificate = certificates_in((folder / "ca.pem").read_bytes())[0]
    hint = _hint(folder, "ca.key")
    with _read_well(folder / "ca.key", hint):
        key = pki.key_of((folder / "ca.key").read_bytes())
    if key.public_key() != certificate.public_key():
        raise PkiError(f"{folder / 'ca.key'} is not the key of {folder / 'ca.pem'}; {hint}")
    return Authority(certificate, key)


def _signer(folder: Path, kind: Kind, now: datetime) -> Authority:
    """Return the authority of a folder, to sign a certificate of a kind.

    Raises:
        PkiError: it has expired, and what it signed would be over as well; or there is none.
    """
    authority = _authority(folder)
    end = authority.certificate.not_valid_after_utc
    if now >= end:
        anew = ovsdb_anew(folder) if kind is Kind.OVSDB else "headway pki init in another folder"
        raise PkiError(
            f"{folder / 'ca.pem'} has expired at {end:%Y-%m-%dT%H:%M:%SZ}: what it signs would be over as well; "
            f"another authority, and with it all certificates anew: {anew}"
        )
    return authority


def ovsdb_anew(folder: Path) -> str:
    """Return the command that makes the authority whose folder this is, and what it lets in at switches, anew."""
    names = dict.fromkeys(one.name for one in listed(folder))
    return " ".join(["headway pki ovsdb", str(folder.parent), *(f"--name {name}" for name in names), "--force"])


def _revoked(folder: Path) -> dict[int, datetime]:
    with _read_well(folder / "crl.pem", _hint(folder, "crl.pem")):
        known = revocations_in((folder / "crl.pem").read_bytes())
    return {one.serial_number: one.revocation_date_utc for one in known}


def _hint(folder: Path, name: str) -> str:
    """Return what to do about a file that cannot be read: an authority that is there is not to be made anew."""
    if authority_file(folder) is None:
        return f'{folder} is no authority\'s folder; headway pki init {folder} --name "your site" makes one'
    return f"put the authority's {name} back into {folder}"


@contextlib.contextmanager
def _read_well(path: Path, hint: str) -> Iterator[None]:
    """Turn what can go wrong with reading a file into one error.

    Raises:
        PkiError: it cannot be read, or is something else.
    """
    try:
        yield
    except OSError as error:
        raise PkiError(f"{error.filename or path}: {error.strerror}; {hint}") from error
    except ValueError as error:
        raise PkiError(f"{path} is damaged ({error}); {hint}") from error


def _written(*files: tuple[Path, bytes, int]) -> None:
    """Write files, each with its mode: all of them are on the disk before one takes its place, in their order."""
    with contextlib.ExitStack() as whole:  # which leaves the last one first
        for path, data, mode in reversed(files):
            file = whole.enter_context(written_whole(path, mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)
