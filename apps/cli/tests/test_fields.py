"""What is wrong with a request is said by the options that were typed, against an API of a site without switches."""

import httpx
import pytest

from apps.cli import client, fields
from apps.cli.tests.asked import NIGHT
from apps.cli.tests.running import command_of

ENDS = ("--from", "base20", "--to", "arch")
RESERVE = ("reserve", *ENDS, "--rate", "1Mbps")
ANNOUNCE = ("announce", *ENDS, "--bytes", "1MB")
FAR, PAST, LATER = "2099-01-01T00:00:00Z", "2001-01-01T00:00:00Z", "2030-01-01T00:00:0"


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Nothing is waited for."""
    monkeypatch.setattr("apps.cli.reserve.SETTLES_S", 0.0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("reserve", *ENDS, "--rate", "1bps", "--for", "1h"), "--rate: need at least 64 kbit/s"),
        ((*RESERVE, "--until", FAR), "--until: lies more than ten years ahead"),
        ((*RESERVE, "--for", "1h", "--start", PAST), "end: lies in the past"),
        ((*RESERVE, "--for", "1h", "--max-rtt", "0ms"), "--max-rtt: "),
        ((*RESERVE, "--for", "1h", "--include", ""), "--include: "),
        (("reserve", "--from", "arch", "--to", "arch", "--rate", "1Mbps", "--for", "1h"), "--to: arch and arch are"),
        ((*NIGHT, "--rate", "1Mbps", "--dest-port", "873"), "connections: are told apart between two hosts only"),
        ((*ANNOUNCE, "--deadline", "4000 days"), "--deadline: lies more than ten years ahead"),
        ((*ANNOUNCE, "--session", "2h"), "--session: "),
        ((*ANNOUNCE, "--lanes", "2", "--id", "two words"), "--id: "),
        (("announce", "--from", "base20,", "--to", "arch", "--bytes", "1MB"), "--from: "),
        (("availability", *ENDS, "--start", f"{LATER}2Z", "--end", f"{LATER}1Z"), "--end: must come after the start"),
        (("availability", *ENDS, "--bytes", "0B"), "--bytes: "),
        (("maintenance", "chile-illinois", "--until", FAR), "--until: lies more than ten years ahead"),
    ],
)
def test_what_is_wrong_is_said_by_the_option_that_was_typed(cli, asked, said):
    assert cli.run(*asked, exit_code=2)[1].startswith(f"headway: {said}")


def test_a_name_or_key_that_is_taken_is_said_by_its_option(cli):
    cli.run(*ANNOUNCE, "--id", "image", "--key", "night")
    again = ("--class", "background")
    assert cli.run(*ANNOUNCE, *again, "--id", "image", exit_code=1)[1].startswith('headway: --id: "image" was used for')
    assert cli.run(*ANNOUNCE, *again, "--key", "night", exit_code=1)[1].startswith(
        'headway: --key: "night" was used for'
    )


def test_a_hold_and_a_change_say_it_so_too(cli):
    held = cli.json(*NIGHT, "--rate", "1Mbps", "--hold-only")["id"]
    assert cli.run("renew", held, "--for", "2h", exit_code=2)[1].startswith("headway: --for: ")
    assert cli.run("change", held, "--end", FAR, exit_code=2)[1].startswith("headway: --end: lies more than ten")


def test_several_fields_are_each_said_by_their_options_and_what_is_of_no_field_by_itself():
    errors = [{"field": "rate_bps", "detail": "too little"}, {"field": "hue", "detail": "none"}]
    said = fields.in_options({"detail": "...", "errors": [*errors, {"field": "", "detail": "no"}]}, ["--rate"])
    assert said == "--rate: too little; hue: none; no"


def test_every_option_of_the_table_is_one_of_a_command_and_every_field_one_of_the_api(cli):
    commands = command_of(client.app).commands.values()
    options = {name for command in commands for param in command.params for name in param.opts}
    assert {option for found in fields.OPTIONS.values() for option in found} <= options
    said = httpx.get(f"{cli.url}/openapi.json").json()
    in_bodies = {name for model in said["components"]["schemas"].values() for name in model.get("properties", ())}
    asked = {
        one["name"] for path in said["paths"].values() for how in path.values() for one in how.get("parameters", ())
    }
    assert set(fields.OPTIONS) <= in_bodies | asked
