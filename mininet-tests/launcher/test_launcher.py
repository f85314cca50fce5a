"""One launcher for all: every experiment is in it, and says what it has come to."""

import importlib.util
import io
import json
import runpy
import subprocess
import sys
from itertools import chain, repeat
from unittest.mock import Mock

import pytest

from mininet_tests.lab import commands
from mininet_tests.launcher import cli, progress, published
from mininet_tests.launcher.children import followed
from mininet_tests.launcher.experiment import Experiment, Group, Place
from mininet_tests.launcher.progress import Shown
from mininet_tests.launcher.registry import EXPERIMENTS, PARTS, TESTS_ONLY

TESTS = commands.ROOT / "mininet-tests"


def rooms(kind):
    """The experiments' folders of a kind, as modules' names."""
    return {f"{kind}.{folder.name}" for folder in (TESTS / kind).iterdir() if (folder / "__init__.py").exists()}


def test_every_scenario_and_paper_is_in_it():
    known = {one.module.rpartition(".")[0] for one in EXPERIMENTS}
    assert rooms("scenarios") | rooms("papers") == {room for room in known if room != "bench"} | TESTS_ONLY


def test_every_bench_is_in_it():
    known = {one.module for one in EXPERIMENTS if one.group is Group.BENCH}
    files = [file for file in (TESTS / "bench").glob("[!_]*.py") if not file.name.startswith("test_")]
    assert {f"bench.{file.stem}" for file in files} == known | PARTS


def test_the_list_has_all_of_them_each_with_a_line(capsys):
    assert cli.main(["--list"]) == 0
    shown = capsys.readouterr().out.splitlines()
    for one in EXPERIMENTS:
        assert any(line.split() == [one.name, *one.line.split()] for line in shown)
    assert cli.main([]) == 0
    assert capsys.readouterr().out.splitlines() == shown


def test_it_starts_from_any_folder_and_without_the_checkouts_packages(tmp_path):
    command = ["/usr/bin/python3", "-I", str(TESTS / "run"), "--list"]
    assert "figure2" in subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout


def test_a_name_that_is_nearly_one_is_answered_with_it(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["sok"])
    assert left.value.code == 2
    assert "is it soak?" in capsys.readouterr().err


def test_no_venv_is_answered_with_what_makes_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "VENV", tmp_path)
    assert cli.main(["soak"]) == 1
    assert "make install" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")  # another test has imported it
@pytest.mark.parametrize("one", EXPERIMENTS, ids=lambda one: one.name)
def test_each_has_a_help(one, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [one.module, "--help"])
    with pytest.raises(SystemExit) as left:
        runpy.run_module(f"mininet_tests.{one.module}", run_name="__main__")
    assert left.value.code == 0
    assert "--out" in capsys.readouterr().out


@pytest.mark.parametrize("module", sorted({one.shown_by for one in EXPERIMENTS if one.shown_by}))
def test_each_module_that_writes_a_page_again_is_there(module):
    assert importlib.util.find_spec(f"mininet_tests.{module}")


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")  # another test has imported it
@pytest.mark.parametrize("one", [one for one in EXPERIMENTS if one.figure], ids=lambda one: one.name)
def test_each_figure_takes_a_folder(one, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [one.figure, "--help"])
    with pytest.raises(SystemExit) as left:
        runpy.run_module(f"mininet_tests.{one.figure}", run_name="__main__")
    assert left.value.code == 0
    assert "folder" in capsys.readouterr().out


def test_bash_completes_names():
    script = f"{_completion()}\nCOMP_WORDS=(mininet-tests/run so) COMP_CWORD=1; _headway_run; echo $COMPREPLY"
    assert subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True).stdout == "soak\n"


def _completion():
    done = subprocess.run([TESTS / "run", "--completion"], check=True, capture_output=True, text=True)
    return done.stdout


def test_what_needs_the_lab_is_booted_in_it_at_its_dilation_with_the_users_arguments(tmp_path):
    asked = cli.request(["faults", "--case", "openflow cut", "--out", str(tmp_path)])
    command = cli.command(asked)
    assert command[0] == str(commands.BOOT)
    assert command[1:5] == ["--dilation", "2", "--out", str(tmp_path)]
    assert command[-4:] == ["--out", str(tmp_path), "--case", "openflow cut"]
    for dilation in ("4", "0"):  # the lab says that there is none of 0
        assert cli.command(cli.request(["faults", "--dilation", dilation]))[2] == dilation


def test_what_starts_the_lab_itself_is_given_all_that_is_not_the_launchers():
    command = cli.command(cli.request(["figure2", "--publish", "--dilation", "7"]))
    assert command[3:] == ["--out", str(commands.ROOT / "out/figure2"), "--dilation", "7"]
    assert cli.command(cli.request(["freemon", "--publish"]))[-1] == "--publish"


