"""``headway plan --explain``: the steps of real transitions, drawn."""

from apps.cli import explain, tables
from controller.tests.fakes import image

REFUSED = "switch 0x1 refused [put meter 1003: 5 kbit/s]: OFPMMFC_OUT_OF_METERS"


def under_way(cli):
    """An image announced, then sent, by a site whose hosts confirm at once."""
    cli.site.attach_all()
    cli.site.converge()
    cli.site.announce(image())
    cli.site.converge()
    cli.site.demand("base20", "base21")
    cli.site.converge()


def test_the_steps_of_the_latest_transition_are_drawn_in_their_order(cli):
    under_way(cli)
    said, _ = cli.run("plan", "--explain")
    rows = [line for line in said.splitlines() if "│" in line]
    layers = [cells[4].strip() for row in rows if (cells := row.split("│"))[4].strip()]
    assert layers == ["queues", "meters", "hosts"]  # nobody else sends here, so nobody has to shrink
    assert "image/base20" in rows[-2]
    assert "9.844 Mbit/s" in rows[-2]


def test_so_many_transitions_as_are_asked_for(cli):
    under_way(cli)
    assert cli.run("plan", "--explain", "--last", "2")[0].count("to epoch") == 2
    assert cli.run("plan", "--last", "2", exit_code=2) == ("", "headway: --last goes with --explain\n")


def test_where_nothing_has_changed_it_says_so(cli):
    assert "no transition" in cli.run("plan", "--explain")[0]


def test_a_step_that_failed_says_why(cli):
    cli.site.switches.gone = True
    cli.site.switch_up(1)
    cli.site.converge()
    assert "is not connected" in cli.run("plan", "--explain")[0]


def test_what_a_switch_has_refused_is_said_whole(cli, capsys):
    under_way(cli)
    steps = cli.json("plan", "--explain")
    explain.show_transitions([*steps[:-1], {**steps[-1], "error": REFUSED}])
    assert REFUSED in capsys.readouterr().out
    tables.show_plan({**cli.json("plan"), "error": REFUSED})
    assert REFUSED in capsys.readouterr().out


def test_for_scripts_it_is_the_steps_themselves(cli):
    under_way(cli)
    steps = cli.json("plan", "--explain")
    assert steps[-1]["changes"][0]["from_frame_bps"] == 9_843_500
