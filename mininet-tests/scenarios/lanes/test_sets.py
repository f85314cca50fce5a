"""Which transfers are published, and that a set that was seen is not run again."""

import argparse
import json

import pytest

from mininet_tests.scenarios.lanes import sets
from mininet_tests.scenarios.lanes.run import asked_parser, cases_of

NOT_PUBLISHED = {"curl-get"}  # as curl, but its receiver connects; aria2 does so too


def asked(*words):
    parser = asked_parser(None, argparse.ArgumentParser(add_help=False))
    return cases_of(parser, parser.parse_args(words))


@pytest.mark.parametrize("one", sets.SETS, ids=lambda one: one.name)
def test_a_set_asks_for_transfers_that_there_are(one):
    assert sorted(case.name for case in asked(*one.words)) == sorted(one.cases)
    assert set(one.shown) <= set(one.cases)


def test_every_program_is_in_some_set():
    cases = [case for one in sets.SETS for case in one.cases]
    assert {case.split(",")[0] for case in cases} | NOT_PUBLISHED == {case.program for case in asked()}


def test_no_two_sets_name_a_transfer_alike():
    names = [one.named(case) for one in sets.SETS for case in one.cases]
    assert len(names) == len(set(names))


@pytest.fixture
def labs(monkeypatch, tmp_path):
    """The sets that were run, of a commit that can be changed; a lab takes no time and leaves a report."""
    ran = []

    def in_a_lab(folder, dilation, words, part):
        cases = [word for word in words[2:] if word != "--case"]
        ran.append(folder.name)
        labs.parts.append(part)
        labs.cases[folder.name] = cases
        folder.mkdir(parents=True, exist_ok=True)
        runs = {case: {"of": len(labs.cases)} for case in (cases[:1] if folder.name == labs.fails else cases)}
        (folder / "lanes.json").write_text(json.dumps({"runs": runs, "idle_shares": [0.9]}))
        if folder.name == labs.fails:
            return 1
        (folder / "report.json").write_text(json.dumps({"aims": {}, "took_s": dict.fromkeys(runs, 1)}))
        return 0

    def labs(now, fails=""):
        labs.cases, labs.parts = {}, []
        labs.fails = fails
        monkeypatch.setattr(sets, "commit", lambda: now)
        ran.clear()
        code = sets.all_sets(tmp_path, publish=False)
        return code, list(ran)

    monkeypatch.setattr(sets, "in_a_lab", in_a_lab)
    monkeypatch.setattr(sets, "_shown", lambda *_: None)
    monkeypatch.setattr(sets, "report", lambda seen: {"took_s": dict.fromkeys(seen["runs"], 1)})
    monkeypatch.setattr(sets, "aims", lambda _: {})
    return labs


def test_a_run_that_was_ended_goes_on_where_it_was_and_another_commit_begins_anew(labs):
    names = [one.name for one in sets.SETS]
    assert labs("a", fails=names[2]) == (1, names[:3])
    assert labs("a") == (0, names[2:])
    assert labs("a") == (0, [])
    assert labs("b") == (0, names)


def test_each_set_is_told_its_part_of_the_whole_time(labs):
    labs("a")
    assert [begin for begin, _ in labs.parts[1:]] == [end for _, end in labs.parts[:-1]]
    assert (labs.parts[0][0], labs.parts[-1][1]) == (0, 1)
    assert all(begin < end for begin, end in labs.parts)


def test_a_transfer_that_fails_loses_none_of_those_before_it(labs, tmp_path):
    one = sets.SETS[2]
    labs("a", fails=one.name)
    assert labs("a")[0] == 0
    assert labs.cases[one.name] == list(one.cases[1:])
    report = json.loads((tmp_path / one.name / "report.json").read_text())
    assert list(report["took_s"]) == list(one.cases)
    labs("b", fails=one.name)
    labs("c")
    assert labs.cases[one.name] == list(one.cases)


def test_what_a_changed_checkout_has_shown_is_not_taken_for_seen(labs):
    names = [one.name for one in sets.SETS]
    assert labs("a-changed") == (0, names)
    assert labs("a-changed") == (0, names)


def test_one_set_is_not_published_in_the_place_of_all(tmp_path, capsys):
    with pytest.raises(SystemExit):
        sets.main(["--out", str(tmp_path), "--rate", "100 Mbit/s", "--publish"])
    assert "--publish is of all sets" in capsys.readouterr().err


def test_a_program_that_is_not_there_is_said_before_any_lab_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        sets.main(["--out", str(tmp_path / "lanes"), "--program", "gridftp", "--program", "aria2"])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert "not installed: aria2c, globus-gridftp-server, globus-url-copy, rclone; make paper RUN=lanes" in said
    assert not (tmp_path / "lanes").exists()
