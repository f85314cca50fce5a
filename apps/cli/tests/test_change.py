"""``headway change``, against an API of a site without switches."""

from apps.cli.tests.asked import NIGHT, offered
from headway import Client


def test_a_change_keeps_what_is_not_named(cli):
    one = cli.json(*NIGHT, "--rate", "600Mbps", "--description", "night")
    changed = cli.json("change", one["id"], "--rate", "700Mbps", "--for", "9h")
    assert (changed["rate_bps"], changed["start"], changed["description"]) == (700_000_000, one["start"], "night")
    assert changed["end"] < one["end"]


def test_a_change_of_the_path_keeps_what_is_not_named_of_it(cli):
    one = cli.json(*NIGHT, "--rate", "100Mbps", "--exclude", "arch", "--max-rtt", "300ms")
    bound = cli.json("change", one["id"], "--max-rtt", "250ms")["constraints"]
    assert bound == {"include": [], "exclude": ["arch"], "max_rtt_ms": 250, "backup": False}
    led = cli.json("change", one["id"], "--include", "chile-illinois")["constraints"]
    assert led == bound | {"include": ["chile-illinois"]}
    assert cli.json("change", one["id"], "--rate", "90Mbps")["constraints"] == led
    free = cli.json("change", one["id"], "--any-path", "--exclude", "base20")["constraints"]
    assert free == {"include": [], "exclude": ["base20"], "max_rtt_ms": None, "backup": False}


def test_offers_of_a_refused_change_of_the_path_are_for_that_path(cli):
    one = cli.json(*NIGHT, "--rate", "300Mbps", "--exclude", "arch")
    cli.run(*NIGHT, "--rate", "300Mbps")
    asked = "change", one["id"], "--rate", "900Mbps", "--any-path", "--include", "chile-illinois"
    _, wrong = cli.run(*asked, exit_code=3)
    taken = cli.json(*offered(wrong)["2"])
    assert taken["rate_bps"] == 638_800_000
    assert taken["constraints"] == {"include": ["chile-illinois"], "exclude": [], "max_rtt_ms": None, "backup": False}


def test_the_only_circuit_cannot_be_left(cli):
    one = cli.json(*NIGHT, "--rate", "300Mbps")
    _, wrong = cli.run("change", one["id"], "--exclude", "chile-illinois", exit_code=3)
    assert "no path" in wrong, wrong
    assert cli.json("reservation", one["id"]) == one


def test_a_refused_change_leaves_it_and_its_offers_can_be_taken(cli):
    one = cli.json(*NIGHT, "--rate", "300Mbps")
    cli.run(*NIGHT, "--rate", "300Mbps")
    _, wrong = cli.run("change", one["id"], "--rate", "900Mbps", exit_code=3)
    assert cli.json("reservation", one["id"]) == one
    assert cli.json(*offered(wrong)["2"])["rate_bps"] == 638_800_000
    assert cli.json(*offered(wrong)["1"])["start"] == one["end"]


def test_a_change_beyond_all_years_makes_no_sense(cli):
    one = cli.json(*NIGHT, "--rate", "300Mbps")
    assert (
        "--for: it would end after the year 9999" in cli.run("change", one["id"], "--for", "9999999d", exit_code=2)[1]
    )


def test_a_change_of_what_somebody_else_has_changed_fails(cli, monkeypatch):
    one = cli.json(*NIGHT, "--rate", "300Mbps")
    monkeypatch.setattr(Client, "change_reservation", outpaced(Client.change_reservation))
    _, wrong = cli.run("change", one["id"], "--rate", "400Mbps", exit_code=1)
    assert "version" in wrong


def outpaced(change):
    """A change, with somebody else's just before."""

    def asked(controller, name, body, *, if_match):
        change(controller, name, {"description": "x"}, if_match="*")
        return change(controller, name, body, if_match=if_match)

    return asked
