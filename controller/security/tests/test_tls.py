"""The files of TLS, as they are on disk now."""

import pytest

from controller.security import pki_files
from controller.security.tls import Credentials, ServerTls
from topology.certificates import Kind


@pytest.fixture
def credentials(tmp_path):
    now = pki_files.now()
    pki_files.init(tmp_path, "here", now, 100)
    made = pki_files.make(tmp_path, Kind.CONTROLLER, ("controller.example",), now, 10)
    files = ServerTls(str(made.key), str(made.certificate), str(tmp_path / "ca.pem"), str(tmp_path / "crl.pem"))
    return Credentials(files)


def test_a_key_whose_owner_or_mode_is_put_right_is_read_again(credentials, tmp_path):
    assert not credentials.refreshed()
    key = tmp_path / "controllers" / "controller.example.key"
    key.chmod(0o640)  # as chown does, it changes nothing that is in the file
    assert credentials.refreshed()
    assert not credentials.refreshed()


def test_a_list_of_another_authority_is_not_taken_into_use_or_everybody_would_be_refused(credentials, tmp_path):
    before = credentials.context
    own = (tmp_path / "crl.pem").read_bytes()
    pki_files.init(tmp_path / "ovsdb", "here", pki_files.now(), 100)
    (tmp_path / "crl.pem").write_bytes((tmp_path / "ovsdb" / "crl.pem").read_bytes())
    with pytest.raises(OSError, match=r"crl\.pem is not signed by the authority"):
        credentials.refreshed()
    assert credentials.context is before
    assert not credentials.refreshed()
    (tmp_path / "crl.pem").write_bytes(own)
    assert credentials.refreshed()
    assert credentials.context is not before
