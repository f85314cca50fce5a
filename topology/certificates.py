"""What controllers and agents ask of their certificates, and all that is wrong with some. Pure: PEM in, words out.

An agent's certificate may be used by a TLS client only, a controller's by a server only (extended key usage, RFC 5280
section 4.2.1.12), so that no host can pass itself off as a controller. Both carry their names as alternative names.
All others carry a URI of ours (``headway:...``) that says what they are for, so that none can stand for another: a
switch's its datapath id, a person's or script's his name. A switch's is both ends', since Open vSwitch has one for all.

An agent of Debian 12 has the library's version 38: what came later (lists of certificates, keys that can be compared,
``verify_directly_issued_by``) is put together here of what it has.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier, SignatureAlgorithmOID

T = TypeVar("T")
ExtensionValue = TypeVar("ExtensionValue", bound=x509.ExtensionType)

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)  # RFC 7468
_UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
SWITCH_URI, CLIENT_URI = "headway:switch:", "headway:client:"
REST_URI, OVSDB_URI = "headway:rest", "headway:ovsdb"
_SERVER, _CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
ENDING_DAYS = 30  # from here on a certificate that ends is spoken of
ENDING_AGAIN_S = 86_400.0  # and again so long after, in a stream that stays open


class Kind(StrEnum):
    """Whose certificate it is."""

    AGENT = "agent"
    CONTROLLER = "controller"
    SWITCH = "switch"
    REST = "rest"
    CLIENT = "client"
    OVSDB = "ovsdb"

    @property
    def usages(self) -> tuple[ObjectIdentifier, ...]:
        """The extended key usages that its certificates have."""
        if self in {Kind.SWITCH, Kind.OVSDB}:
            return (_CLIENT, _SERVER)
        return (_SERVER,) if self in {Kind.CONTROLLER, Kind.REST} else (_CLIENT,)

    @property
    def is_dialled(self) -> bool:
        """Whether its certificates are for names and addresses that others dial, or an agent's host."""
        return self in {Kind.AGENT, Kind.CONTROLLER, Kind.REST}


_WHOSE = {
    Kind.AGENT: "an agent",
    Kind.CONTROLLER: "a controller",
    Kind.SWITCH: "a switch",
    Kind.REST: "REST's port",
    Kind.CLIENT: "a person or script",
    Kind.OVSDB: "a controller towards switches",
}


@dataclass(frozen=True, slots=True)
class CertificateFault:
    """What is wrong with one of the files of a ``tls`` section.

    Attributes:
        field: its key there.
        what: in words, with what to do.
    """

    field: str
    what: str


@dataclass(frozen=True, slots=True)
class Pems:
    """The texts of the files of a ``tls`` section; empty is what could not be read.

    Attributes:
        authority: certificates whose signatures are believed.
        certificate: ours, and after it those between it and the authority, if any.
        key: ours.
        revoked: list of certificates that are not believed any more; None if there is no list.
    """

    authority: bytes
    certificate: bytes
    key: bytes
    revoked: bytes | None = None


def ending_days(end_s: float, now_s: float) -> int | None:
    """Return how many whole days a certificate has left that is to be spoken of; below 0 once it has expired.

    None is for one that has more, and for one whose end is not known, which is 0.
    """
    days = int(end_s - now_s) // 86_400
    return days if end_s and days < ENDING_DAYS else None


def certificates_in(pem: bytes) -> list[x509.Certificate]:
    """Return the certificates of a file, in its order.

    Raises:
        ValueError: it has none, or something else under that name.
    """
    with _value_errors():
        found = [x509.load_pem_x509_certificate(one) for one in _CERTIFICATE.findall(pem)]
    if not found:
        raise ValueError("no certificate in PEM")
    return found


def revocations_in(pem: bytes) -> x509.CertificateRevocationList:
    """Return the list of revoked certificates in a file.

    Raises:
        ValueError: it has none.
    """
    with _value_errors():
        return x509.load_pem_x509_crl(pem)


def revoked_serials(pem: bytes) -> frozenset[int]:
    """Return the serial numbers in a list of revoked certificates.

    Raises:
        ValueError: it is no such list.
    """
    with _value_errors():
        return frozenset(revoked.serial_number for revoked in revocations_in(pem))


@contextmanager
def _value_errors() -> Iterator[None]:
    """Turn what the library raises for what it cannot read into one error; it reads parts when they are looked at.

    Raises:
        ValueError: something could not be read.
    """
    try:
        yield
    except _UNREADABLE as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _extension(certificate: x509.Certificate, kind: type[ExtensionValue]) -> ExtensionValue | None:
    """Return an extension of a certificate; None if it has none of the kind.

    Raises:
        ValueError: the certificate's extensions cannot be read.
    """
    with _value_errors():
        try:
            return certificate.extensions.get_extension_for_class(kind).value
        except x509.ExtensionNotFound:
            return None


