"""``headway maintenance``: plan, look first, list, take back."""

import re

import pytest

from headway import Client, NoAnswer

NIGHT = (
    "reserve",
    "--from",
    "la-serena",
    "--to",
    "champaign",
    "--start",
    "tomorrow 22:00",
    "--for",
    "10h",
    "--rate",
    "1Mbps",
)
WORK = ("maintenance", "chile-illinois", "--start", "tomorrow 23:00", "--for", "2h")


def test_it_is_planned_listed_and_taken_back(cli):
    assert "no maintenance is planned" in cli.run("maintenance")[0]
    said = cli.run(*WORK, "--description", "splicing")[0]
    assert "it is planned" in said
    (one,) = cli.json("maintenance")
    assert (one["circuit"], one["description"]) == ("chile-illinois", "splicing")
    assert one["id"] in said
    assert "splicing" in cli.run("maintenance", "--cancel", one["id"])[0]
    assert cli.json("maintenance") == []
    assert one["id"] in cli.run("maintenance", "--cancel", one["id"])[0]  # an answer may have been lost
    assert "there is no maintenance" in cli.run("maintenance", "--cancel", "none", exit_code=1)[1]


def test_what_it_breaks_is_said_first_and_it_is_planned_by_force_alone(cli, monkeypatch):
    monkeypatch.setattr("apps.cli.reserve.SETTLES_S", 0.0)
    held = cli.json(*NIGHT)["id"]
    looked = cli.run(*WORK, "--dry-run")[0]
    assert "nothing is planned: you only looked" in looked
    assert f"interrupts {held}: " in looked
    wrong = cli.run(*WORK, exit_code=3)[1]
    assert wrong.startswith("headway: it would break 1 reservations: say force")
    assert f"interrupts {held}: " in wrong
    lasts_longer = cli.run("maintenance", "chile-illinois", "--start", "tomorrow 23:00", "--for", "12h", "--dry-run")[0]
    assert f"breaks {held}: " in lasts_longer
    assert cli.json("maintenance") == []
    assert cli.json(*WORK, "--force")["planned"]


def test_one_that_shares_some_time_with_another_is_planned_and_the_other_is_named(cli):
    cli.run(*WORK, "--description", "splicing")
    said = cli.run(*WORK[:3], "tomorrow 23:30", *WORK[4:])[0]
    assert "it is planned" in said
    assert "splicing; nothing goes by chile-illinois until both are over" in said
    assert len(cli.json("maintenance")) == 2


def test_what_makes_no_sense_is_a_usage_error(cli):
    assert "say how long" in cli.run(*WORK[:4], exit_code=2)[1]
    assert "name a circuit, or --cancel" in cli.run("maintenance", "x", "--cancel", "y", exit_code=2)[1]


@pytest.mark.parametrize(
    "said",
    [
        *(("--start", "22:00"), ("--for", "2h"), ("--until", "23:00"), ("--description", "splicing")),
        *(("--dry-run",), ("--force",), ("--start", "22:00", "--for", "2h", "--force")),
    ],
)
def test_what_goes_with_a_circuit_alone_is_a_usage_error_without_one_and_nothing_is_done(cli, said):
    one = cli.json(*WORK)["maintenance"]
    assert f"{said[0]} goes with a circuit" in cli.run("maintenance", *said, exit_code=2)[1]
    assert f"{said[0]} goes with a circuit" in cli.run("maintenance", "--cancel", one["id"], *said, exit_code=2)[1]
    assert cli.json("maintenance") == [one]


def losing(monkeypatch, method, times):
    """Let so many answers to a request with a method not come, though it is done."""
    monkeypatch.setattr("headway.transport.WAITS_S", (0.0, 0.0))
    sent, lost = Client._once, []

    def lossy(controller, asked, address):
        answer = sent(controller, asked, address)
        if asked.method == method and len(lost) < times:
            lost.append(asked)
            raise NoAnswer("connection reset")
        return answer

    monkeypatch.setattr(Client, "_once", lossy)


def test_after_a_lost_answer_it_is_planned_and_taken_back_once(cli, monkeypatch):
    losing(monkeypatch, "POST", 1)
    made = cli.json(*WORK)["maintenance"]
    assert [one["id"] for one in cli.json("maintenance")] == [made["id"]]
    losing(monkeypatch, "DELETE", 1)
    assert made["id"] in cli.run("maintenance", "--cancel", made["id"])[0]


def test_if_no_answer_comes_the_key_is_said_and_with_it_nothing_is_planned_twice(cli, monkeypatch):
    work = (*WORK[:3], "2030-01-01T22:00:00Z", *WORK[4:])
    with monkeypatch.context() as patched:
        losing(patched, "POST", 9)
        _, wrong = cli.run(*work, exit_code=1)
    (key,) = re.findall(r"with --key (\w+) it is safe to ask for the same again", wrong)
    again = cli.json(*work, "--key", key)
    assert again["planned"]
    (one,) = cli.json("maintenance")
    assert one["id"] == again["maintenance"]["id"]
    cli.run("maintenance", "--cancel", one["id"])
    assert "another --key" in cli.run(*work, "--key", key, exit_code=1)[1]
