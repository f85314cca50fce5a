"""``headway login``: a code, a browser that says yes, and a token that the other commands show and renew."""

import json
import re
import ssl
import stat
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from apps.cli import identity, login_work, trust
from apps.cli.main import app
from apps.cli.tests.running import CliRunner
from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.known import IssuerTokens
from controller.northbound.tests.site import dependencies_of
from controller.security import pki_files
from controller.security.issuer import Issuer
from controller.security.oidc_settings import OidcSettings
from controller.security.tokens import Role, Tokens
from controller.tests.fakes import FakeSite
from controller.tests.issuer import AUDIENCE, serving_issuer
from controller.tests.serving import served
from mininet_tests.testing.networks import chile_illinois
from topology.certificates import REST_URI, Kind

FIVE_MINUTES, ENDING = "terminal-300", "terminal-20"  # names of clients, with how long their tokens last


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """The issuer."""
    folder = tmp_path_factory.mktemp("pki")
    pki_files.init(folder, "example", pki_files.now(), 10)
    made = pki_files.make(folder, Kind.REST, ("127.0.0.1", REST_URI), pki_files.now(), 5)
    with serving_issuer(made.certificate, made.key, folder / "ca.pem") as process:
        yield process


@pytest.fixture
def url(there):
    """A controller that takes its tokens."""
    settings = OidcSettings(there.issuer, AUDIENCE, {"lsst": Role.RESERVE}, authority=there.authority)
    rules = AccessRules(lambda: Tokens(()), pki_files.now, issuer=IssuerTokens(Issuer(settings)))
    with served(api(dependencies_of(FakeSite(chile_illinois(), standing=())), rules)) as where:
        yield where


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, there):
    """A person's own folder, where the issuer's authority is trusted."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HEADWAY_CA", str(there.authority))
    for name in (identity.TOKEN_ENV, identity.COMMAND_ENV, identity.FILE_ENV):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*arguments, exit_code=0):
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert done.exit_code == exit_code, f"{arguments}\n{done.stdout}\n{done.stderr}\n{done.exception!r}"
    return done.stdout, done.stderr


def trusting(there):
    return ssl.create_default_context(cafile=str(there.authority))


def logged_in(there, url, name, answer="yes", exit_code=0):
    """Log in, with somebody at a browser who gives an answer; return what was said."""
    began, begun = threading.Event(), login_work.begun

    def somebody_at_a_browser(*arguments):
        login = begun(*arguments)
        address = login.direct.replace("/yes/", f"/{answer}/")
        threading.Timer(0.2, lambda: urlopen(address, context=trusting(there)).close()).start()  # noqa: S310
        began.set()
        return login

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(login_work, "begun", somebody_at_a_browser)
        said = run("login", "--url", url, "--issuer", there.issuer, "--client", name, exit_code=exit_code)
    assert began.is_set()
    return said


def test_who_logs_in_at_a_browser_is_known_by_the_other_commands(there, url, home):
    assert "say who you are" in run("whoami", "--url", url, exit_code=1)[1]
    said, asked = logged_in(there, url, FIVE_MINUTES)
    assert re.search(rf"open {there.issuer}/device and enter the code [0-9a-f]{{4}}\n", asked)
    assert "headway whoami" in said
    assert f"oidc:{there.issuer}#ana-4711: reserve, in lsst" in run("whoami", "--url", url)[0]
    file = home / "headway" / "logins"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = json.loads(file.read_text())[url]["token"]
    run("whoami", "--url", url)
    assert json.loads(file.read_text())[url]["token"] == before  # it lasts for minutes
    assert identity.token("http://127.0.0.1:1") is None  # it is nobody else's
    run("logout", "--url", url)
    assert "say who you are" in run("whoami", "--url", url, exit_code=1)[1]


def test_a_token_that_ends_is_renewed_and_a_refresh_that_is_not_taken_says_what_to_do(there, url, home):
    logged_in(there, url, ENDING)
    file = home / "headway" / "logins"
    before = json.loads(file.read_text())[url]
    run("whoami", "--url", url)
    now = json.loads(file.read_text())[url]
    assert (now["token"] != before["token"], now["refresh"] != before["refresh"]) == (True, True)
    file.write_text(json.dumps({url: before}))  # its refresh was used already
    _, why = run("whoami", "--url", url, exit_code=1)
    assert f"has ended (invalid_grant): headway login --issuer {there.issuer} --client {ENDING}" in why


@contextmanager
def unwell_issuer(status, body):
    """Give the address of an endpoint that answers each request so; of one where nobody listens, without a status."""

    class Unwell(BaseHTTPRequestHandler):
        def log_message(self, *_args):
            """Say nothing."""

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Unwell) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        if status is None:
            server.server_close()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()
        thread.join()


UNWELL = {
    "it says so": (400, b'{"error": "temporarily_unavailable"}', "temporarily_unavailable"),
    "a proxy says so": (503, b"<html>", "503"),
    "it fails": (500, b'{"error": "server_error"}', "500"),
    "it is asked too often": (429, b"{}", "429"),
    "a page": (200, b"<html>", "no JSON"),
    "nobody there": (None, b"", "refused"),
}


@pytest.mark.parametrize(("status", "body", "why"), UNWELL.values(), ids=UNWELL)
def test_while_the_issuer_is_unwell_a_token_that_is_good_is_shown_and_one_that_has_ended_is_not_said_to_be_a_lost_login(
    there, url, home, status, body, why
):
    logged_in(there, url, ENDING)
    file = home / "headway" / "logins"
    kept = json.loads(file.read_text())[url]
    with unwell_issuer(status, body) as endpoint:
        file.write_text(json.dumps({url: kept | {"endpoint": endpoint}}))
        assert "ana-4711" in run("whoami", "--url", url)[0]
        file.write_text(json.dumps({url: kept | {"endpoint": endpoint, "until_s": time.time() - 1}}))
        _, said = run("whoami", "--url", url, exit_code=1)
    assert f"headway: the login at {url} cannot be renewed now (" in said
    assert why in said
    assert "has ended" not in said
    file.write_text(json.dumps({url: kept}))
    assert "ana-4711" in run("whoami", "--url", url)[0]  # nothing of it is lost


def test_an_issuer_of_an_authority_of_the_systems_is_trusted_beside_a_controller_of_another(
    there, url, tmp_path, monkeypatch
):
    controllers = tmp_path / "controllers"
    pki_files.init(controllers, "controllers", pki_files.now(), 10)
    monkeypatch.setenv("HEADWAY_CA", str(controllers / "ca.pem"))
    _, why = run("login", "--url", url, "--issuer", there.issuer, "--client", ENDING, exit_code=1)
    assert "certificate verify failed" in why
    monkeypatch.setenv("SSL_CERT_FILE", str(there.authority))  # where OpenSSL finds the system's
    logged_in(there, url, ENDING)
    assert "ana-4711" in run("whoami", "--url", url)[0]  # it was renewed
    with pytest.raises(URLError, match="certificate verify failed"):
        urlopen(there.issuer, context=trust.context(there.issuer))  # noqa: S310 (as if it were the controller)


def test_a_login_that_has_ended_and_cannot_be_renewed_is_a_failure(there, url, home):
    logged_in(there, url, ENDING)
    file = home / "headway" / "logins"
    kept = json.loads(file.read_text())[url]
    file.write_text(json.dumps({url: kept | {"refresh": "", "until_s": time.time() - 1}}))
    assert "has ended: headway login" in run("whoami", "--url", url, exit_code=1)[1]


@pytest.mark.parametrize(("answer", "why"), [("access_denied", "access_denied"), ("expired_token", "expired_token")])
def test_who_says_no_logs_nobody_in(there, url, home, answer, why):
    assert why in logged_in(there, url, FIVE_MINUTES, answer, exit_code=1)[1]
    assert not (home / "headway" / "logins").exists()


def test_what_cannot_be_is_one_line(there, url, home):
    for issuer, why in (
        ("http://login.example.org", "need https"),
        (f"{there.issuer}/x", "without response"),
        ("x", "no address"),
    ):
        assert why in run("login", "--url", url, "--issuer", issuer, "--client", "c", exit_code=1)[1]
    assert "set --url" in run("login", "--url", "x", "--issuer", there.issuer, "--client", "c", exit_code=2)[1]
    logged_in(there, url, FIVE_MINUTES)
    (home / "headway" / "logins").chmod(0o640)
    assert "chmod 600" in run("whoami", "--url", url, exit_code=2)[1]


def waiting(monkeypatch, posted, within_s):
    """A login that waits for an issuer that answers as ``posted`` does."""
    monkeypatch.setattr(login_work, "_posted", lambda *_: posted())
    asked = login_work.AskedIssuer("https://i", "c", "https://i/device", "https://i/token")
    return login_work.DeviceLogin(asked, "d", "u", "https://i/device", "", 5.0, time.monotonic() + within_s)


@pytest.mark.parametrize("error", ["", "temporarily_unavailable", "server_error", "slow_down"])
def test_an_issuer_that_is_unwell_for_a_moment_is_asked_less_often_and_loses_no_login(monkeypatch, error):
    answers, slept_s = iter([{"error": error}, {"error": "authorization_pending"}, {"access_token": "yes"}]), []

    def posted():
        said = next(answers)
        if said.get("error") == "":
            raise login_work.LoginFailed("https://i/token: it answers 503")
        return said

    login = waiting(monkeypatch, posted, within_s=30)
    kept = login_work.finished(login, sleep=slept_s.append)
    assert (kept.token, slept_s) == ("yes", [5, 10, 10])


def test_an_issuer_that_stays_unwell_is_what_is_said_in_the_end(monkeypatch):
    def posted():
        raise login_work.LoginFailed("https://i/token: it answers 503")

    login = waiting(monkeypatch, posted, within_s=0.05)
    with pytest.raises(login_work.LoginFailed, match="it answers 503: headway login again"):
        login_work.finished(login, sleep=lambda _: None)
