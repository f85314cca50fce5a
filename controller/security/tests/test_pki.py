"""Certificates and the folder of an authority."""

import errno
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from controller.security import pki, pki_files
from controller.security.pki import NotAName
from controller.security.pki_files import PkiError
from topology.certificates import (
    CLIENT_URI,
    OVSDB_URI,
    REST_URI,
    Kind,
    Pems,
    called,
    certificate_faults,
    kind_of,
    names,
    switch_uri,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path):
    """An authority's folder."""
    pki_files.init(tmp_path / "pki", "La Serena", NOW, 3650)
    return tmp_path / "pki"


def agent(folder, host="base20", **more):
    return pki_files.make(folder, Kind.AGENT, (host,), NOW, more.pop("days", 730), **more)


def pems(folder, made, **changes):
    read = {
        "authority": (folder / "ca.pem").read_bytes(),
        "certificate": made.certificate.read_bytes(),
        "key": made.key.read_bytes(),
        "revoked": (folder / "crl.pem").read_bytes(),
    }
    return Pems(**(read | changes))


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def room_for(some_files):
    """os.fsync on a disk that has room for so many files more."""
    left = iter(range(some_files))

    def fsync(_file):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")

    return fsync


def whats(given_pems, kind=Kind.AGENT, at=NOW):
    return [(problem.field, problem.what.partition(";")[0]) for problem in certificate_faults(given_pems, kind, at)]


def test_what_is_made_is_right(folder):
    assert whats(pems(folder, agent(folder))) == []
    made = pki_files.make(folder, Kind.CONTROLLER, ("ctl.example.org", "192.0.2.1", "2001:db8::1"), NOW, 730)
    assert whats(pems(folder, made), Kind.CONTROLLER) == []
    assert made.issued.names == ("ctl.example.org", "192.0.2.1", "2001:db8::1")


def test_a_certificate_says_whose_it_is_and_for_how_long(folder):
    made = x509.load_pem_x509_certificate(agent(folder).certificate.read_bytes())
    assert (names(made), kind_of(made)) == (("base20",), Kind.AGENT)
    assert made.not_valid_after_utc == NOW + timedelta(days=730)
    assert made.not_valid_before_utc < NOW


def test_no_certificate_outlives_its_authority(tmp_path):
    pki_files.init(tmp_path, "short", NOW, 10)
    assert agent(tmp_path).issued.ends_s == (NOW + timedelta(days=10)).timestamp()


def test_keys_are_for_their_owner_only_and_nothing_is_left_beside_them(folder):
    made = agent(folder)
    for key in (made.key, folder / "ca.key"):
        assert key.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in (folder / "agents").iterdir()) == ["base20.key", "base20.pem"]


def test_a_key_is_written_over_only_by_force(folder):
    made = agent(folder)
    key = made.key.read_bytes()
    with pytest.raises(PkiError, match=r"base20\.key exists"):
        agent(folder)
    with pytest.raises(PkiError, match=r"ca\.key exists"):
        pki_files.init(folder, "another", NOW, 1)
    assert made.key.read_bytes() == key
    assert agent(folder, force=True).key.read_bytes() != key
    assert len(pki_files.listed(folder)) == 2, "the one before is still good, and listed"


@pytest.mark.parametrize("is_link", [False, True])
def test_an_authority_whose_key_is_kept_elsewhere_is_replaced_only_by_force(tmp_path, folder, is_link):
    agent(folder)
    key = (folder / "ca.key").rename(tmp_path / "kept")
    if is_link:
        (folder / "ca.key").symlink_to(tmp_path / "unmounted" / "ca.key")
    before = files(folder)
    with pytest.raises(PkiError, match=r"ca\.key exists" if is_link else r"ca\.pem exists"):
        pki_files.init(folder, "another", NOW, 1)
    with pytest.raises(PkiError, match=r"ca\.key: No such file or directory; put the authority's ca\.key back into "):
        agent(folder, "base21")
    assert files(folder) == before
    key.replace(folder / "ca.key")
    agent(folder, "base21")
    (folder / "crl.pem").unlink()
    with pytest.raises(PkiError, match=r"put the authority's crl\.pem back into "):
        pki_files.listed(folder)


