"""Who may do what at a pair of controllers, on real processes and a real PostgreSQL: as at one that is alone."""

import os
import socket
import subprocess
import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from controller.security.token_file import write_tokens
from controller.security.tokens import Role, new_token
from mininet_tests.site.command import HEADWAY
from mininet_tests.site.postgresql import PrivatePostgres, binaries
from mininet_tests.site.running import running
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0 or binaries() is None, reason="needs root, and PostgreSQL 14 or newer as Debian packages it"
    ),
]
NIGHT = {"from": "la-serena", "to": "champaign", "class": "urgent", "rate": "1 Mbit/s", "duration_s": 60}


class Doors:
    """A pair whose tokens are on both machines, a token of each role, and one that is revoked at both."""

    def __init__(self, folder, parts):
        now = datetime.now(UTC)
        made = {role: new_token(role.value, role, now, now + timedelta(hours=1)) for role in Role}
        self.tokens = {role: token for role, (token, _) in made.items()}
        postgres = parts.enter_context(PrivatePostgres())
        self.pair, self.files = [], []
        for name in "ab":
            (folder / name).mkdir()
            file = folder / name / "tokens"
            write_tokens(file, tuple(kept for _, kept in made.values()))
            rest = f"127.0.0.1:{free_port()}"
            said = {"pair": {"address": f"http://{rest}", "ttl": "4 s"}, "listen": {"rest": rest}}
            access = {"tokens": str(file), "local": "read"}
            self.files.append(file)
            self.pair.append(parts.enter_context(running(folder / name, postgres.url, access=access, **said)))
        eventually(lambda: self.said()["standbys"], within_s=30, what="one stands by")

    def who(self, one, token):
        try:
            return one.asks("GET", "/v1/leader", headers=bearer(token), timeout_s=5).json()
        except httpx.TransportError:  # who led begins anew
            return {}

    def leader(self):
        def alone():  # they are asked one after the other: who has just left and who has just come both say so
            leading = [one for one in self.pair if self.who(one, self.tokens[Role.READ]).get("leading")]
            return leading[0] if len(leading) == 1 else None

        return eventually(alone, within_s=10, what="one leads")

    def said(self):
        return {"standbys": []} | self.who(self.leader(), self.tokens[Role.READ])

    def let_go(self):
        """Who led and is let go; None while nobody has stood by for the last second: then one asks again."""
        leader = self.leader()
        answer = move(leader, self.tokens[Role.OPERATE])
        if answer.status_code == 202:
            return leader
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/no-standby")
        return None

    def standby(self):
        leader = self.leader()
        (other,) = [one for one in self.pair if one is not leader]
        return other


def bearer(token):
    return {"Authorization": f"Bearer {token}"} if token else {}


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    with ExitStack() as parts:
        yield Doors(tmp_path_factory.mktemp("pair"), parts)


def move(one, token):
    return one.asks("POST", "/v1/leader/move", headers=bearer(token), timeout_s=5)


@pytest.mark.parametrize(("who", "status"), [("", 403), ("made up", 401), (Role.READ, 403), (Role.RESERVE, 403)])
def test_who_may_not_operate_moves_no_leader_and_learns_no_address(doors, who, status):
    term, token = doors.said()["term"], doors.tokens.get(who, who)
    for one in (doors.leader(), doors.standby()):
        answer = move(one, token)
        assert (answer.status_code, answer.headers.get("location")) == (status, None)
    assert doors.said()["term"] == term


def test_a_standby_passes_who_may_on_to_its_leader_and_to_nobody_else(doors):
    answer = move(doors.standby(), doors.tokens[Role.OPERATE])
    assert (answer.status_code, answer.headers["location"]) == (307, f"{doors.leader().url}/v1/leader/move")


def test_a_token_that_is_revoked_at_both_is_nobody_s_at_either(doors):
    name = Role.RESERVE.value
    for file in doors.files:
        subprocess.run([HEADWAY, "token", "revoke", name, "--file", file], check=True, capture_output=True)
    for one in doors.pair:
        eventually(
            lambda one=one: move(one, doors.tokens[Role.RESERVE]).status_code == 401, within_s=5, what="it is nobody's"
        )


def test_changes_by_two_leaders_in_turn_are_one_chain(doors):
    token = doors.tokens[Role.ADMIN]
    for _ in range(3):
        one = doors.leader()
        made = one.asks("POST", "/v1/reservations", json=NIGHT, headers=bearer(token), timeout_s=5)
        assert made.status_code == 201
        one = eventually(doors.let_go, within_s=30, what="a leader is let go")
        following = eventually(lambda one=one: (now := doors.leader()) is not one and now, within_s=10, what="another")
        refused = move(following, doors.tokens[Role.OPERATE])  # who led begins anew, which takes seconds
        assert (refused.status_code, refused.json()["type"]) == (409, "/problems/no-standby")
        eventually(lambda: doors.said()["standbys"], within_s=60, what="who led stands by")
        assert doors.leader() is following
    config = doors.pair[0].config
    done = subprocess.run(
        [HEADWAY, "history", "--verify", "--config", config], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = doors.leader().asks("GET", "/v1/changes", headers=bearer(token), timeout_s=5).json()["changes"]
    held = [row for row in rows if row["kind"] == "reservation.held"]
    assert len(held) == 3
    assert {row["who"] for row in held} == {"token:admin"}


class NotifySocket:
    """A service manager that listens; what it was told."""

    def __init__(self, path):
        self.path, self.said = str(path), []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._thread = threading.Thread(target=self._listen)

    def __enter__(self):
        """Listen, in a thread."""
        self._socket.bind(self.path)
        self._thread.start()
        return self

    def __exit__(self, *_):
        """Listen no more."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as us:
            us.sendto(b"enough", self.path)
        self._thread.join()
        self._socket.close()

    def _listen(self):
        while (told := self._socket.recv(4096).decode()) != "enough":
            self.said.append(told)

    def was_told(self, what):
        return sum(what in told for told in self.said)


def test_a_leader_that_lets_another_lead_does_not_tell_its_service_manager_that_it_ends(tmp_path, monkeypatch):
    """It begins anew in the same process: systemd would wait for its end, and kill it."""
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    with NotifySocket(tmp_path / "notify") as manager, ExitStack() as parts:
        pair = Doors(tmp_path, parts)
        eventually(pair.let_go, within_s=30, what="a leader is let go")
        eventually(lambda: pair.said()["standbys"], within_s=60, what="who led stands by")
        assert manager.was_told("READY=1") > len(pair.pair)
        assert manager.was_told("STOPPING=1") == 0
        pair.leader().end()
        eventually(lambda: manager.was_told("STOPPING=1"), within_s=10, what="a leader that ends says so")
