"""``headway token``, and whom the other commands show a token: the controller it is for, and nobody else."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from apps.cli import client, events, identity, token, token_work
from apps.cli.tests.running import CliRunner
from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.tests.site import dependencies_of
from controller.security.token_file import TokenFile
from controller.tests.fakes import FakeSite
from controller.tests.serving import served
from headway.tests.scripted import PROBLEM, scripted
from mininet_tests.testing.networks import chile_illinois


def run(app, *arguments, exit_code=0, **environment):
    """Run a command; return (standard output, standard error)."""
    done = CliRunner().invoke(app, arguments, env={"HEADWAY_TOKEN": None, "COLUMNS": "200"} | environment)
    assert done.exit_code == exit_code, f"{arguments}\n{done.stdout}\n{done.stderr}\n{done.exception!r}"
    return done.stdout, done.stderr


@pytest.fixture
def file(tmp_path):
    """Where a controller's tokens will be."""
    return tmp_path / "tokens"


@pytest.fixture
def url(file):
    """A controller that lets nobody in without one of them."""
    rules = AccessRules(TokenFile(file).current, lambda: datetime.now(UTC))
    with served(api(dependencies_of(FakeSite(chile_illinois(), standing=())), rules)) as where:
        yield where


def made(file, name="ana", role="operate"):
    """A token that is made."""
    return run(token.app, "make", name, "--role", role, "--file", str(file))[0].strip()


def test_a_token_lets_in_from_its_making_to_its_revoking_without_a_restart(file, url):
    _, why = run(client.app, "reservations", "--url", url, exit_code=1)
    assert 'needs "Authorization: Bearer TOKEN" with the role "read"; set HEADWAY_TOKEN' in why
    text = made(file)
    run(client.app, "reservations", "--url", url, HEADWAY_TOKEN=text)
    assert run(token.app, "revoke", "ana", "--file", str(file))[0] == "revoked: 1 of ana\n"
    assert "its end has come" in run(client.app, "reservations", "--url", url, exit_code=1, HEADWAY_TOKEN=text)[1]
    assert "its end has come" in run(client.app, "events", "--url", url, exit_code=1, HEADWAY_TOKEN=text)[1]


def test_a_command_may_print_the_token(file, url):
    text = made(file)
    printing = f"{sys.executable} -c 'print(\"{text}\")'"
    run(client.app, "reservations", "--url", url, HEADWAY_TOKEN_COMMAND=printing)
    for command, why in (
        (f"{sys.executable} -c 'raise SystemExit(3)'", "it ended with 3 and printed no token"),
        ("/no/such/command", "No such file or directory"),
        ("'", "No closing quotation"),
    ):
        said = run(client.app, "reservations", "--url", url, exit_code=2, HEADWAY_TOKEN_COMMAND=command)[1]
        assert why in said
        assert text not in said


def test_events_go_on_once_there_is_a_token_again_and_say_once_that_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "AGAIN_S", 0.0)
    monkeypatch.setattr("headway.transport.COMES_BACK_S", 0.0)
    printing = tmp_path / "prints.py"
    printing.write_text(
        "import pathlib, sys\n"
        "asked = pathlib.Path(__file__).with_name('asked')\n"
        "asked.write_text(asked.read_text() + '.' if asked.exists() else '.')\n"
        "sys.exit('the issuer is away') if len(asked.read_text()) in (2, 3) else print('hw_1')\n"
    )
    stream = {"Content-Type": "text/event-stream"}
    told = [b"id: %d\nevent: fault.began\ndata: {}\n\n" % number for number in (7, 8)]
    ended = (401, {}, PROBLEM | {"status": 401, "detail": "its end has come"})
    with scripted(*((200, stream, one) for one in told), ended) as server:
        command = f"{sys.executable} {printing}"
        words = ("events", "--json", "--url", server.url)
        said, wrong = run(client.app, *words, exit_code=1, HEADWAY_TOKEN_COMMAND=command)
    assert [json.loads(line)["id"] for line in said.splitlines()] == ["7", "8"]
    waits, ends = wrong.splitlines()
    assert (waits.count("the issuer is away"), "tried again" in waits) == (1, True)
    assert "its end has come" in ends
    assert [headers["Authorization"] for _, _, headers in server.asked] == ["Bearer hw_1"] * 3


def test_events_end_if_there_is_no_token_at_the_start():
    nothing = f"{sys.executable} -c 'raise SystemExit(3)'"
    said = run(client.app, "events", "--url", "http://127.0.0.1:1", exit_code=2, HEADWAY_TOKEN_COMMAND=nothing)[1]
    assert "printed no token" in said


def test_who_has_too_small_a_role_is_told_which_it_takes(file, url):
    text = made(file, role="read")
    _, why = run(client.app, "release", "any", "--url", url, exit_code=1, HEADWAY_TOKEN=text)
    assert 'this needs the role "reserve", yours is "read"' in why


