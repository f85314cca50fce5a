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
    return Credentials(ServerTls(str(made.key), str(made.certificate), str(tmp_path / "ca.pem")))


def test_a_key_whose_owner_or_mode_is_put_right_is_read_again(credentials, tmp_path):
    assert not credentials.refreshed()
    key = tmp_path / "controllers" / "controller.example.key"
    key.chmod(0o640)  # as chown does, it changes nothing that is in the file
    assert credentials.refreshed()
    assert not credentials.refreshed()