@pytest.mark.parametrize(
    "replace",
    [lambda folder: pki_files.init(folder, "x", NOW, 1, force=True), lambda folder: agent(folder, force=True)],
)
@pytest.mark.parametrize("fitting", range(3))
def test_on_a_full_disk_nothing_is_replaced(folder, monkeypatch, fitting, replace):
    agent(folder)
    before = files(folder)
    monkeypatch.setattr("os.fsync", room_for(fitting))
    with pytest.raises(OSError, match="No space left on device"):
        replace(folder)
    assert files(folder) == before


def test_a_key_of_another_authority_signs_nothing(tmp_path, folder):
    pki_files.init(tmp_path / "other", "La Serena", NOW, 3650)
    (tmp_path / "other" / "ca.key").replace(folder / "ca.key")
    with pytest.raises(PkiError, match=r"ca\.key is not the key of .*ca\.pem; put the authority's ca\.key back into "):
        agent(folder)


def test_a_key_without_its_certificate_is_used_unless_one_of_its_holder_is_revoked(folder):
    made = agent(folder)
    key = made.key.read_bytes()
    made.certificate.unlink()
    again = agent(folder)
    assert again.key.read_bytes() == key
    assert whats(pems(folder, again)) == []
    pki_files.revoke(folder, "base20", NOW)
    made.certificate.unlink()
    with pytest.raises(PkiError, match="is revoked: make it a new key"):
        agent(folder)
    assert agent(folder, force=True).key.read_bytes() != key


@pytest.mark.parametrize("name", ["", "a b", "-a", "192.0.2", "1.2.3.4.5", "ä.example.org", "../ca", "a..b", "*"])
def test_what_is_no_name_is_refused(folder, name):
    with pytest.raises(NotAName):
        pki_files.make(folder, Kind.CONTROLLER, (name,), NOW, 1)


@given(st.text(max_size=30))
def test_whatever_is_a_name_is_in_the_certificate_as_it_was_said(name):
    authority = pki.new_authority("x", NOW)
    try:
        made = pki.certificate(authority, Kind.AGENT, (name,), pki.new_key().public_key(), NOW + timedelta(days=1))
    except NotAName:
        return
    assert len(names(made)) == 1
    assert names(made)[0] == name or ":" in name, "of an IPv6 address the short form"


@pytest.mark.parametrize("site", ["", "x" * 65])
def test_a_sites_name_that_fits_into_no_certificate_is_refused(tmp_path, site):
    with pytest.raises(PkiError, match="must have 1 to 64 bytes"):
        pki_files.init(tmp_path, site, NOW, 1)


def test_revoking_takes_every_certificate_of_a_name_and_a_serial_only_that_one(folder):
    first, second = agent(folder), agent(folder, force=True)
    pki_files.revoke(folder, first.issued.serial.upper(), NOW)
    assert {one.serial: one.revoked for one in pki_files.listed(folder)} == {
        first.issued.serial: True,
        second.issued.serial: False,
    }
    (gone,) = pki_files.revoke(folder, "base20", NOW)
    assert gone.serial == second.issued.serial
    assert all(one.revoked for one in pki_files.listed(folder))
    assert whats(pems(folder, second)) == [("certificate", "is revoked")]


def test_what_cannot_be_revoked_is_said(folder):
    agent(folder)
    with pytest.raises(PkiError, match='no certificate was made for "base99"; there are base20'):
        pki_files.revoke(folder, "base99", NOW)
    pki_files.revoke(folder, "base20", NOW)
    with pytest.raises(PkiError, match="revoked already"):
        pki_files.revoke(folder, "base20", NOW)


def test_renewing_keeps_names_and_key_and_moves_the_end(folder):
    made = agent(folder, days=10)
    key = made.key.read_bytes()
    later = pki_files.renew(folder, Kind.AGENT, "base20", NOW + timedelta(days=5), 730)
    assert later.key.read_bytes() == key
    assert later.issued.ends_s - made.issued.ends_s == 725 * 86_400
    assert whats(pems(folder, later)) == []


def test_a_revoked_key_is_not_renewed(folder):
    agent(folder)
    pki_files.revoke(folder, "base20", NOW)
    with pytest.raises(PkiError, match="make it a new key"):
        pki_files.renew(folder, Kind.AGENT, "base20", NOW, 730)


