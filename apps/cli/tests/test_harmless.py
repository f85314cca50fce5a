"""What strangers say, as agents, providers and switches, moves no cursor of an operator's terminal."""

from dataclasses import replace

import pytest

from apps.cli import base, printed
from apps.cli.tests.asked import NIGHT
from controller.state.reported import PlaceAlarm
from headway.client import Client
from headway.stream import ServerSentEvent

EVIL = "no \x1b]0;owned\x07\x1b[2J\x1b[1;1H\nAll is as planned."
SHOWN = "no \\x1b]0;owned\\x07\\x1b[2J\\x1b[1;1H"


def is_harmless(text):
    """Whether a terminal is told nothing by a text but its letters and lines."""
    return all(sign.isprintable() or sign in "\n\t" for sign in text)


def test_an_event_is_one_line_that_a_terminal_is_not_moved_by_and_json_has_it_as_it_was(cli, monkeypatch):
    said = {"at": "2026-11-30T16:00:00Z", "host": "base20", "why": EVIL}
    monkeypatch.setattr(
        Client, "follow_events", lambda _controller: iter([ServerSentEvent("2", "host.declined", said)])
    )
    (line,) = cli.run("events")[0].splitlines()
    assert line.endswith(f"host.declined host=base20 why={SHOWN}\\nAll is as planned.")
    assert cli.json("events")["why"] == EVIL


def test_what_is_in_the_way_of_a_promise_is_harmless_in_each_command_that_shows_it(cli):
    name = cli.json(*NIGHT, "--rate", "1Mbps")["id"]
    with cli.site.state.changed:
        known = cli.site.state.wished.ledger.reservations
        known[name] = replace(known[name], reason=EVIL, description="")
        alarms = {"ls1": (PlaceAlarm(EVIL, is_silent=True),)}
        cli.site.state.put(reported=replace(cli.site.state.reported, alarms=alarms))
    for command, exit_code in (
        (("top", "--once"), 4),
        (("reservation", name), 0),
        (("reservations",), 0),
    ):
        out, err = cli.run(*command, exit_code=exit_code)
        assert is_harmless(out + err), command
        assert "\nAll is" not in out
        assert "\\x1b" in out
    needs = cli.json("top", "--once", exit_code=4)["needs"]["needs"]
    assert f"ls1: {EVIL}" in {one["what"] for one in needs}


def test_why_a_command_has_failed_and_why_something_is_not_carried_is_harmless(cli, capsys):
    out, err = cli.run("reservation", EVIL.partition("\n")[0], exit_code=1)
    assert is_harmless(out + err)
    with pytest.raises(base.typer.Exit):
        base.end_carried({"id": "image", "carried": False, "reasons": [EVIL]})
    assert capsys.readouterr().err.startswith(f"headway: image is promised, but not carried now: {SHOWN}")


@pytest.mark.parametrize("columns", [None, "30", "200"], ids=["into a pipe", "narrow", "wide"])
def test_tables_and_texts_are_harmless_wherever_they_go(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns) if columns else monkeypatch.delenv("COLUMNS", raising=False)
    table = printed.new_table("place", "found", title="last drift")
    table.add_row("ls1", EVIL)
    printed.show(table, EVIL)
    out = capsys.readouterr().out
    assert is_harmless(out)
    assert out.replace("\n", "").count("x1b[2J") >= 2
