"""Owners and quotas at a terminal: in whose name, whose, and what is left."""

import json
from datetime import UTC, datetime

import pytest
import structlog

from apps.cli import client, token
from apps.cli.tests.asked import offered
from apps.cli.tests.running import CliRunner
from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.tests.site import dependencies_of
from controller.plan.quotas import Quota, Quotas
from controller.security.token_file import TokenFile
from controller.tests.fakes import FakeSite
from controller.tests.serving import served
from mininet_tests.testing.networks import chile_illinois

NIGHT = ("reserve", "--from", "la-serena", "--to", "champaign", "--start", "22:00", "--for", "10h", "--rate", "60Mbps")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A controller with tokens, and the command by somebody of the group lsst, which has a quota."""
    monkeypatch.setattr("headway.transport.WAITS_S", ())
    monkeypatch.setattr("apps.cli.reserve.SETTLES_S", 0.0)
    file, site = tmp_path / "tokens", FakeSite(chile_illinois(), standing=())
    site.clock.wall_us = int(datetime.now(UTC).timestamp() * 1e6)
    site.use_cases.allowances.quotas = Quotas({"group:lsst": Quota(rate_bps=100_000_000, entries=9)})
    rules = AccessRules(TokenFile(file).current, lambda: datetime.now(UTC))
    make = ("make", "ana", "--role", "reserve", "--group", "lsst", "--file", str(file))
    text = CliRunner().invoke(token.app, make).stdout.strip()
    listed = CliRunner().invoke(token.app, ("list", "--file", str(file))).stdout
    assert "ana in lsst" in listed
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())  # the command prints here
    with served(api(dependencies_of(site), rules)) as url:

        def ran(*arguments, exit_code=0):
            environment = {"HEADWAY_TOKEN": text, "HEADWAY_URL": url, "COLUMNS": "200"}
            done = CliRunner().invoke(client.app, arguments, env=environment)
            assert done.exit_code == exit_code, f"{arguments}\n{done.stdout}\n{done.stderr}\n{done.exception!r}"
            return done.stdout + done.stderr

        yield ran
    structlog.reset_defaults()


def test_a_group_s_reservation_is_made_found_handed_over_and_bounded_by_its_quota(run):
    made = json.loads(run(*NIGHT, "--owner", "lsst", "--json"))
    assert made["owner"] == "group:lsst"
    own = json.loads(run(*NIGHT, "--json"))
    assert own["owner"] == "token:ana"
    found = json.loads(run("reservations", "--owner", "lsst", "--json"))
    assert [one["id"] for one in found] == [made["id"]]
    assert len(json.loads(run("reservations", "--mine", "--json"))) == 2
    said = run(*NIGHT, "--owner", "lsst", exit_code=3)
    assert said == "headway: group:lsst may have 100 Mbit/s at a time, and 40 Mbit/s of it is left: 60 Mbit/s asked\n"
    assert "group:lsst" in run("change", own["id"], "--owner", "lsst", "--rate", "40Mbps")
    assert "you are not group:alma" in run(*NIGHT, "--owner", "alma", exit_code=1)


def test_whoami_says_name_role_groups_and_what_is_left(run):
    run(*NIGHT, "--owner", "lsst")
    said = run("whoami").splitlines()
    assert said[0] == "token:ana: reserve, in lsst"
    rows = [line.replace("│", " ").split() for line in said]
    assert ["group:lsst", "rate", "60", "Mbit/s", "100", "Mbit/s", "40", "Mbit/s"] in rows
    assert ["group:lsst", "promises", "1", "9", "8"] in rows
    assert json.loads(run("whoami", "--json"))["name"] == "token:ana"


def test_announcements_are_a_group_s_too(run):
    size = ("announce", "--from", "base20", "--to", "arch", "--bytes", "1MB", "--id", "image", "--owner", "lsst")
    run(*size, exit_code=4)  # no agent is there: promised, not carried
    assert "image" in run("announcements", "--owner", "lsst")
    assert "owner       group:lsst" in run("announcements", "image")
    assert "no announcements" in run("announcements", "--owner", "token:ana")


def test_what_is_offered_instead_of_a_group_s_announcement_is_the_group_s_too(run):
    size = ("announce", "--from", "base20", "--to", "arch", "--bytes", "10GB", "--deadline", "1s", "--owner", "lsst")
    taken = offered(run(*size, exit_code=3))["1"]
    assert taken[taken.index("--owner") + 1] == "group:lsst"
    assert json.loads(run(*taken, "--json", exit_code=4).splitlines()[0])["owner"] == "group:lsst"


def test_what_is_offered_instead_of_a_change_is_handed_over_too(run):
    run(*NIGHT[:-1], "850Mbps")
    own = json.loads(run(*NIGHT, "--json"))["id"]
    taken = offered(run("change", own, "--rate", "95Mbps", "--owner", "lsst", exit_code=3))["1"]
    assert taken[taken.index("--owner") + 1] == "group:lsst"
    assert json.loads(run(*taken, "--json"))["owner"] == "group:lsst"


@pytest.mark.parametrize("owner", ["", "group:"])
def test_an_owner_without_a_name_is_nobody_and_nothing_is_done(run, owner):
    own = json.loads(run(*NIGHT, "--json"))["id"]
    size = ("announce", "--from", "base20", "--to", "arch", "--bytes", "1MB", "--id", "image")
    for asked in (NIGHT, size, ("change", own), ("reservations",), ("announcements",)):
        said = run(*asked, "--owner", owner, exit_code=2)
        assert said == f'headway: --owner: "{owner}" is nobody; name a group of yours, or token:NAME\n'
    assert [one["owner"] for one in json.loads(run("reservations", "--json"))] == ["token:ana"]
