"""A proxy that lets in who shows a certificate: files that are renewed in place are shown without a restart."""

import ssl
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from structlog.testing import capture_logs

from controller.plan.purchases import PurchaseState
from controller.providers.nsi import NsiProvider
from controller.providers.nsi_values import TlsFiles
from controller.providers.tests.buying import at_first
from controller.providers.tests.test_contract import nsi_settings
from controller.security import pki_files
from topology.certificates import CLIENT_URI, Kind

NAME = "6f1a3c52-0d9e-4b7f-8a21-5c3e9d7b1f04"
BEFORE = pki_files.now() - timedelta(days=1)


class Proxy(BaseHTTPRequestHandler):
    """Has no reservations, keeps connections open, and writes down whose certificate it is shown for each request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """Answer."""
        self.server.shown.append(int(self.connection.getpeercert()["serialNumber"], 16))
        self.send_response(200)
        self.send_header("Content-Length", "20")
        self.end_headers()
        self.wfile.write(b'{"reservations": []}')

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def authority(tmp_path):
    """The folder of an authority."""
    pki_files.init(tmp_path, "example", BEFORE, 1000)
    return tmp_path


@pytest.fixture
def proxy(authority):
    """The server."""
    made = pki_files.make(authority, Kind.CONTROLLER, ("127.0.0.1",), BEFORE, 100)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority / "ca.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(made.certificate, made.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads, server.shown = True, []
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, name="proxy")
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def renewed(authority):
    """Our certificate, made anew where it is."""
    return pki_files.make(authority, Kind.CLIENT, ("headway", f"{CLIENT_URI}headway"), BEFORE, 100, force=True)


@pytest.fixture
def provider(authority, proxy):
    """A client with a certificate."""
    made = renewed(authority)
    files = TlsFiles(str(authority / "ca.pem"), str(made.certificate), str(made.key))
    one = NsiProvider(nsi_settings(f"https://127.0.0.1:{proxy.server_port}", tls=files), at_first)
    yield one
    one.close()


def serial(made):
    """The number of a certificate."""
    return x509.load_pem_x509_certificate(Path(made.certificate).read_bytes()).serial_number


def asks(provider):
    """Ask something that is answered."""
    assert provider.status(NAME).state is PurchaseState.FAILED


def test_a_certificate_that_is_renewed_in_place_is_shown_at_the_next_request(authority, proxy, provider):
    asks(provider)
    made = renewed(authority)
    asks(provider)
    assert proxy.shown[0] != proxy.shown[1] == serial(made)
    asks(provider)
    assert proxy.shown[1] == proxy.shown[2]


def test_files_that_do_not_fit_each_other_leave_those_before_in_use(authority, proxy, provider):
    asks(provider)
    old = Path(provider._settings.tls.key).read_bytes()
    made = renewed(authority)
    new = Path(made.key).read_bytes()
    Path(made.key).write_bytes(old)
    with capture_logs() as logs:
        asks(provider)
        asks(provider)
    assert proxy.shown[0] == proxy.shown[2]
    assert [line["event"] for line in logs] == ["tls.unusable"]
    Path(made.key).write_bytes(new)
    asks(provider)
    assert proxy.shown[-1] == serial(made)