def experiment(source, tmp_path, monkeypatch, *, publish=False, shown_by=None, dilation=None, place=Place.HERE):
    """Run a program as if it were an experiment; return the exit code."""
    one = Experiment("tried", Group.BENCH, "a try", "none", place, 1, shown_by=shown_by)
    monkeypatch.setattr(cli, "command", lambda _: [sys.executable, "-c", source, str(tmp_path / "report.json")])
    return cli.launched(cli.LaunchRequest(one, (), tmp_path, dilation, publish=publish))


def test_what_is_published_names_the_commit_that_was_there_when_the_run_began(tmp_path, monkeypatch):
    said = iter(("as it was", "as it is now that pages are written"))
    monkeypatch.setattr(cli, "commit", lambda: next(said))
    monkeypatch.setattr(cli.commands, "ROOT", tmp_path)
    source = f"import sys; open(sys.argv[1], 'w').write({json.dumps(json.dumps(HELD))})"
    assert experiment(source, tmp_path, monkeypatch, publish=True) == 0
    assert json.loads((tmp_path / "docs/results/tried.json").read_text())["commit"] == "as it was"


def test_what_is_published_of_the_lab_names_its_dilation(tmp_path, monkeypatch):
    monkeypatch.setattr(cli, "commit", lambda: "0123456789ab")
    monkeypatch.setattr(cli.commands, "ROOT", tmp_path)
    for words, dilation in ((["faults"], 2), (["faults", "--dilation", "4"], 4), (["retention"], None)):
        asked = cli.request(words)
        assert (
            experiment(WRITES.format(json.dumps(HELD)), tmp_path, monkeypatch, publish=True, dilation=asked.dilation)
            == 0
        )
        assert json.loads((tmp_path / "docs/results/tried.json").read_text()).get("dilation") == dilation


def test_nothing_is_run_to_be_published_of_a_tree_that_is_no_commits(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "commit", lambda: "0123456789ab-changed")
    monkeypatch.setattr(cli.commands, "ROOT", tmp_path)
    source = WRITES.format(json.dumps(HELD))
    assert experiment(source, tmp_path, monkeypatch, publish=True) == 2
    assert "commit what is changed first" in capsys.readouterr().err
    assert not (tmp_path / "report.json").exists()
    assert experiment(source, tmp_path, monkeypatch) == 0, "it may be run and not published"


def test_what_was_measured_earlier_in_such_a_tree_is_not_published(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "commit", lambda: "0123456789ab")
    monkeypatch.setattr(cli.commands, "ROOT", tmp_path)
    source = WRITES.format(json.dumps(HELD | {"commit": ["0123456789ab", "ba9876543210-changed"]}))
    assert experiment(source, tmp_path, monkeypatch, publish=True) == 1
    assert "ba9876543210-changed" in capsys.readouterr().err
    assert not (tmp_path / "docs").exists()


@pytest.mark.parametrize(
    ("writes", "code", "page"),
    [("p.write_text(p.with_name('tried.json').read_text())", 0, "as measured"), ("sys.exit(1)", 1, "of before")],
)
def test_the_page_that_shows_published_figures_is_written_again(writes, code, page, tmp_path, monkeypatch):
    shows = tmp_path / "docs/results/shows.md"
    shows.parent.mkdir(parents=True)
    shows.write_text("of before")
    again = f"import pathlib, sys; p = pathlib.Path({str(shows)!r}); {writes}"
    monkeypatch.setattr(cli, "commit", lambda: "0123456789ab")
    monkeypatch.setattr(cli.commands, "module", lambda _: [sys.executable, "-c", again])
    monkeypatch.setattr(cli.commands, "ROOT", tmp_path)
    report = json.dumps(json.dumps(HELD | {"said": "as measured"}))
    source = f"import sys; open(sys.argv[1], 'w').write({report})"
    assert experiment(source, tmp_path, monkeypatch, publish=True, shown_by="it") == code
    assert page in shows.read_text()