def names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the DNS names and addresses that a certificate is for.

    Raises:
        ValueError: its extensions cannot be read.
    """
    alternative = _extension(certificate, x509.SubjectAlternativeName)
    if alternative is None:
        return ()
    addresses = (str(address) for address in alternative.get_values_for_type(x509.IPAddress))
    return (*alternative.get_values_for_type(x509.DNSName), *addresses)


def called(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return what a certificate is for, as it is listed: its names, or else its name for people; and its URIs."""
    uris = tuple(uri for uri in _uris(certificate) if uri_kind(uri) is not None)
    its_names = names(certificate)
    if uris and not its_names:
        its_names = (str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value),)
    return (*its_names, *uris)


def uri_kind(uri: str) -> Kind | None:
    """Return what a certificate with a URI is for; None if the URI is none of ours.

    >>> uri_kind("headway:rest"), uri_kind("headway:client:ana"), uri_kind("headway:client:"), uri_kind("urn:x")
    (<Kind.REST: 'rest'>, <Kind.CLIENT: 'client'>, None, None)
    """
    if uri in {REST_URI, OVSDB_URI}:
        return Kind.REST if uri == REST_URI else Kind.OVSDB
    if client_name(uri) is not None:
        return Kind.CLIENT
    return None if uri_dpid(uri) is None else Kind.SWITCH


def client_name(uri: str) -> str | None:
    """Return whose a URI is; None if it is no person's or script's.

    >>> client_name("headway:client:ana@example.org"), client_name("headway:client:a b"), client_name("headway:rest")
    ('ana@example.org', None, None)
    """
    found = re.fullmatch(f"{CLIENT_URI}([A-Za-z0-9][A-Za-z0-9._@-]{{0,63}})", uri)
    return found[1] if found else None


def switch_uri(dpid: int) -> str:
    """Return what stands for a switch in its certificate.

    >>> switch_uri(0x4857)
    'headway:switch:0000000000004857'
    """
    return f"{SWITCH_URI}{dpid:016x}"


def uri_dpid(uri: str) -> int | None:
    """Return the datapath id that a URI stands for; None if it stands for no switch.

    >>> uri_dpid("headway:switch:0000000000004857") == 0x4857, uri_dpid("headway:switch:4857"), uri_dpid("urn:x")
    (True, None, None)
    """
    found = re.fullmatch(f"{SWITCH_URI}([0-9a-f]{{16}})", uri)
    return int(found[1], 16) if found else None


def _uris(certificate: x509.Certificate) -> tuple[str, ...]:
    alternative = _extension(certificate, x509.SubjectAlternativeName)
    return () if alternative is None else tuple(alternative.get_values_for_type(x509.UniformResourceIdentifier))


def expires(certificate: x509.Certificate) -> datetime:
    """Return when a certificate expires, with its zone."""
    end: datetime = _utc(certificate, "not_valid_after")
    return end


def _utc(signed: x509.Certificate | x509.CertificateRevocationList, what: str) -> Any:
    """Return a moment in something signed, or None; before version 42 the library names no zone."""
    named_zone = f"{what}_utc"
    moment: datetime | None = getattr(signed, named_zone if hasattr(signed, named_zone) else what)
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)


def kind_of(certificate: x509.Certificate) -> Kind | None:
    """Return whose certificate it is; None if it is nobody's, or several kinds' at once."""
    usages = set(_extension(certificate, x509.ExtendedKeyUsage) or ()) & {_CLIENT, _SERVER}
    marks = {kind for uri in _uris(certificate) if (kind := uri_kind(uri)) is not None}
    if marks == {Kind.SWITCH} and usages == {_CLIENT}:
        return Kind.SWITCH  # made before switches were dialled, too
    found = [kind for kind in marks or {Kind.AGENT, Kind.CONTROLLER} if usages == set(kind.usages)]
    return found[0] if len(found) == 1 and len(marks) <= 1 else None


def certificate_faults(pems: Pems, kind: Kind, now: datetime) -> tuple[CertificateFault, ...]:
    """Return everything that would keep a connection with these files from being made.

    Args:
        pems: the files; those that are empty are passed over, their absence is told by who read them.
        kind: whose they are.
        now: with its zone.
    """
    found: list[CertificateFault] = []
    try:
        found.extend(_problems(pems, kind, now))
    except _UNREADABLE as error:  # parts are only read when they are looked at, and need not be what they should
        words = " ".join(str(error).split()) or type(error).__name__
        found.append(CertificateFault("certificate", f"or its authority has a part that cannot be read: {words}"))
    return tuple(found)


