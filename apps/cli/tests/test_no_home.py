"""A user without a home, as in some containers: whatever needs no file of his own works."""

import pytest

from apps.cli import identity, trust
from apps.cli.main import app
from apps.cli.tests.running import CliRunner


@pytest.fixture(autouse=True)
def _homeless(monkeypatch):
    """Neither the environment nor the list of users has a home."""

    def unknown(number):
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setattr("headway.transport.WAITS_S", ())
    names = ("HOME", "XDG_CONFIG_HOME", trust.CA_ENV, identity.TOKEN_ENV, identity.COMMAND_ENV, identity.FILE_ENV)
    for name in names:
        monkeypatch.delenv(name, raising=False)


def ended(*arguments):
    """Exit code and standard error of a call."""
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.stderr


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "https://127.0.0.1:1"])
def test_a_controller_is_asked_as_by_who_has_no_files(url):
    code, said = ended("plan", "--url", url)
    assert (code, "no controller at" in said) == (1, True)


@pytest.mark.parametrize("words", [("login", "--issuer", "http://127.0.0.1:1", "--client", "c"), ("logout",)])
def test_a_login_says_before_the_browser_that_there_is_no_place_to_keep_it(words):
    code, said = ended(*words)
    assert (code, said) == (2, "headway: you have no home to keep a login in: set HOME or XDG_CONFIG_HOME\n")


def test_a_login_that_is_kept_elsewhere_needs_no_home(tmp_path, monkeypatch):
    monkeypatch.setenv(identity.FILE_ENV, str(tmp_path / "tokens"))
    assert ended("logout") == (0, "")
