"""``headway reserve``, against an API of a site without switches."""

import re
from dataclasses import replace

import pytest

from apps.cli import reserve
from apps.cli.identity import NoTokenPrinted
from apps.cli.tests.asked import NIGHT, offered
from controller.database import DatabaseFailed
from headway import Client, NoAnswer, NotAController

RESET = NoAnswer("connection reset")


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Nothing is waited for."""
    monkeypatch.setattr("headway.transport.WAITS_S", (0.0, 0.0))
    monkeypatch.setattr(reserve, "SETTLES_S", 0.0)


def test_a_night_is_reserved_and_said_back_with_its_zone(cli):
    said, _ = cli.run(*NIGHT, "--rate", "600Mbps", "--description", "night run")
    assert re.match(r"[0-9a-f]{16}: committed\n", said)
    for words in ("600 Mbit/s on the wire", "ls1 - ch1 (chile-illinois)", "night run", "urgent"):
        assert words in said
    assert re.search(
        r"from +\w{3} \d{4}-\d\d-\d\d 22:00 -0[34] \(America/Santiago\), \d{4}-\d\d-\d\dT0[12]:00:00Z", said
    )


def test_what_is_only_held_can_be_renewed_committed_and_cancelled(cli):
    held = cli.json(*NIGHT, "--rate", "1Mbps", "--hold-only")
    assert held["state"] == "held"
    assert cli.json("renew", held["id"], "--for", "10min")["hold_until"] > held["hold_until"]
    assert cli.json("commit", held["id"])["state"] == "committed"
    assert cli.json("cancel", held["id"])["state"] == "released"
    assert "released" in cli.run("reservation", held["id"])[0]


def test_a_hold_that_begins_now_is_no_promise_that_could_not_be_carried(cli):
    now = ("--from", "base20", "--to", "arch", "--for", "1h", "--rate", "1Mbps")
    held = cli.json("reserve", *now, "--hold-only")
    assert (held["state"], held["carried"]) == ("held", None)
    assert cli.run("change", held["id"], "--rate", "2Mbps")[1] == ""


def test_a_refusal_has_the_numbers_and_ends_with_3(cli):
    cli.run(*NIGHT, "--rate", "600Mbps")
    said, wrong = cli.run(*NIGHT, "--rate", "500Mbps", exit_code=3)
    assert said == ""
    for words in ("ls1->ch1", "500 Mbit/s", "338.8 Mbit/s", "22:00 -0", "earliest start", "highest rate"):
        assert words in wrong


@pytest.mark.parametrize("number", ["1", "2"])
@pytest.mark.parametrize("end", ["--for", "--until"])
def test_the_command_of_an_offer_takes_it(cli, number, end):
    cli.run(*NIGHT, "--rate", "600Mbps")
    until = ("--for", "10h") if end == "--for" else ("--until", "07:30")
    asked = (*NIGHT[:7], *until, "--rate", "500Mbps", "--max-rtt", "200ms", "--description", "it's ours")
    _, wrong = cli.run(*asked, exit_code=3)
    taken = cli.json(*offered(wrong)[number])
    assert (taken["state"], taken["description"], taken["constraints"]["max_rtt_ms"]) == ("committed", "it's ours", 200)


def test_an_offer_for_now_can_be_taken_later(cli):
    cli.run(*NIGHT[:5], "--for", "1h", "--rate", "600Mbps")
    _, wrong = cli.run(*NIGHT[:5], "--for", "1h", "--rate", "500Mbps", exit_code=3)
    cli.site.clock.now_us += 5_000_000
    assert cli.json(*offered(wrong)["2"])["rate_bps"] == 338_800_000


def test_a_refusal_in_json_is_the_problem_itself(cli):
    cli.run(*NIGHT, "--rate", "600Mbps")
    assert cli.json(*NIGHT, "--rate", "500Mbps", exit_code=3)["free_bps"] == 338_800_000


def test_where_there_are_no_numbers_the_words_are_all(cli):
    _, wrong = cli.run(*NIGHT, "--rate", "1Gbps", "--max-rtt", "20ms", exit_code=3)
    assert wrong.startswith("headway: ")
    assert "180 ms" in wrong


def test_the_same_key_does_not_reserve_twice(cli):
    start = ("--start", "2030-01-01T22:00:00Z", "--rate", "600Mbps", "--key", "night")
    first, again = (cli.json(*NIGHT[:5], "--for", "10h", *start) for _ in range(2))
    assert first["id"] == again["id"]
    assert len(cli.json("reservations")) == 1


def test_a_key_of_what_has_been_given_back_reserves_nothing_and_says_so(cli):
    asked = (*NIGHT, "--rate", "1Mbps", "--key", "night")
    cli.run("cancel", cli.json(*asked)["id"])
    assert "another --key" in cli.run(*asked, exit_code=1)[1]


def test_what_begins_now_is_waited_for_and_a_provider_that_is_late_is_named(cli, monkeypatch):
    monkeypatch.setattr(reserve, "SETTLES_S", 1.0)
    monkeypatch.setattr(cli.site.use_cases, "reservation", settling(cli.site.use_cases.reservation))
    said, _ = cli.run(*NIGHT[:5], "--for", "1h", "--rate", "1Mbps")
    assert said.splitlines()[0].endswith(": provisioning: waits for OSCARS")


def settling(known):
    """Reservations as they are known, with a reason of their provider."""
    return lambda name: replace(known(name), reason="waits for OSCARS")


def test_after_a_lost_answer_it_asks_again_with_the_same_key(cli, monkeypatch):
    sent = Client._once
    keys = []

    def lossy(controller, asked, address):
        answer = sent(controller, asked, address)
        if (asked.method, asked.path) == ("POST", "/v1/reservations"):
            keys.append(asked.headers["Idempotency-Key"])
            if len(keys) == 1:
                raise NoAnswer("connection reset")
        return answer

    monkeypatch.setattr(Client, "_once", lossy)
    cli.run(*NIGHT, "--rate", "600Mbps")
    assert keys == [keys[0]] * 2
    assert len(cli.json("reservations")) == 1


def test_what_could_not_be_saved_is_asked_again(cli, monkeypatch):
    commit, failures = cli.site.use_cases.commit, [DatabaseFailed("sqlite://", "the disk is full")]

    def failing(name):
        if failures:
            raise failures.pop()
        return commit(name)

    monkeypatch.setattr(cli.site.use_cases, "commit", failing)
    assert cli.json(*NIGHT, "--rate", "600Mbps")["state"] == "committed"


def test_no_controller_is_one_line_with_the_key(cli):
    _, wrong = cli.run(*NIGHT, "--rate", "1Gbps", "--key", "k1", exit_code=1, url="http://127.0.0.1:1")
    assert "no controller at http://127.0.0.1:1" in wrong
    assert "--key k1" in wrong


def losing(monkeypatch, *lost, why=RESET):
    """Let no answer to a request with such a method and end of its path come, though it is done."""
    sent = Client._once

    def lossy(controller, asked, address):
        answer = sent(controller, asked, address)
        if any(asked.method == method and asked.path.endswith(end) for method, end in lost):
            raise why
        return answer

    monkeypatch.setattr(Client, "_once", lossy)


def test_if_no_answer_to_the_commit_comes_asking_again_with_the_key_that_is_said_reserves_once(cli, monkeypatch):
    with monkeypatch.context() as patched:
        losing(patched, ("POST", "/commit"))
        _, wrong = cli.run(*NIGHT, "--rate", "600Mbps", exit_code=1)
    (key,) = re.findall(r"with --key (\w+) it is safe to ask for the same again", wrong)
    again = cli.json(*NIGHT, "--rate", "600Mbps", "--key", key)
    assert [one["id"] for one in cli.json("reservations")] == [again["id"]]


@pytest.mark.parametrize("why", [RESET, NotAController("of a proxy"), NoTokenPrinted("not now")])
def test_what_is_promised_is_said_though_nobody_answers_while_it_is_waited_for(cli, monkeypatch, why):
    monkeypatch.setattr(reserve, "SETTLES_S", 60.0)
    (name,) = (cli.json(*NIGHT[:5], "--for", "1h", "--rate", "1Mbps", "--key", "now", "--hold-only")["id"],)
    losing(monkeypatch, ("GET", name), why=why)
    said = cli.json(*NIGHT[:5], "--for", "1h", "--rate", "1Mbps", "--key", "now")
    assert (said["id"], said["state"]) == (name, "provisioning")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--rate", "10g"), "--rate: "),
        (("--rate", "1Gbps", "--for", "ten"), "--for: "),
        (("--rate", "1Gbps", "--start", "25:00"), "--start: "),
        (("--rate", "1Gbps", "--until", "23:00"), "either --for"),
        (("--rate", "1Gbps", "--max-rtt", "far"), "--max-rtt: "),
        (("--rate", "1Gbps", "--key", "night 1"), "--key: "),
        (("--rate", "1Gbps", "--key", "noche-ñ"), "--key: "),
        (("--rate", "1Gbps", "--zone", "America/Serena"), "--zone: "),
        (("--rate", "1Gbps", "--start", "2020-01-01 22:00"), "in the past"),
    ],
)
def test_what_makes_no_sense_ends_with_2_and_names_the_option(cli, change, said):
    _, wrong = cli.run(*NIGHT, *change, exit_code=2)
    assert said in wrong


@pytest.mark.parametrize("when", ["9999-12-31 23:59", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"])
def test_a_time_beyond_all_years_makes_no_sense(cli, when):
    ends = ("--from", "la-serena", "--to", "champaign")
    _, wrong = cli.run("reserve", *ends, "--rate", "1Mbps", "--until", when, exit_code=2)
    assert f'headway: --until: "{when}" is not in the years 1 to 9999 of UTC' in wrong


def test_an_unknown_place_is_an_error_that_names_those_there_are(cli):
    _, wrong = cli.run("reserve", "--from", "la-serena", "--to", "mars", "--for", "1h", "--rate", "1Gbps", exit_code=1)
    assert "champaign" in wrong


def test_a_hold_that_is_committed_or_changed_and_is_not_carried_ends_with_4_and_says_why(cli):
    held = cli.json(*NIGHT[:5], "--for", "1h", "--rate", "1Mbps", "--hold-only")["id"]
    cli.site.switch_reports.switch_down(1)
    for asked in (("commit", held), ("change", held, "--rate", "2Mbps")):
        said, wrong = cli.run(*asked, exit_code=4)
        assert held in said
        assert f"headway: {held} is promised, but not carried now: ls1: is not connected" in wrong


def test_what_begins_now_and_is_not_carried_ends_with_4_and_says_why(cli):
    cli.site.switch_reports.switch_down(1)
    said, wrong = cli.run(*NIGHT[:5], "--for", "1h", "--rate", "1Mbps", exit_code=4)
    assert "not carried" in said
    assert wrong.endswith("is promised, but not carried now: ls1: is not connected\n")
    later = cli.json(*NIGHT[:5], "--for", "1h", "--rate", "1Mbps", "--start", "2030-01-01T22:00:00Z")
    assert (later["carried"], later["reasons"]) == (None, [])
