"""The tab key: what it knows of each command; and that nobody waits for it where a token is to be had first."""

import json
import shlex
import sys
import time

import pytest

from apps.cli import completion, identity, main
from apps.cli.tests.asked import NIGHT
from apps.cli.tests.running import CliRunner
from controller.tests.fakes import image
from headway.tests.scripted import scripted

NOBODY = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A person's own folder, with nothing in it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in (identity.TOKEN_ENV, identity.COMMAND_ENV, identity.FILE_ENV):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def typed(*words):
    """What the shell offers for the last of these words."""
    asked = {"_HEADWAY_COMPLETE": "complete_bash", "COMP_CWORD": str(len(words))}
    asked["COMP_WORDS"] = shlex.join(("headway", *words[:-1])) + f" {words[-1]}"
    return CliRunner().invoke(main.app, [], prog_name="headway", env=asked).stdout.split()


def test_the_tab_key_knows_what_a_command_is_about(cli, monkeypatch):
    monkeypatch.setenv("HEADWAY_URL", cli.url)
    monkeypatch.setattr(completion, "TIMEOUT_S", 30.0)  # a busy machine is late
    cli.site.announce(image("image"))
    night = cli.json(*NIGHT, "--rate", "1Mbps")["id"]
    fibre = cli.json("maintenance", "chile-illinois", "--for", "2h", "--force")["maintenance"]["id"]
    assert typed("history", "") == [night, "image"]
    assert typed("history", "im") == ["image"]
    assert typed("maintenance", "ch") == ["chile-illinois"]
    assert typed("maintenance", "--cancel", "") == [fibre]
    assert typed("announce", "--from", "base20,base2") == [f"base20,base2{number}" for number in range(4)]
    assert typed("announce", "--from", "base20") == ["base20"]


def test_a_command_that_does_not_print_the_token_soon_is_not_waited_for(monkeypatch):
    monkeypatch.setenv("HEADWAY_URL", NOBODY)
    monkeypatch.setenv(identity.COMMAND_ENV, "sleep 60")
    began_s = time.monotonic()
    assert (completion.announcements(""), completion.promises("")) == ([], [])
    assert time.monotonic() - began_s < 10 * identity.QUICK_S


def test_the_token_is_asked_for_once_and_reads_nothing_that_is_typed(tmp_path, monkeypatch):
    asked = tmp_path / "asked"
    printing = f"import sys; open({str(asked)!r}, 'a').write('.' + sys.stdin.read()); print('hw_1')"
    monkeypatch.setenv(identity.COMMAND_ENV, f'{sys.executable} -S -c "{printing}"')
    monkeypatch.setattr(identity, "QUICK_S", 30.0)  # a busy machine is late
    page = {"announcements": [], "next": None}
    with scripted((200, {}, page), (200, {}, page)) as server:
        monkeypatch.setenv("HEADWAY_URL", server.url)
        assert completion.announcements("") == []
    assert [headers["Authorization"] for _, _, headers in server.asked] == ["Bearer hw_1"] * 2
    assert asked.read_text() == "."


def test_a_login_is_not_renewed_and_its_token_is_shown_as_long_as_it_is_good(home, monkeypatch):
    logins = home / "headway" / "logins"
    logins.parent.mkdir()
    logins.touch(mode=0o600)
    with scripted() as issuer:
        one = {"issuer": issuer.url, "client": "c", "endpoint": f"{issuer.url}/token", "token": "hw_1", "refresh": "r"}
        for left_s, shown in ((10, "hw_1"), (-1, None)):
            logins.write_text(json.dumps({NOBODY: one | {"until_s": time.time() + left_s}}))
            assert identity.token(NOBODY, quickly=True) == shown
        assert identity.token("http://127.0.0.1:2", quickly=True) is None
    assert issuer.asked == []
