"""The exit codes are those that docs/cli.md has, whichever command it is."""

import pytest

from apps.cli import client
from apps.cli.tests.running import CliRunner

ENDS = ("--from", "base20", "--to", "arch")
COMMANDS = {
    "reserve": ("reserve", *ENDS, "--rate", "1Mbps", "--for", "1h"),
    "reservations": ("reservations",),
    "reservation": ("reservation", "r"),
    "commit": ("commit", "r"),
    "renew": ("renew", "r"),
    "cancel": ("cancel", "r"),
    "change": ("change", "r", "--rate", "1Mbps"),
    "availability": ("availability", *ENDS),
    "announce": ("announce", *ENDS, "--bytes", "1MB"),
    "release": ("release", "a"),
    "announcements": ("announcements",),
    "plan": ("plan",),
    "circuits": ("circuits",),
    "hosts": ("hosts",),
    "switches": ("switches",),
    "drift": ("drift",),
    "bursts": ("bursts",),
    "receivers": ("receivers",),
    "top": ("top", "--once"),
    "events": ("events",),
    "export": ("export",),
    "history": ("history",),
    "whoami": ("whoami",),
    "maintenance": ("maintenance",),
}


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Nothing is waited for."""
    monkeypatch.setattr("headway.transport.WAITS_S", ())


def ended(*arguments):
    """Exit code and last line of a call."""
    done = CliRunner().invoke(client.app, arguments, env={"COLUMNS": "200"})
    return done.exit_code, done.stderr.splitlines()[-1]


@pytest.mark.parametrize(("words", "named"), [((), "TZ"), (("--zone", "Nope"), "--zone")])
def test_a_time_zone_that_is_none_is_2_and_said_of_what_has_named_it(monkeypatch, words, named):
    monkeypatch.setenv("TZ", "Nope")
    code, said = ended("reservations", *words)
    assert (code, said) == (2, f'headway: {named}: there is no time zone "Nope", try "America/Santiago" or "UTC"')


@pytest.mark.parametrize("words", [("reservation", ""), ("commit", "."), ("release", "")])
def test_what_is_no_name_is_2_and_named(words):
    code, said = ended(*words, "--url", "http://127.0.0.1:1")
    assert (code, said) == (2, f'headway: "{words[1]}" is no name that anything has')


def test_every_command_is_in_the_table():
    assert sorted(COMMANDS) == sorted(one.name or one.callback.__name__ for one in client.app.registered_commands)


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_without_a_controller_it_is_1(words):
    code, said = ended(*words, "--url", "http://127.0.0.1:1")
    assert code == 1
    assert said.startswith("headway: ")


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_what_makes_no_sense_is_2(words):
    assert ended(*words, "--url", "nonsense")[0] == 2
    assert ended(*words, "--no-such-option")[0] == 2