def test_a_list_has_what_is_kept_and_neither_tokens_nor_hashes(file):
    text = made(file)
    made(file, "bo", "read")
    table, _ = run(token.app, "list", "--file", str(file))
    said = run(token.app, "list", "--json", "--file", str(file))[0]
    assert [(one["name"], one["role"], one["valid"]) for one in json.loads(said)] == [
        ("ana", "operate", True),
        ("bo", "read", True),
    ]
    (kept, _) = json.loads(file.read_text())
    for shown in (table, said):
        assert kept["id"] in shown
        assert kept["sha256"] not in shown
        assert text not in shown
    run(token.app, "revoke", kept["id"], "--file", str(file))
    assert [one["name"] for one in json.loads(file.read_text())] == ["bo"]


def test_by_a_link_the_file_where_it_leads_is_changed_and_its_folder_locked(file, tmp_path, monkeypatch):
    locked = []
    monkeypatch.setattr("fcntl.flock", lambda folder, _how: locked.append(Path(f"/proc/self/fd/{folder}").readlink()))
    made(file)
    link = tmp_path / "etc" / "tokens"
    link.parent.mkdir()
    link.symlink_to(file)
    made(link, "bo")
    run(token.app, "revoke", "ana", "--file", str(link))
    assert [one["name"] for one in json.loads(file.read_text())] == ["bo"]
    assert link.is_symlink()
    assert locked == [file.parent] * 3


def test_where_there_are_no_tokens_it_is_said(file):
    said = run(token.app, "list", "--file", str(file), exit_code=2)
    assert said == ("", f"headway: {file}: No such file or directory\n")
    made(file)
    run(token.app, "revoke", "ana", "--file", str(file))
    assert run(token.app, "list", "--file", str(file)) == (f"no tokens in {file}\n", "")


def test_where_the_usual_file_is_not_there_yet_there_are_no_tokens(file, monkeypatch):
    monkeypatch.setattr(token_work, "USUAL", file)
    assert run(token.app, "list", "--file", str(file)) == (f"no tokens in {file}\n", "")
    assert run(token.app, "list", "--json", "--file", str(file)) == ("[]\n", "")


@pytest.mark.parametrize("name", ["", "-x", "a b", "a\x1b[31m", "x" * 65, "ana\n"])
def test_a_name_is_a_word_that_can_stand_in_a_log(file, name):
    assert "NAME: need" in run(token.app, "make", "--role", "read", "--file", str(file), "--", name, exit_code=2)[1]
    assert not file.exists()


def test_what_cannot_be_done_is_one_line(file, tmp_path):
    assert 'no token "bo"' in run(token.app, "revoke", "bo", "--file", str(file), exit_code=1)[1]
    nowhere = str(tmp_path / "none" / "tokens")
    assert "No such file" in run(token.app, "make", "a", "--role", "read", "--file", nowhere, exit_code=1)[1]
    file.touch(0o644)
    assert "chmod 600" in run(token.app, "list", "--file", str(file), exit_code=1)[1]


def test_a_token_of_the_file_goes_to_its_own_controller_only(tmp_path, monkeypatch):
    ours = tmp_path / "ours"
    monkeypatch.setenv("HEADWAY_TOKENS", str(ours))
    monkeypatch.delenv("HEADWAY_TOKEN", raising=False)
    assert identity.token("http://a:8080") is None
    ours.touch(0o600)
    ours.write_text("# mine\nhttp://a:8080 hw_1\nhttp://b:8080/ hw_2\nnonsense\n")
    assert identity.token("http://a:8080") == "hw_1"
    assert identity.token("http://b:8080") == "hw_2"
    assert identity.token("http://a:80801") is identity.token("http://c") is None
    ours.chmod(0o640)
    with pytest.raises(identity.NotOursAlone, match="chmod 600"):
        identity.token("http://a:8080")
    _, why = run(client.app, "reservations", "--url", "http://a:1", exit_code=2, HEADWAY_TOKENS=str(ours))
    assert "chmod 600" in why


def test_a_token_of_one_of_a_pair_goes_to_the_whole_pair_and_to_nobody_else(tmp_path, monkeypatch):
    ours = tmp_path / "tokens"
    ours.touch(mode=0o600)
    monkeypatch.setenv("HEADWAY_TOKENS", str(ours))
    ours.write_text("https://ctl-b:8080 hw_b\n")
    assert identity.token("https://ctl-a:8080,https://ctl-b:8080/") == "hw_b"
    assert identity.token("https://ctl-b:8080, https://ctl-a:8080") == "hw_b"
    assert identity.token("https://ctl-a:8080,https://ctl-c:8080") is None
