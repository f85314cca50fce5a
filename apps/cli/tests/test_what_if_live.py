"""``headway what-if --live``: it goes on from a running controller, asked over HTTP."""

import json

import pytest
from typer.testing import CliRunner

import apps.cli.what_if as command
from apps.main import app

KILL = ("--kill", "chile-illinois")
NIGHT = ("reserve", "--from", "la-serena", "--to", "champaign", "--start", "22:00", "--for", "10h", "--rate", "1Mbps")


@pytest.fixture
def said(cli):
    """Run the command on the controller; return output, errors and exit code."""

    def run(*arguments):
        environment = {"COLUMNS": "200", "TZ": "America/Santiago"}
        done = CliRunner().invoke(app, ("what-if", "--live", cli.url, *arguments), env=environment)
        return done.stdout, done.stderr, done.exit_code

    return run


@pytest.fixture
def night(cli, monkeypatch):
    """A reservation of the coming night."""
    monkeypatch.setattr("apps.cli.reserve.SETTLES_S", 0.0)
    return cli.json(*NIGHT)["id"]


def test_with_nothing_promised_nothing_breaks(said):
    out, _, code = said(*KILL)
    assert "dies" in out
    assert code == 0


def test_a_death_at_a_time_of_the_day_breaks_what_is_promised_then(said, night):
    assert said()[2] == 0
    out, _, code = said(*KILL, "--at", "23:00")
    assert code == 4
    assert f"reservation {night}: reserved from" in out
    assert "has less for 9h" in out or "has less for 540m" in out
    assert "the line is down" in out


def test_a_death_that_is_over_before_breaks_nothing_and_each_circuit_can_be_tried(said, night):
    assert night
    found = json.loads(said("--json", "--kill", "all", "--at", "20:00", "--for", "1h")[0])
    assert [variant["broken"] for variant in found["variants"]] == [[], []]


def test_it_looks_as_far_as_is_said(said, night):
    assert night
    assert said(*KILL, "--at", "23:00", "--until", "21:00")[2] == 2
    assert said(*KILL, "--until", "21:30")[2] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("night.yaml",), "name a scenario's file, or --live URL"),
        (("--until", "2001-01-01T00:00:00Z"), "is over"),
        (("--kill", "nord"), 'there is no circuit "nord"'),
        (("--at", "14:00"), "--at and --for are of --kill"),
    ],
)
def test_a_mistake_is_said_in_words_and_ends_with_2(said, arguments, message):
    _, err, code = said(*arguments)
    assert message in err
    assert code == 2


def test_another_version_is_said_and_what_it_does_not_know_ends_with_1(said, monkeypatch):
    monkeypatch.setattr(command, "__version__", "0.0.1")
    assert "this command 0.0.1" in said()[1]

    def unknown(_):
        raise ValueError("there is no such key")

    monkeypatch.setattr("controller.live_site.live_site_of", unknown)
    _, err, code = said()
    assert code == 1
    assert "use headway" in err


def test_what_is_otherwise_than_it_is_taken_to_be_is_said(said, cli):
    cli.site.reports.host_down("base20")
    assert "base20: its agent is not connected; it is taken to be" in said()[1]
