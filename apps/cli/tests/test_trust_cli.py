"""Which https controller the command trusts, and the certificate that it shows."""

import contextlib
import json
import os

import pytest

from apps.cli import main, pki, trust
from apps.cli.tests.running import CliRunner
from apps.web import web
from controller.northbound.tests.site import api_of
from controller.security.tls import ServerTls
from controller.settings.listen import ListenAddress
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois


@pytest.fixture
def folder(tmp_path):
    """An authority with REST's certificate, and one of a person; all made by the command."""
    where = str(tmp_path / "pki")
    for words in (
        ["init", where, "--name", "example"],
        ["rest", where, "--name", "127.0.0.1"],
        ["client", where, "ana"],
    ):
        done = CliRunner().invoke(pki.app, words)
        assert done.exit_code == 0, done.output
    return tmp_path / "pki"


def files(folder):
    rest = folder / "rest" / "127.0.0.1"
    return ServerTls(f"{rest}.key", f"{rest}.pem", str(folder / "ca.pem"), str(folder / "crl.pem"), is_mutual=False)


@pytest.fixture
def url(folder):
    """A controller's REST by TLS."""
    api = api_of(FakeSite(chile_illinois(), standing=()))
    with web(api, ListenAddress("127.0.0.1", 0), tls=files(folder)) as number:
        yield f"https://127.0.0.1:{number}"


def asked(url, home, *before, **environment):
    """What the command answers, and its exit code."""
    said = {"HOME": str(home), "XDG_CONFIG_HOME": None, "HEADWAY_CA": None, "HEADWAY_CERTIFICATE": None}
    done = CliRunner().invoke(main.app, [*before, "reservations", "--json", "--url", url], env=said | environment)
    return done.exit_code, done.stdout, done.stderr


def test_the_sites_authority_is_trusted_where_it_is_said_or_lies(folder, url, tmp_path):
    code, _, why = asked(url, tmp_path)
    assert code == 1
    assert "is not trusted" in why
    assert "HEADWAY_CA" in why
    assert json.loads(asked(url, tmp_path, "--ca", str(folder / "ca.pem"))[1]) is not None
    assert asked(url, tmp_path, HEADWAY_CA=str(folder / "ca.pem"))[0] == 0
    (tmp_path / ".config/headway").mkdir(parents=True)
    (tmp_path / ".config/headway/ca.pem").write_bytes((folder / "ca.pem").read_bytes())
    assert asked(url, tmp_path)[0] == 0


def test_an_authority_that_only_others_may_read_keeps_nobody_from_asking(folder, url, tmp_path, monkeypatch):
    others = tmp_path / "etc" / "ca.pem"
    others.parent.mkdir()
    others.write_bytes((folder / "ca.pem").read_bytes())
    may = os.access
    monkeypatch.setattr(trust, "SYSTEM_CA", others)  # root may read everything, so it is said here that we may not
    monkeypatch.setattr("os.access", lambda path, mode: path != others and may(path, mode))
    code, _, why = asked(url, tmp_path)
    assert (code, "is not trusted" in why) == (1, True), why
    (tmp_path / ".config/headway").mkdir(parents=True)
    (tmp_path / ".config/headway/ca.pem").write_bytes((folder / "ca.pem").read_bytes())
    assert asked(url, tmp_path)[0] == 0


def test_a_file_that_cannot_be_used_is_named(folder, url, tmp_path):
    nowhere = str(tmp_path / "nowhere.pem")
    code, _, why = asked(url, tmp_path, "--ca", nowhere)
    assert (code, why) == (2, f"headway: {nowhere}: No such file or directory\n")
    code, _, why = asked(url, tmp_path, HEADWAY_CA=str(folder / "ca.pem"), HEADWAY_CERTIFICATE=nowhere)
    assert (code, nowhere in why) == (2, True)


def test_our_own_certificate_is_shown(folder, tmp_path):
    seen = []

    async def app(scope, receive, send):
        if scope["type"] == "http":
            seen.append(scope["extensions"]["tls"]["client_cert_name"])
            await send({"type": "http.response.start", "status": 500, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    with contextlib.ExitStack() as parts:
        number = parts.enter_context(web(app, ListenAddress("127.0.0.1", 0), tls=files(folder)))
        shown = {"HEADWAY_CA": str(folder / "ca.pem"), "HEADWAY_CERTIFICATE": str(folder / "clients/ana.pem")}
        asked(f"https://127.0.0.1:{number}", tmp_path, **shown)
    assert seen == ["ana"]
