"""REST's socket on the controller's machine: for root and the controller's user, who may all without a token."""

import contextlib
import json
import socket
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from apps.cli import client, place
from apps.cli.tests.running import CliRunner
from apps.web import web
from apps.web_local import local_socket
from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.tests.site import MANY, NIGHT, dependencies_of
from controller.security import pki_files
from controller.security.tls import ServerTls
from controller.security.tokens import Role, Tokens
from controller.settings.listen import ListenAddress, UnixSocket
from controller.tests.fakes import FakeSite
from headway import ApiProblem, Client
from mininet_tests.testing.networks import chile_illinois
from topology.certificates import REST_URI, Kind

RULES = AccessRules(lambda: Tokens(()), lambda: datetime.now(UTC))  # by address, nobody may anything


def app_of(rules=RULES):
    return api(dependencies_of(FakeSite(chile_illinois(), standing=())), rules)


@contextlib.contextmanager
def served(path, tls=None):
    """Serve by a socket, and by a port; give the port."""
    with (
        local_socket(UnixSocket(str(path))) as bound,
        web(app_of(), ListenAddress("127.0.0.1", 0), tls=tls, local=bound) as port,
    ):
        yield port


def files(folder):
    """REST's files for TLS."""
    pki_files.init(folder, "example", pki_files.now(), 10)
    made = pki_files.make(folder, Kind.REST, ("127.0.0.1", REST_URI), pki_files.now(), 5)
    authority = str(folder / "ca.pem")
    return ServerTls(str(made.key), str(made.certificate), authority, str(folder / "crl.pem"), is_mutual=False)


@pytest.mark.parametrize("by_tls", [False, True], ids=["plain", "tls"])
def test_who_may_open_it_may_all_and_who_asks_the_port_nothing(tmp_path, by_tls):
    path = tmp_path / "rest.sock"
    with served(path, files(tmp_path / "pki") if by_tls else None) as port:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        here = Client(f"unix:{path}")
        assert (here.get_whoami()["name"], here.get_whoami()["role"]) == ("local", "admin")
        held = here.hold_reservation(NIGHT)
        assert here.list_changes(id_=held["id"])["changes"][0]["address"] == "unix"
        if not by_tls:
            with pytest.raises(ApiProblem) as refused:
                Client(f"http://127.0.0.1:{port}").get_whoami()
            assert refused.value.status == 401
    assert not path.exists()


def test_what_a_controller_has_left_is_removed_and_another_s_is_not_taken(tmp_path):
    path = tmp_path / "rest.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with served(path), pytest.raises(FileExistsError, match="another one listens there"), served(path):
        pass
    path.write_text("a file of somebody")
    with pytest.raises(OSError), local_socket(UnixSocket(str(path))):  # noqa: PT011
        pass
    assert path.read_text() == "a file of somebody"


@pytest.mark.parametrize("rules", [RULES, AccessRules(RULES.tokens, RULES.now, local=Role.ADMIN)])
def test_a_stranger_whose_address_is_not_known_any_more_is_not_taken_for_one_of_this_machine(rules):
    app = app_of(rules)

    async def gone(scope, receive, send):
        await app(scope | {"client": None}, receive, send)

    answers = [TestClient(gone).get(MANY), TestClient(gone).post(MANY, json=NIGHT)]
    assert [answer.status_code for answer in answers] == [401, 401]


def test_the_command_asks_it_where_it_is_unless_something_else_was_said(tmp_path, monkeypatch):
    path = tmp_path / "rest.sock"
    monkeypatch.setattr("headway.transport.WAITS_S", ())
    monkeypatch.setattr(place, "LOCAL", str(path))
    for name in ("HEADWAY_URL", "HEADWAY_TOKEN", "HEADWAY_TOKEN_COMMAND"):
        monkeypatch.delenv(name, raising=False)
    assert place.local(place.DEFAULT_URL) == place.DEFAULT_URL
    with served(path):
        done = CliRunner().invoke(client.app, ("whoami", "--json"))
        assert json.loads(done.stdout.splitlines()[-1])["role"] == "admin", done.output
        assert place.local("http://127.0.0.1:9") == "http://127.0.0.1:9"
        for name in ("HEADWAY_URL", "HEADWAY_TOKEN", "HEADWAY_TOKEN_COMMAND"):
            monkeypatch.setenv(name, "http://127.0.0.1:8080")
            assert place.local(place.DEFAULT_URL) == place.DEFAULT_URL
            monkeypatch.delenv(name)


def test_the_unit_makes_the_folder_in_which_the_command_looks():
    unit = (Path(__file__).parents[2] / "contrib/packaging/units/headway-controller.service").read_text()
    (folder,) = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("RuntimeDirectory=")]
    assert Path(place.LOCAL).parent == Path("/run") / folder
