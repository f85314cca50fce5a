"""``headway leader``: whichever controller is meant is asked, wherever the command is told so."""

import contextlib
import json

import pytest

from apps.cli import base
from apps.cli.main import app
from apps.cli.tests.running import CliRunner

ALONE = {"standing": "alone"}
MOVED = {"leader": "a", "standbys": ["b"]}
THERE, ELSEWHERE = ("--url", "http://test:1"), ("--url", "http://other:1")


class AskedPair:
    """A pair of controllers, whichever is asked."""

    def get_leader(self):
        """Say who leads."""
        return ALONE

    def move_leader(self):
        """Let the other one lead."""
        return MOVED


@pytest.fixture
def asked(monkeypatch):
    """The addresses that are asked."""
    urls = []

    @contextlib.contextmanager
    def client_of(url):
        urls.append(url)
        yield AskedPair()

    monkeypatch.setattr(base, "client_of", client_of)
    return urls


def run(*arguments):
    """Run the command, where the environment names a controller; return what it prints."""
    done = CliRunner().invoke(app, ["leader", *arguments], env={"HEADWAY_URL": "http://prod:8080"})
    assert done.exit_code == 0, f"{arguments}\n{done.stdout}\n{done.stderr}\n{done.exception!r}"
    return done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (*THERE, "--json", "move"),
        ("move", *THERE, "--json"),
        (*THERE, "move", "--json"),
        ("--json", "move", *THERE),
        (*ELSEWHERE, "move", *THERE, "--json"),
    ],
)
def test_options_of_a_move_count_before_its_name_and_behind_it_and_the_nearest_first(asked, arguments):
    assert json.loads(run(*arguments)) == MOVED
    assert asked == ["http://test:1"]


def test_who_leads_is_asked_where_it_is_said_else_where_the_environment_says(asked):
    assert json.loads(run(*THERE, "--json")) == ALONE
    assert run("move") == "a lets b lead\n"
    assert asked == ["http://test:1", "http://prod:8080"]