def _problems(pems: Pems, kind: Kind, now: datetime) -> Iterator[CertificateFault]:
    found: list[CertificateFault] = []
    authorities = _read(pems.authority, certificates_in, "authority", "certificate in PEM", found) or []
    chain = _read(pems.certificate, certificates_in, "certificate", "certificate in PEM", found) or []
    key = _read(pems.key, lambda pem: load_pem_private_key(pem, None), "key", "private key in PEM", found)
    revoked = _read(pems.revoked or b"", revocations_in, "revoked", "list of revoked ones in PEM", found)
    yield from found
    for certificate in authorities:
        yield from _untimely(certificate, "authority", now)
    if chain:
        yield from _of_leaf(chain[0], kind, now)
        if key is not None and _encoded(key) != _encoded(chain[0]):
            yield CertificateFault("key", "is not the key of the certificate")
        if authorities and not any(_issued(chain[-1], authority) for authority in authorities):
            yield CertificateFault("certificate", "is not signed by the authority")
        if revoked is not None and revoked.get_revoked_certificate_by_serial_number(chain[0].serial_number):
            yield CertificateFault("certificate", "is revoked; make another one: headway pki")
    if revoked is not None:
        yield from _of_list(revoked, authorities, now)


def _read(pem: bytes, read: Callable[[bytes], T], field: str, what: str, found: list[CertificateFault]) -> T | None:
    """Return what a PEM holds; None if it is empty or something else, which is then among those found."""
    try:
        return read(pem) if pem else None
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: a key that wants a password
        found.append(CertificateFault(field, f"is no {what}" + (" without a password" if field == "key" else "")))
        return None


def _of_leaf(certificate: x509.Certificate, kind: Kind, now: datetime) -> Iterator[CertificateFault]:
    yield from _untimely(certificate, "certificate", now)
    is_kind = kind_of(certificate)
    if kind is Kind.REST and is_kind in {Kind.CONTROLLER, None}:
        return  # of another authority, which knows nothing of our kinds
    if is_kind is not kind:
        whose = f"that of {_WHOSE[is_kind]}" if is_kind else "of neither"
        yield CertificateFault(
            "certificate", f"must be that of {_WHOSE[kind]}, and is {whose}; make it by: headway pki {kind}"
        )
    if not called(certificate):
        yield CertificateFault("certificate", f"carries no name; make it by: headway pki {kind}")


def _untimely(certificate: x509.Certificate, field: str, now: datetime) -> Iterator[CertificateFault]:
    if now >= expires(certificate):
        yield CertificateFault(field, f"has expired at {expires(certificate):%Y-%m-%dT%H:%M:%SZ}")
    if now < _utc(certificate, "not_valid_before"):
        begins = f"{_utc(certificate, 'not_valid_before'):%Y-%m-%dT%H:%M:%SZ}"
        yield CertificateFault(field, f"is not valid before {begins}; is this machine's clock right?")


def _encoded(holder: Any) -> bytes:
    """Return the public key of a certificate or of a private key, in a form that can be compared."""
    encoded: bytes = holder.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encoded


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether an authority has signed a certificate; RFC 5280, section 6.1.3."""
    if certificate.issuer != authority.subject:
        return False
    key, signed = authority.public_key(), (certificate.signature, certificate.tbs_certificate_bytes)
    try:
        hashed = certificate.signature_hash_algorithm
        if isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
            key.verify(*signed)
        elif isinstance(key, ec.EllipticCurvePublicKey) and hashed is not None:
            key.verify(*signed, ec.ECDSA(hashed))
        elif isinstance(key, rsa.RSAPublicKey) and hashed is not None:
            pss = certificate.signature_algorithm_oid == SignatureAlgorithmOID.RSASSA_PSS
            key.verify(
                *signed, padding.PSS(padding.MGF1(hashed), padding.PSS.AUTO) if pss else padding.PKCS1v15(), hashed
            )
        else:
            return False
    except InvalidSignature:
        return False
    except UnsupportedAlgorithm:
        return True  # version 38 cannot read RSA-PSS in certificates; TLS can, and decides
    return True


def _of_list(
    revoked: x509.CertificateRevocationList, known: list[x509.Certificate], now: datetime
) -> Iterator[CertificateFault]:
    keys = [authority.public_key() for authority in known]
    if keys and not any(revoked.is_signature_valid(key) for key in keys):  # type: ignore[arg-type]
        yield CertificateFault("revoked", "is not signed by the authority")
    until = _utc(revoked, "next_update")
    if until is not None and now >= until:
        yield CertificateFault("revoked", f"has expired at {until:%Y-%m-%dT%H:%M:%SZ}: nobody would be let in")
