"""A site's own certificate authority: its certificate, those it has signed, the list of the revoked ones.

Values in, values out; the time is an argument. Files are :mod:`controller.security.pki_files`'s. Keys are EC P-256,
signatures ECDSA with SHA-256 (RFC 5480, RFC 5758).
"""

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

from topology.certificates import Kind, called, uri_kind

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 730  # two years: renewing is one command and a file to copy
CLOCKS_DIFFER = timedelta(hours=1)  # so that a certificate made now is good on a host whose clock is behind
_DNS = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?)*")

Key = ec.EllipticCurvePrivateKey


class NotAName(ValueError):
    """A text that no certificate can be for."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'"{name}" is neither a host name nor an address, try "ctl.example.org" or "192.0.2.1"')


@dataclass(frozen=True, slots=True)
class Authority:
    """What signs: the authority's certificate and its key."""

    certificate: x509.Certificate
    key: Key

    @property
    def site(self) -> str:
        """The site's name."""
        return str(self.certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that the authority has made, as it is listed. Times are Unix seconds.

    Attributes:
        name: the host's, or the controller's first one.
        names: all it is for.
        kind: whose it is.
        serial: in hex, without a prefix.
        ends_s: when it expires.
        revoked: whether it is in the list of the revoked ones.
    """

    name: str
    names: tuple[str, ...]
    kind: Kind
    serial: str
    ends_s: int
    revoked: bool

    def days_left(self, now_s: int) -> int:
        """Return how many days it is still good for, the one that has begun included; 0 or less once it has expired."""
        return -((now_s - self.ends_s) // 86_400)


def new_key() -> Key:
    """Return a new private key."""
    return ec.generate_private_key(ec.SECP256R1())


def new_authority(site: str, now: datetime, days: int = AUTHORITY_DAYS) -> Authority:
    """Return a new authority for a site that is good for so many days."""
    key = new_key()
    named = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, site),
            x509.NameAttribute(NameOID.COMMON_NAME, "Headway authority"),
        ]
    )
    usage = _usage(sign_certificates=True)
    certificate = (
        x509.CertificateBuilder(named, named, key.public_key(), _serial())
        .not_valid_before(now - CLOCKS_DIFFER)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def certificate(
    authority: Authority, kind: Kind, its_names: tuple[str, ...], public_key: ec.EllipticCurvePublicKey, ends: datetime
) -> x509.Certificate:
    """Return a certificate of a kind; it ends with its authority at the latest.

    Args:
        authority: signs it.
        kind: what it may be used for.
        its_names: DNS names and addresses, at least one, and the kind's URI, if it has one. Where nobody dials it, the
            first is a name for people.
        public_key: its holder's.
        ends: when it expires, with its zone.

    Raises:
        NotAName: one of the names cannot be in a certificate.
    """
    issuer = authority.certificate
    alternative = x509.SubjectAlternativeName([general_name(name) for name in its_names[not kind.is_dialled :]])
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, authority.site),
            x509.NameAttribute(NameOID.COMMON_NAME, its_names[0][:64]),  # ub-common-name of RFC 5280
        ]
    )
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    return (
        x509.CertificateBuilder(issuer.subject, subject, public_key, _serial())
        .not_valid_before(issuer.not_valid_before_utc)
        .not_valid_after(min(ends, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(kind.usages), critical=False)
        .add_extension(alternative, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(signer, critical=False)
        .sign(authority.key, hashes.SHA256())
    )


def revocations(authority: Authority, revoked: Iterable[tuple[int, datetime]], now: datetime) -> bytes:
    """Return the list of revoked certificates, PEM.

    It is good for as long as the authority: it is read from a file that only this site writes, so that nothing would be
    gained by its expiry, which would keep every agent out.

    Args:
        authority: signs it.
        revoked: serial numbers, and when each was revoked.
        now: with its zone.
    """
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.certificate.subject)
        .last_update(now - CLOCKS_DIFFER)
        .next_update(authority.certificate.not_valid_after_utc)
    )
    for serial, at in revoked:
        one = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(at).build()
        builder = builder.add_revoked_certificate(one)
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(Encoding.PEM)


def issued(made: x509.Certificate, kind: Kind, revoked: frozenset[int]) -> Issued:
    """Return a certificate as it is listed."""
    its_names = called(made)
    ends_s = int(made.not_valid_after_utc.timestamp())
    serial = made.serial_number
    return Issued(its_names[0], its_names, kind, f"{serial:x}", ends_s, serial in revoked)


def key_pem(key: Key) -> bytes:
    """Return a key as a PEM without a password."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def certificate_pem(made: x509.Certificate) -> bytes:
    """Return a certificate as a PEM."""
    return made.public_bytes(Encoding.PEM)


def key_of(pem: bytes) -> Key:
    """Return the key in a PEM.

    Raises:
        ValueError: it is no EC key, or has a password.
    """
    try:
        key = load_pem_private_key(pem, None)
    except TypeError as error:
        raise ValueError("has a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("is not an EC key")  # noqa: TRY004 (of what was read, not of an argument)
    return key


def _serial() -> int:
    """Return a new serial number: 63 random bits, always 16 hex digits, which people can still compare."""
    return 1 << 63 | secrets.randbits(63)


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def general_name(name: str) -> x509.GeneralName:
    """Return a name as a certificate has it.

    Raises:
        NotAName: it is neither a DNS name, an address, nor a URI of ours.
    """
    if uri_kind(name) is not None:
        return x509.UniformResourceIdentifier(name)
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        if not _DNS.fullmatch(name) or re.fullmatch(r"[0-9.]+", name):
            raise NotAName(name) from None
        return x509.DNSName(name)
