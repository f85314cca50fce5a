"""``headway history``: against an API of a site without switches, and along the chain in a database."""

import json
import sqlite3
from datetime import UTC, datetime

import pytest

from apps.cli.main import app
from apps.cli.tests.running import CliRunner
from controller.database import Database
from controller.tests.changes_contract import recorded
from controller.tests.database_child import reservation
from controller.tests.fakes import image
from controller.tests.past_contract import done

ENDS = ("--from", "la-serena", "--to", "champaign")


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Nothing is waited for."""
    monkeypatch.setattr("headway.transport.WAITS_S", ())


@pytest.fixture
def database(tmp_path):
    """The path of a database with five changes, and the last of them."""
    path = tmp_path / "headway.db"
    database = Database(f"sqlite:///{path}")
    database.open()
    for n in range(1, 6):
        done(database, recorded(reservation(n)))
    last = database.last_change()
    database.close()
    return path, last


def verify(path, *arguments):
    """Verify; return exit code, standard output, standard error."""
    ended = CliRunner().invoke(app, ("history", "--verify", "--store", f"sqlite:///{path}", *arguments))
    return ended.exit_code, ended.stdout, ended.stderr


def test_all_versions_of_a_reservation_are_shown_with_what_has_changed(cli):
    made = cli.json("reserve", *ENDS, "--start", "22:00", "--for", "1h", "--rate", "2Mbps", "--hold-only")
    cli.run("commit", made["id"])
    cli.run("change", made["id"], "--rate", "1Mbps")
    cli.run("cancel", made["id"])
    said, _ = cli.run("history", made["id"])
    for part in (
        *("reservation.held", "reservation.committed", "reservation.changed", "reservation.released"),
        *("local", "127.0.0.1", "rate 2 Mbit/s", "rate 2 Mbit/s -> 1 Mbit/s", "state held -> committed"),
    ):
        assert part in said, said
    assert next(row["kind"] for row in cli.json("history", made["id"])) == "reservation.held"


def test_an_announcement_has_a_history_too_and_lists_are_by_whom_and_since_when(cli):
    cli.site.announce(image())
    cli.run("release", "image")
    found = cli.json("history", "image")
    assert [(row["kind"], row["who"]) for row in found] == [
        ("announcement.promised", "controller"),  # this test, past the API
        ("announcement.released", "local"),
    ]
    assert [row["kind"] for row in cli.json("history", "--who", "local")] == ["announcement.released"]
    minute = datetime.fromtimestamp(cli.site.clock.now_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:00Z")
    assert len(cli.json("history", "--since", minute)) == 2
    assert cli.json("history", "--since", "2100-01-01T00:00:00Z") == []
    assert "2,688,024,580 bytes" in cli.run("history")[0]
    assert cli.run("history", "--who", "nobody")[0] == "no changes\n"


def test_a_time_without_a_date_is_the_last_one(cli):
    cli.site.announce(image())
    cli.run("history", "--since", "00:00")
    assert len(cli.json("history", "--since", "00:00")) == 1


def test_how_long_something_may_take_is_shown_as_a_duration_and_no_date(cli):
    made = cli.json("reserve", *ENDS, "--start", "22:00", "--for", "1h", "--rate", "2Mbps", "--max-rtt", "200ms")
    assert "constraints max rtt 200ms;" in cli.run("history", made["id"])[0]
    image = ("announce", "--from", "base20", "--to", "arch", "--bytes", "900GB", "--deadline", "2s", "--id", "image")
    cli.run(*image, exit_code=3)
    said, _ = cli.run("history", "image")
    assert "deadline 2s;" in said
    assert "session" not in said
    cli.run(*image, "--session", "1500ms", exit_code=3)
    assert "session 1500ms;" in cli.run("history", "image")[0]


def test_what_nothing_is_remembered_of_is_an_error(cli):
    assert "nothing is remembered of" in cli.run("history", "none", exit_code=1)[1]
    for option in ("--noted", "--store"):  # a controller is asked, not that database
        assert f"{option} goes with --verify" in cli.run("history", option, "1:ab", exit_code=2)[1]


def test_without_a_name_nobody_is_asked_for_all_there_is(cli):
    cli.site.announce(image())
    for words in ([""], ["--who", ""]):
        assert cli.run("history", *words, exit_code=2) == ("", 'headway: "" is no name that anything has\n')


def test_what_people_have_written_is_no_markup(cli):
    ends = ("--start", "22:00", "--for", "1h", "--rate", "2Mbps")
    made = cli.json("reserve", *ENDS, *ends, "--description", "[red]x[/red] [/]")
    assert "[red]x[/red] [/]" in cli.run("history", made["id"])[0]


def test_a_chain_that_is_whole_is_0_and_says_its_last_link(database):
    path, last = database
    assert verify(path) == (0, f"5 changes are as they were written; the last is 5:{last.hash}\n", "")
    assert verify(path, "--noted", f"5:{last.hash}")[0] == 0
    code, said, _ = verify(path, "--json")
    assert (code, json.loads(said)) == (0, {"rows": 5, "number": 5, "hash": last.hash, "broken": None})


def test_a_chain_that_is_broken_is_5_and_says_where(database):
    path, last = database
    assert verify(path, "--noted", f"5:{'0' * 64}")[0] == 5
    with sqlite3.connect(path) as tool:
        tool.execute("DELETE FROM changes WHERE number = 3")
    tool.close()
    code, said, why = verify(path)
    assert (code, said, why) == (5, "", "headway: change 3 is not as it should be: it is missing\n")
    code, said, _ = verify(path, "--json")
    assert (code, json.loads(said)["broken"]) == (5, {"number": 3, "why": "it is missing"})
    assert json.loads(said)["rows"] == 2
    assert last.number == 5


def test_what_cannot_be_verified_is_1_and_what_makes_no_sense_2(tmp_path, database):
    assert verify(tmp_path / "none.db")[0] == 1
    assert verify(database[0], "--noted", "5")[0] == verify(database[0], "--noted", "x:y")[0] == 2
