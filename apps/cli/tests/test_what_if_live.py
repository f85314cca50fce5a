"""``headway what-if --live``: it goes on from a running controller, asked over HTTP."""

import json
from zoneinfo import ZoneInfo

import pytest

import apps.cli.what_if as command
from apps.cli.main import app
from apps.cli.tests.running import CliRunner
from apps.cli.times import local_instant_us
from topology.units import shown_time

KILL = ("--kill", "chile-illinois")
ZONE = "America/Santiago"
S, HOUR_US = 1_000_000, 3_600_000_000


def at(cli, hours):
    """A moment so many hours from the controller's own, RFC 3339."""
    return shown_time((cli.site.clock.now_us // S) * S + round(hours * HOUR_US))


@pytest.fixture
def said(cli):
    """Run the command on the controller; return output, errors and exit code."""

    def run(*arguments):
        environment = {"COLUMNS": "200", "TZ": ZONE}
        done = CliRunner().invoke(app, ("what-if", "--live", cli.url, *arguments), env=environment)
        return done.stdout, done.stderr, done.exit_code

    return run


@pytest.fixture
def night(cli, monkeypatch):
    """A reservation that begins in two hours, for ten."""
    monkeypatch.setattr("apps.cli.reserve.SETTLES_S", 0.0)
    ends = ("--from", "la-serena", "--to", "champaign")
    return cli.json("reserve", *ends, "--start", at(cli, 2), "--for", "10h", "--rate", "1Mbps")["id"]


def test_with_nothing_promised_nothing_breaks(said):
    out, _, code = said(*KILL)
    assert "dies" in out
    assert code == 0


def test_a_death_within_its_time_breaks_what_is_promised_then(said, cli, night):
    assert said()[2] == 0
    out, _, code = said(*KILL, "--at", at(cli, 3))
    assert code == 4
    assert f"reservation {night}: reserved from" in out
    assert "has less for 9h0m: chile-illinois: the line is down" in out


def test_a_time_of_the_day_is_the_next_one_in_the_users_zone(said, cli):
    next_us = local_instant_us("14:00", ZoneInfo(ZONE), cli.site.clock.now_us)
    assert f"chile-illinois dies {shown_time(next_us)}" in said(*KILL, "--at", "14:00")[0]


def test_a_death_that_is_over_before_breaks_nothing_and_each_circuit_can_be_tried(said, cli, night):
    assert night
    found = json.loads(said("--json", "--kill", "all", "--at", at(cli, 0.5), "--for", "1h")[0])
    assert [variant["broken"] for variant in found["variants"]] == [[], []]


def test_it_looks_as_far_as_is_said(said, cli, night):
    assert night
    assert said(*KILL, "--at", at(cli, 3), "--until", at(cli, 1))[2] == 2
    assert said(*KILL, "--until", at(cli, 1))[2] == 0


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


@pytest.mark.parametrize(("url", "code"), [("nonsense", 2), ("http://127.0.0.1:1", 1)])
def test_where_no_controller_is_found_it_says_which_option_of_its_own_is_wrong(monkeypatch, url, code):
    monkeypatch.setattr("headway.transport.WAITS_S", ())
    done = CliRunner().invoke(command.app, ["--live", url])
    assert (done.exit_code, done.stderr.endswith(" set --live\n")) == (code, True), done.stderr


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