def installing(recipe, tmp_path, monkeypatch):
    """Let make bring a file up to date before a run; return the exit code, or the command that goes on."""
    (tmp_path / "Makefile").write_text(f"there:\n\t{recipe}\n")
    argv = [str(TESTS / "run"), "--install", "there", "soak", "--count", "3"]
    monkeypatch.setattr(cli.commands, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", argv)
    went_on = []
    monkeypatch.setattr(cli.os, "execv", lambda *words: went_on.append(words))
    code = cli.installed(cli.request(argv[1:]))
    return went_on or code


def test_what_a_run_needs_is_installed_first_and_then_it_goes_on(tmp_path, monkeypatch, capsys):
    ((program, again),) = installing("touch there", tmp_path, monkeypatch)
    assert [program, "soak", "--count", "3"] == again
    assert "about 1:01:00 left: " in capsys.readouterr().out
    assert installing("touch there", tmp_path, monkeypatch) == 0, "it is up to date"


def test_a_run_whose_installation_fails_has_failed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli.os, "execv", lambda *_: None)
    assert installing("false", tmp_path, monkeypatch) == 1
    assert "make there failed" in capsys.readouterr().err


WRITES = "import sys; open(sys.argv[1], 'w').write('''{}''')"
MISSED = {"aims": {"fast": {"aim": "at most 5", "seen": 7, "ok": False}}, "falls_short": ["fast"]}
HELD = {"aims": {"fast": {"aim": "at most 5", "seen": 3, "ok": True}}, "falls_short": []}


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        (WRITES.format(json.dumps(HELD)), 0, ""),
        (WRITES.format(json.dumps(MISSED)), 3, "falls short: fast: 7, aim: at most 5"),
        ("raise SystemExit(1)", 1, "ended with 1"),
        ("raise SystemExit(125)", 1, "ended with 125"),
        ("raise SystemExit(2)", 2, "ended with 2"),
    ],
)
def test_the_exit_code_says_whether_all_aims_hold(source, code, said, tmp_path, monkeypatch, capsys):
    assert experiment(source, tmp_path, monkeypatch) == code
    assert said in capsys.readouterr().err


def test_how_long_it_took_is_what_is_expected_the_next_time(tmp_path, monkeypatch, capsys):
    (tmp_path / cli.TOOK).write_text('{"arguments": [], "dilation": null, "seconds": 754}')
    experiment(WRITES.format("{}"), tmp_path, monkeypatch)
    assert "about 12:34 left: starting" in capsys.readouterr().out
    assert json.loads((tmp_path / cli.TOOK).read_text())["seconds"] < 60


def test_a_run_at_another_dilation_is_said_to_be_that_and_says_nothing_of_how_long_this_one_takes(
    tmp_path, monkeypatch, capsys
):
    for dilation, expected in ((4, "1:00"), (2, "1:00"), (2, "12:34")):
        experiment(WRITES.format(json.dumps(HELD)), tmp_path, monkeypatch, dilation=dilation, place=Place.LAB)
        said = capsys.readouterr().out
        assert f"run: tried: a try; lab, dilation {dilation}, into" in said
        assert f"about {expected} left: starting" in said
        took = json.loads((tmp_path / cli.TOOK).read_text())
        (tmp_path / cli.TOOK).write_text(json.dumps(took | {"seconds": 754}))


class Terminal(io.StringIO):
    """Lines can be written over here."""

    def isatty(self):
        return True


def test_how_far_it_is_is_told_in_lines_of_its_own_output(monkeypatch):
    clock = chain([0.0], repeat(60.0))  # however long a program takes to begin
    monkeypatch.setattr(progress, "time", Mock(monotonic=lambda: next(clock)))
    shown = Shown("tried", 240, Terminal())
    assert followed([sys.executable, "-c", "print('progress: 0.500 half'); print('a line'); exit(7)"], shown) == 7
    assert "about 1:00 left: half" in shown.text()
    seen = shown._stream.getvalue()
    assert f"{progress.CLEAR}a line\n" in seen
    assert "progress: " not in seen


def test_without_a_terminal_there_is_a_line_at_once_and_then_one_each_15_s():
    stream = io.StringIO()
    shown = Shown("tried", 240, stream)
    for _ in range(10):
        shown.tick()
    assert stream.getvalue() == "run: tried: 0:00, about 4:00 left: starting\n"


def test_what_is_published_are_aims_key_figures_commit_and_date(tmp_path):
    report = HELD | {"seconds": 24.7, "raw": list(range(1000))}
    found = json.loads(published.publish("tried", "0123456789ab", ["--quick"], report, tmp_path).read_text())
    assert found["aims"] == HELD["aims"]
    assert found["falls_short"] == []
    assert found["figures"] == {"seconds": 24.7}
    assert found["left_out"] == ["raw"]
    assert found["arguments"] == ["--quick"]
    assert found["date"].endswith("+00:00")
    assert found["commit"] == "0123456789ab"


def test_a_report_without_aims_is_not_published(tmp_path):
    with pytest.raises(ValueError, match="no aims"):
        published.publish("tried", "0123456789ab", [], {"seconds": 1}, tmp_path)
