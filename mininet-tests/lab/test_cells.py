"""Cells are kept one by one, a run that was stopped goes on, and one that fails stops no other; the lab is a script."""

import json
import os
import signal
import subprocess
import sys

import pytest

from mininet_tests.lab import cells
from mininet_tests.lab.cells import EXIT_AGAIN, EXIT_FAILED, EXIT_OK, Batch, Kept, asked, measured
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.progress import heard

# Prints a result for each cell it is asked for, until one whose name it does not like; the folder is its last argument.
LAB = """#!{python}
import json, sys, time
from pathlib import Path
folder = Path(sys.argv[-1])
with (folder.parent / "boots").open("a") as boots:
    boots.write("x")
for cell in json.loads((folder / "cells.json").read_text()):
    if cell["name"] == "breaks":
        sys.exit(3)
    if cell["name"] == "hangs":
        (folder.parent / "hanging").touch()
        time.sleep(60)
    print("cell: " + json.dumps(cell | {{"s": 1}} | ({{"failed": "so it is"}} if cell["name"] == "fails" else {{}})))
    sys.stdout.flush()
    if cell["name"] == "fails":
        sys.exit(75)
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A folder for cells; the lab is the script above."""
    (tmp_path / "lab").write_text(LAB.format(python=sys.executable))
    (tmp_path / "lab").chmod(0o755)
    monkeypatch.setattr(cells.commands, "BOOT", tmp_path / "lab")
    return Kept(tmp_path / "kept")


def run(kept, *names):
    said = []
    wanted = [{"name": name} for name in names]
    batch = Batch(("run",), tuple(kept.missing(wanted)))
    return measured([batch], kept, {"commit": "c0ffee"}, said.append), said


def boots(kept):
    return len((kept.folder / "boots").read_text())


def test_cells_of_a_file_are_adopted_but_none_that_is_here(lab):
    run(lab, "here")
    published = lab.folder.parent / "cells.jsonl"
    published.write_text("".join(json.dumps({"name": name, "commit": "older"}) + "\n" for name in ("here", "there")))
    lab.adopt(published)
    assert lab.seen({"name": "here", "commit": "c0ffee"})
    assert lab.seen({"name": "there", "commit": "older"})
    assert not lab.missing([{"name": "here"}, {"name": "there"}])


def test_the_launcher_is_told_how_far_all_cells_are(lab, capsys):
    run(lab, "one", "two")
    told = [found for line in capsys.readouterr().out.splitlines() if (found := heard(line))]
    assert told == [(0.5, "1 of 2 cells"), (1.0, "2 of 2 cells")]


def test_each_cell_is_kept_with_what_it_cost_and_by_which_commit(lab):
    code, said = run(lab, "one", "two")
    seen = lab.seen({"name": "two"})
    assert (code, seen["s"], seen["commit"], seen["dilation"]) == (EXIT_OK, 1, "c0ffee", 1)
    assert seen["wall_s"] >= 0
    assert "2 of 2, 0 s left: two" in said[-1]


def test_what_has_been_measured_is_not_measured_again_and_another_cell_of_that_name_is(lab):
    run(lab, "one")
    assert lab.missing([{"name": "one"}, {"name": "two"}, {"name": "one", "runs": 2}]) == [
        {"name": "two"},
        {"name": "one", "runs": 2},
    ]


def test_a_cell_that_fails_is_kept_as_failed_and_the_others_are_measured_in_another_boot(lab):
    code, said = run(lab, "one", "fails", "two")
    assert code == EXIT_OK
    assert lab.seen({"name": "fails"})["failed"] == "so it is"
    assert lab.missing([{"name": "one"}, {"name": "fails"}]) == [{"name": "fails"}], "the next run tries it again"
    assert lab.seen({"name": "two"})["s"] == 1
    assert boots(lab) == 2
    assert "FAILED: so it is" in said[1]


def test_a_lab_that_ends_with_an_error_ends_the_run_and_what_was_measured_stays(lab):
    code, said = run(lab, "one", "breaks", "two")
    assert code == 3
    assert "the lab ended with 3" in said[-1]
    assert [bool(lab.seen({"name": name})) for name in ("one", "breaks", "two")] == [True, False, False]


def test_a_lab_that_measures_nothing_is_not_started_for_ever(lab):
    cells.commands.BOOT.write_text(f"#!/bin/sh\nexit {EXIT_AGAIN}\n")
    code, _ = run(lab, "one")
    assert code == EXIT_AGAIN
    cells.commands.BOOT.write_text("#!/bin/sh\nexit 0\n")
    code, _ = run(lab, "one")
    assert code == EXIT_FAILED


def hanging(lab):
    """A run of which one cell is kept and the second is under way, in a process group of its own."""
    program = (
        "import sys; from mininet_tests.lab import cells; from pathlib import Path;"
        f"cells.commands.BOOT = Path({str(cells.commands.BOOT)!r});"
        f"kept = cells.Kept(Path({str(lab.folder)!r}));"
        "batch = cells.Batch((), ({'name': 'one'}, {'name': 'hangs'}));"
        "sys.exit(cells.measured([batch], kept, {}, print))"
    )
    process = subprocess.Popen(
        # a shell has its background jobs ignore SIGINT, and so would this one
        ["env", "--default-signal=INT", sys.executable, "-c", program],
        cwd=cells.commands.ROOT,
        process_group=0,
    )
    eventually((lab.folder / "hanging").exists, within_s=60, what="the second cell is under way")
    return process


def is_over(process):
    """Return whether nobody of a process group is left."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_ctrl_c_ends_the_lab_and_the_next_run_goes_on(lab):
    process = hanging(lab)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert is_over(process)
    assert lab.seen({"name": "one"})["s"] == 1
    assert lab.missing([{"name": "one"}, {"name": "hangs"}]) == [{"name": "hangs"}]


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_lab_ends_with_who_measures_however_that_ends(lab, sent):
    process = hanging(lab)
    process.send_signal(sent)
    process.wait(timeout=60)
    eventually(lambda: is_over(process), within_s=30, what="the lab has ended")


def test_labs_run_side_by_side_and_one_that_breaks_ends_the_others(lab):
    batches = [Batch((), ({"name": "one"}, {"name": "hangs"})), Batch((), ({"name": "two"}, {"name": "waits"}))]
    cells.commands.BOOT.write_text(
        LAB.format(python=sys.executable)
        + """
    if cell["name"] == "two":  # until the other one hangs
        while not (folder.parent / "hanging").exists():
            time.sleep(0.01)
        sys.exit(4)
"""
    )
    said = []
    assert measured(batches, lab, {}, said.append, jobs=2) != EXIT_OK
    assert [bool(lab.seen({"name": name})) for name in ("one", "two", "hangs", "waits")] == [True, True, False, False]
    assert "the lab ended with 4" in said


def test_a_cell_is_handed_over_in_one_line(lab, capsys):
    (lab.folder / "cells.json").write_text(json.dumps([{"name": "one"}]))
    (cell,) = asked(lab.folder)
    cells.tell(cell, {"s": 2})
    assert capsys.readouterr().out == 'cell: {"name": "one", "s": 2}\n'