def test_a_folder_that_is_none_and_a_damaged_file_are_said_with_what_to_do(tmp_path, folder):
    with pytest.raises(PkiError, match="headway pki init"):
        agent(tmp_path / "nowhere")
    with pytest.raises(PkiError, match="headway pki init"):
        pki_files.listed(tmp_path / "nowhere")
    (folder / "ca.key").write_text("x")
    with pytest.raises(PkiError, match=r"ca\.key is damaged"):
        agent(folder)


def test_everything_that_is_wrong_with_files_is_told_at_once(tmp_path, folder):
    made, other = agent(folder, days=10), agent(folder, "base21")
    pki_files.init(tmp_path / "other", "other", NOW, 3650)
    strange = {"authority": (tmp_path / "other" / "ca.pem").read_bytes()}
    at = NOW + timedelta(days=10)
    assert whats(pems(folder, made, key=other.key.read_bytes(), **strange), Kind.CONTROLLER, at) == [
        ("certificate", "has expired at 2026-12-01T00:00:00Z"),
        ("certificate", "must be that of a controller, and is that of an agent"),
        ("key", "is not the key of the certificate"),
        ("certificate", "is not signed by the authority"),
        ("revoked", "is not signed by the authority"),
    ]


@pytest.mark.parametrize("field", ["authority", "certificate", "key", "revoked"])
def test_what_is_no_pem_is_told_by_its_field(folder, field):
    assert [name for name, _ in whats(pems(folder, agent(folder), **{field: b"nonsense"}))] == [field]


def test_an_authority_that_has_expired_is_told(tmp_path):
    pki_files.init(tmp_path, "short", NOW, 10)
    found = whats(pems(tmp_path, agent(tmp_path)), at=NOW + timedelta(days=11))
    assert {field for field, what in found if "has expired" in what} == {"authority", "certificate", "revoked"}


def test_an_authority_that_has_expired_signs_nothing(tmp_path):
    pki_files.init(tmp_path, "short", NOW, 10)
    agent(tmp_path)
    before, end = files(tmp_path), NOW + timedelta(days=10)
    said = r"ca\.pem has expired at 2026-12-01T00:00:00Z.*: headway pki init in another folder"
    with pytest.raises(PkiError, match=said):
        pki_files.make(tmp_path, Kind.AGENT, ("base21",), end, 730)
    with pytest.raises(PkiError, match=said):
        pki_files.renew(tmp_path, Kind.AGENT, "base20", end, 730)
    with pytest.raises(PkiError, match=rf": headway pki ovsdb {tmp_path.parent} .*--force"):
        pki_files.make(tmp_path, Kind.OVSDB, ("ctl", OVSDB_URI), end, 730)
    assert files(tmp_path) == before


def test_a_certificate_of_tomorrow_is_told(folder):
    ((_, what), *_) = whats(pems(folder, agent(folder)), at=NOW - timedelta(days=1))
    assert "is not valid before" in what


MADE = {
    Kind.AGENT: ("base20",),
    Kind.CONTROLLER: ("ctl.example.org", "192.0.2.1"),
    Kind.SWITCH: ("ls1", switch_uri(1)),
    Kind.REST: ("ctl.example.org", REST_URI),
    Kind.CLIENT: ("ana@example.org", f"{CLIENT_URI}ana@example.org"),
    Kind.OVSDB: ("ctl.example.org", OVSDB_URI),
}


@pytest.mark.parametrize("kind", Kind)
def test_a_certificate_is_of_its_kind_and_of_no_other(kind):
    authority, key = pki.new_authority("example", NOW), pki.new_key()
    made = pki.certificate(authority, kind, MADE[kind], key.public_key(), NOW + timedelta(days=30))
    assert kind_of(made) is kind
    assert called(made) == MADE[kind]
    pems = Pems(pki.certificate_pem(authority.certificate), pki.certificate_pem(made), pki.key_pem(key))
    good_as = {other for other in Kind if not certificate_faults(pems, other, NOW)}
    foreign = {Kind.REST} if kind is Kind.CONTROLLER else set()  # as other authorities make REST's
    assert good_as == {kind} | foreign


def test_a_certificate_of_two_kinds_is_of_none():
    authority, key = pki.new_authority("example", NOW), pki.new_key()
    both = ("ana", f"{CLIENT_URI}ana", switch_uri(1))
    made = pki.certificate(authority, Kind.CLIENT, both, key.public_key(), NOW + timedelta(days=30))
    assert kind_of(made) is None
