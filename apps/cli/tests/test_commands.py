"""The other commands, against an API of a site without switches."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from apps.cli import announce, availability, client, completion, options
from apps.cli.tests.asked import NIGHT, offered
from controller.audit.drift import Compared, Deviation, DriftKind, Outcome, Shape
from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.tests.fakes import image
from headway import Client, ServerSentEvent
from mininet_tests.testing.eventually import eventually
from topology.protocol import FlowClass
from topology.telemetry import EntryTelemetry, StoreBrake, StoreTelemetry, Telemetry

HEADWAY = str(Path(sys.executable).parent / "headway")


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Nothing is waited for."""
    monkeypatch.setattr("headway.transport.WAITS_S", (0.0,))


def test_the_classes_are_those_of_the_plan():
    assert [one.value for one in options.AnyClass] == [one.value for one in FlowClass]


def test_every_page_of_the_reservations_is_fetched(cli):
    now_us = cli.site.clock()
    request = Request("base20", "arch", FlowClass.URGENT, 64_000, now_us, now_us + 60_000_000)
    held = [cli.site.use_cases.hold(lambda _: request, partial(Created, f"r{number}")) for number in range(1001)]
    held[-1].saved.result(30)  # what is not saved yet is not told
    assert len(cli.json("reservations")) == 1001


def test_reservations_are_found_by_state_class_ends_and_time(cli):
    one = cli.json(*NIGHT, "--rate", "1Mbps", "--class", "background")["id"]
    assert [r["id"] for r in cli.json("reservations", "--state", "committed", "--class", "background")] == [one]
    assert cli.json("reservations", "--state", "held", "--state", "active") == []
    assert cli.json("reservations", "--from", "champaign") == []
    assert cli.json("reservations", "--before", "21:59") == []
    assert one in cli.run("reservations", "--after", "22:01")[0]
    assert "no reservations" in cli.run("reservations", "--to", "la-serena")[0]


@pytest.mark.parametrize(("after", "before"), [("22:00", "06:00"), ("06:00", "22:00")])
def test_a_time_that_reservations_begin_before_is_the_next_after_the_other(cli, monkeypatch, after, before):
    asked = []

    def listed(_, **which):
        asked.append((which["after"], which["before"]))
        return {"reservations": [], "next": None, "lacks": None}

    monkeypatch.setattr("headway.client.Client.list_reservations", listed)
    cli.run("reservations", "--after", after, "--before", before)
    assert asked == [tuple(sorted(asked[0]))]


