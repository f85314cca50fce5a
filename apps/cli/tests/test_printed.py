"""Tables for wide and narrow terminals, and for programs."""

from itertools import pairwise

import pytest
from rich.console import Console

from apps.cli import client, printed, top_frame
from apps.cli.tests.asked import NIGHT
from apps.cli.tests.running import CliRunner


def said(cli, *arguments, columns=None):
    """What a command prints, on a terminal of so many columns or into a pipe."""
    environment = {"HEADWAY_URL": cli.url, "TZ": "UTC", "COLUMNS": columns and str(columns)}
    done = CliRunner().invoke(client.app, arguments, env=environment)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "command", ["plan", "hosts", "circuits", "switches", "drift", "bursts", "reservations", "receivers"]
)
def test_a_table_is_no_wider_than_80_columns_and_nothing_of_it_is_lost(cli, command):
    cli.run(*NIGHT, "--rate", "600Mbps", "--description", "all of the images of one night")
    narrow = said(cli, command, columns=80)
    assert max(map(len, narrow.splitlines())) <= 80
    piped = ["#", *said(cli, command).splitlines()]
    rows = [line for before, line in pairwise(piped) if "#" not in {before[:1], line[:1]}]  # without the names
    cells = {cell for line in rows for cell in line.split("\t")}
    assert {cell for cell in cells if cell and " ".join(cell.split()) not in " ".join(narrow.split())} == set()
    assert "…" not in narrow


def test_what_is_too_wide_is_a_line_for_each_value(cli):
    name = cli.json(*NIGHT, "--rate", "600Mbps")["id"]
    lines = said(cli, "reservations", columns=80).splitlines()
    assert {f"id:    {name}", "state: committed", "class: urgent"} <= set(lines)
    assert "│" in said(cli, "reservations", columns=200)
    assert "│" in said(cli, "switches", columns=80)


def test_a_program_gets_tabs_and_the_names_of_the_columns(cli):
    name = cli.json(*NIGHT, "--rate", "600Mbps")["id"]
    head, line = (one.split("\t") for one in said(cli, "reservations").splitlines())
    assert dict(zip(head, line, strict=True))["id"] == name
    assert dict(zip(head, line, strict=True))["rate"] == "600 Mbit/s"
    assert "# if chile-illinois dies" in said(cli, "circuits") or "chile-illinois\t" in said(cli, "circuits")


def test_a_refusal_into_a_pipe_has_its_offers_with_their_numbers_and_circuits(cli):
    said(cli, *NIGHT, "--rate", "600Mbps")  # in the same time zone: from 22:00 to 01:00 UTC it would be another night
    lines = [line.split("\t") for line in said(cli, *NIGHT, "--rate", "500Mbps").splitlines()]
    offers = lines[lines.index(["no", "offer", "class", "rate", "start", "end", "circuit"]) + 1 :][:2]
    assert [(offer[0], offer[1], offer[-1]) for offer in offers] == [
        ("1", "earliest start", "chile-illinois"),
        ("2", "highest rate", "chile-illinois"),
    ]


@pytest.mark.parametrize("columns", [None, "200", "20"])
def test_an_address_of_ipv6_stays_as_it_is(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns) if columns else monkeypatch.delenv("COLUMNS", raising=False)
    table = printed.new_table("from", "who")
    table.add_row("fd00:ab:cd:b:1::1", "token:ana")
    printed.show(table, "2001:db8:100:a::7 has asked")
    said = capsys.readouterr().out
    assert "fd00:ab:cd:b:1::1" in said
    assert "2001:db8:100:a::7" in "".join(said.split())


def test_an_address_of_ipv6_stays_as_it_is_on_the_whole_terminal_too(cli):
    seen = cli.json("top", "--once")
    seen["needs"]["headline"] = "switch fd00:ab:cd:b:1::1"
    console = Console(width=80, record=True)
    console.print(top_frame.drawn(seen, "", 80))
    assert "switch fd00:ab:cd:b:1::1" in console.export_text()
