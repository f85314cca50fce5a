"""What an agent asks of its certificates, with each kind of key that a site's own authority may have."""

import base64
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from topology.certificates import (
    ENDING_DAYS,
    Kind,
    Pems,
    certificate_faults,
    certificates_in,
    ending_days,
    names,
    revocations_in,
    revoked_serials,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RSA = rsa.generate_private_key(65537, 2048)
KEYS = {
    "ECDSA": (ec.generate_private_key(ec.SECP384R1()), hashes.SHA384(), {}),
    "Ed25519": (ed25519.Ed25519PrivateKey.generate(), None, {}),
    "RSA": (RSA, hashes.SHA256(), {}),
    "RSA-PSS": (RSA, hashes.SHA256(), {"rsa_padding": padding.PSS(padding.MGF1(hashes.SHA256()), 32)}),
}


def name(common):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def signed(subject, issuer, key, by, hashed, **more):
    of = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer)).public_key(key.public_key())
    of = of.serial_number(7).not_valid_before(NOW).not_valid_after(NOW + timedelta(days=9))
    of = of.add_extension(x509.SubjectAlternativeName([x509.DNSName(subject)]), critical=False)
    of = of.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    return of.sign(by, hashed, **more).public_bytes(Encoding.PEM)


def pem(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("kind", KEYS)
def test_a_certificate_is_known_by_its_authority_and_by_no_other_of_that_name(kind):
    authoritys, hashed, more = KEYS[kind]
    key = ec.generate_private_key(ec.SECP256R1())
    own = signed("base20", "Site", key, authoritys, hashed, **more)
    authority = signed("Site", "Site", authoritys, authoritys, hashed, **more)
    assert certificate_faults(Pems(authority, own, pem(key)), Kind.AGENT, NOW) == ()
    for another in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())):
        false = signed("Site", "Site", another, another, hashes.SHA256())
        wrong = certificate_faults(Pems(false, own, pem(key)), Kind.AGENT, NOW)
        assert [(one.field, one.what) for one in wrong] == [("certificate", "is not signed by the authority")]
        assert certificate_faults(Pems(false + authority, own, pem(key)), Kind.AGENT, NOW) == ()


def test_a_key_of_another_certificate_is_told_from_its_own():
    key, another = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    own = signed("Site", "Site", key, key, hashes.SHA256())
    assert [one.field for one in certificate_faults(Pems(own, own, pem(another)), Kind.AGENT, NOW)] == ["key"]


def test_a_key_that_is_no_point_of_its_curve_is_a_fault_that_is_told():
    key = ec.generate_private_key(ec.SECP256R1())
    own = signed("Site", "Site", key, key, hashes.SHA256())
    der = x509.load_pem_x509_certificate(own).public_bytes(Encoding.DER)
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    torn = ssl.DER_cert_to_PEM_cert(der.replace(point, point[:-1] + bytes([point[-1] ^ 1]))).encode()
    told = certificate_faults(Pems(torn, torn, pem(key)), Kind.AGENT, NOW)
    assert "cannot be read" in told[-1].what


def test_a_file_has_its_certificates_in_order_whatever_is_between_them():
    key = ec.generate_private_key(ec.SECP256R1())
    one, two = (signed(subject, "Site", key, key, hashes.SHA256()) for subject in ("one", "two"))
    found = certificates_in(b"# one\n" + one + b"\n# two, with the authority's key:\n" + two)
    assert [each.subject for each in found] == [name("one"), name("two")]
    with pytest.raises(ValueError, match="no certificate"):
        certificates_in(pem(key))


def torn(der, part, by, label):
    """PEM of something of which a part has become another."""
    assert part in der
    framed = base64.encodebytes(der.replace(part, by, 1)).decode()
    return f"-----BEGIN {label}-----\n{framed}-----END {label}-----\n".encode()


def test_versions_that_the_library_does_not_know_are_refused_as_all_else_that_cannot_be_read():
    key = ec.generate_private_key(ec.SECP256R1())
    own = signed("Site", "Site", key, key, hashes.SHA256())
    listed = x509.CertificateRevocationListBuilder().issuer_name(name("Site")).last_update(NOW)
    listed = listed.next_update(NOW + timedelta(days=9)).sign(key, hashes.SHA256())
    revoked = torn(listed.public_bytes(Encoding.DER), b"\2\1\1", b"\2\1\3", "X509 CRL")
    certificate = torn(ssl.PEM_cert_to_DER_cert(own.decode()), b"\2\1\2", b"\2\1\5", "CERTIFICATE")
    for read, of in ((revocations_in, revoked), (revoked_serials, revoked), (certificates_in, certificate)):
        with pytest.raises(ValueError, match="version"):
            read(of)
    told = certificate_faults(Pems(own, certificate, pem(key), revoked), Kind.AGENT, NOW)
    assert [(one.field, one.what) for one in told] == [
        ("certificate", "is no certificate in PEM"),
        ("revoked", "is no list of revoked ones in PEM"),
    ]


def test_extensions_that_cannot_be_read_are_refused_when_they_are_looked_at():
    key = ec.generate_private_key(ec.SECP256R1())
    own = ssl.PEM_cert_to_DER_cert(signed("Site", "Site", key, key, hashes.SHA256()).decode())
    (twice,) = certificates_in(torn(own, b"\x55\x1d\x25", b"\x55\x1d\x11", "CERTIFICATE"))  # 2.5.29.37 is .17 now
    with pytest.raises(ValueError, match="xtension"):
        names(twice)


@pytest.mark.parametrize(
    ("left_s", "days"), [(ENDING_DAYS * 86_400, None), (ENDING_DAYS * 86_400 - 1, 29), (86_399, 0), (-1, -1)]
)
def test_a_certificate_is_spoken_of_from_thirty_days_before_its_end_with_its_whole_days(left_s, days):
    assert ending_days(1_790_000_000 + left_s, 1_790_000_000) == days


def test_a_certificate_whose_end_is_not_known_is_not_spoken_of():
    assert ending_days(0, 1_790_000_000) is None
