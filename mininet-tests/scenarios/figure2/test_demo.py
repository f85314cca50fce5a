"""The demo's command line."""

import subprocess
from itertools import pairwise

import pytest

from mininet_tests.scenarios.figure2 import demo


def test_the_full_scenario_is_the_papers_and_the_short_one_differs_in_size_and_length_only():
    short, full = (vars(demo.arguments(words)) for words in ([], ["--full"]))
    assert full["part_bytes"] == 1_344_012_290
    assert {name for name in full if full[name] != short[name]} == {"full", "part_bytes", "lead", "tail"}
    assert demo.arguments(["--full", "--lead", "2"]).lead == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "10g"], '"10g" is not a rate, try "10 Gbit/s"'),
        (["--lead", "60"], "at most 25"),
        (["--part-bytes", "0"], "must be above 0"),
        (["--lab", "--native"], "not allowed with"),
        (["--native", "--slow-disk", "280 Mbps"], "leave --native out"),
        (["--slow-disk", "2 Gbit/s"], "need less than --rate 1 Gbit/s"),
        (["--fast"], "unrecognized arguments"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong_and_exits_2(arguments, said, capsys):
    with pytest.raises(SystemExit) as left:
        demo.arguments(arguments)
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_to_a_slow_disk_it_is_played_in_the_lab():
    args = demo.arguments(["--slow-disk", "280Mbps"])
    assert (args.slow_disk, args.lab, args.part_bytes) == (280_000_000, True, demo.SHORT["part_bytes"])


def test_native_where_it_cannot_be_says_why_and_fails(monkeypatch, capsys):
    monkeypatch.setattr(demo, "native_problem", lambda: "the kernel has no openvswitch")
    assert demo.main(["--native"]) == 1
    assert "cannot run here: the kernel has no openvswitch" in capsys.readouterr().err


def test_what_is_asked_for_reaches_the_scenario(monkeypatch, tmp_path):
    started = []

    def run(command, **_):
        started.extend(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", run)
    asked = [
        ("--rate", "100000000 bit/s"),
        ("--slow-disk", "28000000 bit/s"),
        ("--part-bytes", "7"),
        ("--lead", "2.0"),
        ("--tail", "1.0"),
        ("--seed", "9"),
    ]
    assert demo.main(["--lab", "--exact", "--out", str(tmp_path), *(word for one in asked for word in one)]) == 1
    assert {*asked, ("--out", str(tmp_path))} <= set(pairwise(started))
    assert "--exact" in started