def test_announcements_are_a_table_of_eighty_columns_and_one_is_told_in_full(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    image = cli.json("announce", "--from", "base20", "--to", "arch", "--bytes", "2.7GB", "--id", "image-0042")
    seen = EntryTelemetry("image-0042/base20", 1, 1, 900_000_000, 9, 0, 180_000, counted_since_ns=1)
    cli.site.attach("base20")
    cli.site.reports.host_telemetry("base20", Telemetry(2, 250, (seen,)))
    table = cli.run("announcements")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert re.search(r"image-0042 +│ under-way +│ 33% of 2.7 GB +│", table)
    told = cli.run("announcements", "image-0042")[0]
    assert "image-0042: under-way" in told
    assert "900,000,000 bytes" in told
    assert cli.json("announcements", "--state", "under-way")[0]["promised"] == image["promised"]
    assert "delivered at least 900,000,000 of 2,700,000,000 bytes by now" in cli.run("release", "image-0042")[0]
    assert "no announcements" in cli.run("announcements", "--state", "late")[0]


def test_words_of_others_do_not_colour_the_table(cli):
    cli.run(*NIGHT, "--rate", "1Mbps", "--description", "[red]night[/red]")
    assert "[red]night[/red]" in cli.run("reservations")[0]


def test_what_is_cancelled_cannot_be_committed(cli):
    one = cli.json(*NIGHT, "--rate", "1Mbps", "--hold-only")
    cli.run("cancel", one["id"])
    assert "released" in cli.run("commit", one["id"], exit_code=1)[1]


def test_free_rates_are_bars_and_answers_are_words(cli):
    ends = ("--from", "la-serena", "--to", "champaign")
    cli.run("reserve", *ends, "--start", "2030-01-15 22:00", "--for", "10h", "--rate", "600Mbps")
    ends = ("availability", *ends, "--start", "2030-01-15 20:00", "--end", "23:00")
    said, _ = cli.run(*ends, "--rate", "500Mbps", "--for", "1h", "--bytes", "1GB")
    for words in (
        "ls1 - ch1 (chile-illinois)",
        "938.8 Mbit/s",
        "━━━",
        "over the whole time: 338.8",
        "first from",
        "moved by",
    ):
        assert words in said
    assert "cannot be moved" in cli.run(*ends, "--bytes", "9TB")[0]
    assert "first from Wed 2030-01-16 08:00 -03" in cli.run(*ends, "--rate", "500Mbps", "--for", "3h")[0]
    assert "5Gbps for 1h: never" in cli.run(*ends, "--rate", "5Gbps", "--for", "1h")[0]
    assert "go together" in cli.run(*ends, "--rate", "500Mbps", exit_code=2)[1]


def test_every_page_of_what_is_free_is_fetched(cli, monkeypatch):
    ends = ("--from", "la-serena", "--to", "champaign")
    cli.run("reserve", *ends, "--start", "2030-01-15 22:00", "--for", "10h", "--rate", "600Mbps")
    ends = ("availability", *ends, "--start", "2030-01-15 20:00", "--end", "2030-01-16 12:00")
    whole = cli.json(*ends)
    asked = Client.get_availability
    monkeypatch.setattr(Client, "get_availability", lambda self, **query: asked(self, limit=1, **query))
    assert (cli.json(*ends), len(whole["paths"][0]["rates"])) == (whole, 3)


def test_many_pieces_become_few_with_the_least_of_each():
    pieces = [{"from": str(n), "until": str(n + 1), "rate_bps": n} for n in range(100)]
    few = availability.coarse(pieces)
    assert len(few) <= availability.ROWS
    assert (few[0]["from"], few[-1]["until"], few[1]["rate_bps"]) == ("0", "100", int(few[1]["from"]))
    assert availability.coarse([]) == []


def test_a_file_gives_size_and_name_and_the_topology_the_ends(cli, tmp_path, monkeypatch):
    image = tmp_path / "image #42.fits"
    image.write_bytes(b"x" * 1000)
    monkeypatch.setattr(announce.socket, "gethostname", lambda: "base20.example.org")
    promised = cli.json("announce", str(image), "--deadline", "30s")
    said = {name: promised[name] for name in ("id", "bytes", "from", "to")}
    assert said == {"id": "image-42.fits", "bytes": 1000, "from": ["base20"], "to": "arch"}
    assert cli.json("release", "image-42.fits")["id"] == "image-42.fits"


def test_what_cannot_be_found_out_is_asked_with_the_choices(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(announce.socket, "gethostname", lambda: "laptop")
    assert "base20, base21" in cli.run("announce", "--bytes", "1GB", exit_code=2)[1]
    assert "base20, base21" in cli.run("announce", "--bytes", "1GB", "--from", "arch", exit_code=2)[1]
    assert "--bytes" in cli.run("announce", str(tmp_path / "none"), exit_code=2)[1]
    assert "--bytes" in cli.run("announce", exit_code=2)[1]


def test_an_announcement_that_is_not_carried_is_promised_and_ends_with_4(cli):
    cli.site.reports.host_down("base21")
    ends = ("--to", "arch", "--bytes", "1GB", "--deadline", "60s")
    promised, wrong = cli.run("announce", "--from", "base20,base21", *ends, "--id", "image", exit_code=4)
    assert promised.startswith("image: promised in ")
    assert wrong == "headway: image is promised, but not carried now: base21: its agent is not connected\n"
    assert cli.json("announce", "--from", "base22", *ends)["carried"] is True


def test_a_refused_announcement_can_have_its_later_deadline(cli):
    ends = ("announce", "--from", "base20,base21", "--to", "arch", "--bytes", "2.7GB", "--id", "image")
    _, wrong = cli.run(*ends, "--deadline", "5s", exit_code=3)
    assert "announce fewer bytes" in wrong
    assert cli.json(*offered(wrong)["1"])["id"] == "image"


def test_circuits_are_shown(cli):
    assert "chile-illinois" in cli.run("circuits")[0]
    (one,) = cli.json("circuits")
    assert (one["state"], one["in_use"], one["if_it_dies"]) == ("up", True, None)


def test_switches_are_shown(cli):
    assert "0000000000000001" in cli.run("switches")[0]
    assert [row["connected"] for row in cli.json("switches")] == [True, True]


def test_drift_is_shown_before_and_after_the_first_audits(cli):
    assert "not yet" in cli.run("drift")[0]
    site = cli.site
    site.attach_all()
    site.converge()
    dark = Deviation(DriftKind.FLOW, Shape.SHADOWED, "ours", "theirs", Outcome.LEFT, "delete it")
    lost = Deviation(DriftKind.METER, Shape.MISSING, "meter 1000", outcome=Outcome.REPAIRED)
    site.switches.found["ls1"] = [Compared({DriftKind.FLOW: 21}, (dark, lost))]
    site.clock.now_us += 10_000_000
    for _ in range(3):
        site.audits.next()
    shown = cli.run("drift")[0]
    for words in ("21 flow", "1 shadowed", "meter 1000", "delete it"):
        assert words in shown
    assert cli.json("drift")["places"][0]["drifted"]["deviations"][1]["outcome"] == "repaired"


def test_drift_says_how_much_more_there_is_than_is_shown(cli):
    site = cli.site
    site.attach_all()
    site.converge()
    lost = [Deviation(DriftKind.FLOW, Shape.MISSING, f"rule {n}", outcome=Outcome.REPAIRED) for n in range(205)]
    site.switches.found["ls1"] = [Compared({}, tuple(lost))]
    site.clock.now_us += 10_000_000
    for _ in range(3):
        site.audits.next()
    assert "200 missing, 5 more" in cli.run("drift")[0]


def test_events_are_followed_and_ctrl_c_is_a_good_end(cli):
    environment = os.environ | {"HEADWAY_URL": cli.url, "PYTHONUNBUFFERED": "1"}
    # a shell has its background jobs ignore SIGINT, and so would the command
    command = ["env", "--default-signal=INT", HEADWAY, "events", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as following:
        done = threading.Event()
        publisher = threading.Thread(target=publish_until, args=(cli.site.state.events, done))
        publisher.start()
        told = json.loads(following.stdout.readline())
        done.set()
        publisher.join()
        following.send_signal(signal.SIGINT)
    assert (told["event"], told["reservation"], following.returncode) == ("reservation.held", "r1", 0)
    assert int(told["id"]) > 0


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        ((), {"reservation.held", "fault.began", "lost"}),
        (("--steps",), {"reservation.held", "fault.began", "transition.step", "lost"}),
        (("fault",), {"fault.began", "lost"}),
        (("fault", "--steps"), {"fault.began", "transition.step", "lost"}),
        (("*.held", "transition"), {"reservation.held", "transition.step", "lost"}),
        (("reservation.hel",), {"lost"}),
        (("--about", "ls1"), {"fault.began", "lost"}),
        (("reservation", "--about", "ls1"), {"lost"}),
    ],
)
def test_events_are_filtered_and_steps_are_told_only_if_asked_for(cli, monkeypatch, filters, told):
    happened = {
        "reservation.held": {"reservation": "r1"},
        "fault.began": {"place": "ls1"},
        "transition.step": {"place": "hosts"},
        "lost": {},
    }
    stream = (ServerSentEvent(str(n), name, data) for n, (name, data) in enumerate(happened.items()))
    monkeypatch.setattr(Client, "follow_events", lambda _controller: stream)
    lines = cli.run("events", "--json", *filters)[0].splitlines()
    assert {json.loads(line)["event"] for line in lines} == told


def test_a_kind_of_event_that_there_is_not_is_followed_all_the_same_and_said(cli, monkeypatch):
    monkeypatch.setattr(Client, "follow_events", lambda _controller: iter(()))
    assert cli.run("events", "reservation", "fault.*", "webhook.lost", "drift.alarm", "transition") == ("", "")
    said = cli.run("events", "reservations", "fault")[1]
    assert said == 'headway: there is no event "reservations" here, try "reservation"; docs/webhooks.md has them all\n'
    assert cli.run("events", "nonsense")[1].startswith('headway: there is no event "nonsense" here; docs')


def test_no_names_are_listed_where_not_all_are_known(cli):
    cli.run(*NIGHT, "--rate", "1Mbps")
    for command in (("reservation", "x"), ("release", "x"), ("announcements", "x")):
        assert "there are" not in cli.run(*command, exit_code=1)[1]


def test_an_offer_says_which_circuit_it_crosses(cli):
    cli.run(*NIGHT, "--rate", "600Mbps")
    refusal = json.loads(cli.run(*NIGHT, "--rate", "500Mbps", "--json", exit_code=3)[0])
    assert [offer["circuits"] for offer in refusal["offers"]] == [["chile-illinois"]] * 2
    words = ("announce", "--from", "base20", "--to", "arch", "--bytes", "1TB", "--deadline", "30s")
    refusal = json.loads(cli.run(*words, "--json", exit_code=3)[0])
    assert {tuple(offer["circuits"]) for offer in refusal["offers"]} == {("chile-illinois",)}


def publish_until(published, done):
    """Let something happen again and again: nobody knows when a listener is there."""
    while not done.wait(0.05):
        published.publish("reservation.held", reservation="r1")


def test_no_controller_ends_events_with_1(cli):
    assert "no controller" in cli.run("events", exit_code=1, url="http://127.0.0.1:1")[1]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense", "http://a:b", "ftp://x"])
def test_a_wrong_address_is_one_line(cli, url):
    _, wrong = cli.run("plan", exit_code=1 if url == "http://127.0.0.1:1" else 2, url=url)
    assert len(wrong.splitlines()) == 1


@pytest.mark.parametrize("command", [one.callback.__name__ for one in client.app.registered_commands])
def test_the_help_of_a_command_has_an_example_and_it_prints_json(cli, command):
    said, _ = cli.run(command, "--help")
    assert f"\n headway {command}" in said
    assert "--json" in said or command == "export"  # which prints nothing else


@pytest.mark.parametrize("kind", ["--include", "--exclude"])
def test_an_offer_keeps_to_the_paths_that_were_asked(cli, kind):
    cli.run(*NIGHT, "--rate", "600Mbps")
    part = "chile-illinois" if kind == "--include" else "base23"
    _, wrong = cli.run(*NIGHT, "--rate", "500Mbps", kind, part, exit_code=3)
    assert cli.json(*offered(wrong)["2"])["constraints"][kind.removeprefix("--")] == [part]


def test_the_tab_key_knows_reservations_ends_and_circuits(cli, monkeypatch):
    monkeypatch.setenv("HEADWAY_URL", cli.url)
    monkeypatch.setattr(completion, "TIMEOUT_S", 30.0)  # a busy machine is late
    one = cli.json(*NIGHT, "--rate", "1Mbps")["id"]
    assert [name for name, _ in completion.reservations(one[:3])] == [one]
    assert [name for name, _ in completion.end_names("ch")] == ["champaign"]
    assert completion.hosts("base2")[0] == ("base20", "host at la-serena")
    assert completion.path_parts("") == ["chile-illinois", "ls1", "ch1"]
    cli.run("cancel", one)
    assert completion.reservations("") == []


def test_the_tab_key_knows_what_is_under_way_however_much_has_ended(cli, monkeypatch):
    monkeypatch.setenv("HEADWAY_URL", cli.url)
    monkeypatch.setattr(completion, "TIMEOUT_S", 30.0)
    monkeypatch.setattr(completion, "MOST", 1)
    cli.site.announce(image("earlier"))
    cli.run("release", "earlier")
    cli.site.announce(image("image"))
    assert completion.live_announcements("") == ["image"]
    assert completion.announcements("") == ["image", "earlier"]
    assert completion.announcements("e") == ["earlier"]


def test_the_tab_key_is_silent_without_a_controller(monkeypatch):
    monkeypatch.setenv("HEADWAY_URL", "http://127.0.0.1:1")
    began_s = time.monotonic()
    assert (completion.reservations(""), completion.end_names(""), completion.announcements("")) == ([], [], [])
    assert time.monotonic() - began_s < 3 * completion.TIMEOUT_S


def test_the_shell_is_answered(cli):
    asked = {"_HEADWAY_COMPLETE": "complete_bash", "COMP_WORDS": "headway reserve --from la", "COMP_CWORD": "3"}
    environment = os.environ | {"HEADWAY_URL": cli.url} | asked

    def answer():
        return subprocess.run([HEADWAY], env=environment, capture_output=True, text=True, check=False).stdout

    eventually(
        lambda: "la-serena" in answer(), within_s=20, what="the names"
    )  # half a second each: a busy machine is late


def test_a_promise_says_when_it_is_on_the_receivers_disk_and_a_refusal_names_it(cli):
    one = StoreTelemetry("data", 0, False, 0, 0, StoreBrake.DISK, rate_bps=280_000_000)
    cli.site.reports.host_telemetry("arch", Telemetry(0, 1_000, stores=(one,)))
    asked = ("announce", "--from", "base20", "--to", "arch", "--bytes", "100MB")
    said, _ = cli.run(*asked)
    assert re.search(r"promised in [\d.]+ s, by .*; on the store data of arch in [\d.]+ s", said)
    _, refused = cli.run(*asked, "--deadline", "5s", "--deadline-for", "stored", exit_code=3)
    assert "store:arch:data has" in refused
    assert "--deadline-for stored" in refused, "what is offered is asked for so, too"
    cli.run(*asked, "--deadline", "30s", "--deadline-for", "stored")
    _, wrong = cli.run(*asked, "--deadline-for", "soon", exit_code=2)
    assert 'headway: --deadline-for: "soon" is neither across nor stored' in wrong


def test_a_coded_tail_is_asked_for_and_what_is_offered_has_it_too(cli):
    asked = ("announce", "--from", "base20", "--to", "arch", "--bytes", "2.7GB")
    assert cli.json(*asked)["tail"] == "plain"
    assert cli.json(*asked, "--tail", "coded")["tail"] == "coded"
    assert "--tail coded" in cli.run(*asked, "--tail", "coded", "--deadline", "1s", exit_code=3)[1]
    assert '--tail: "cut" is neither plain nor coded' in cli.run(*asked, "--tail", "cut", exit_code=2)[1]


def test_lanes_need_a_host_with_several_interfaces(cli):
    asked = ("announce", "--from", "base20", "--to", "arch", "--bytes", "2.7GB")
    assert "base20 has one interface" in cli.run(*asked, "--lanes", "2", exit_code=2)[1]
    assert cli.json(*asked, "--lanes", "1")["lanes"] == []


def test_an_announcement_without_an_answer_can_be_made_again_with_the_key_that_is_said(cli):
    ends = ("announce", "--from", "base20", "--to", "arch", "--bytes", "2.7GB")
    _, wrong = cli.run(*ends, exit_code=1, url="http://127.0.0.1:1")
    assert re.search(r"with --key \w+ it is safe to ask for the same again", wrong)
