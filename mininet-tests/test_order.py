"""In which order files of tests are shared out: as many as wait for the lab at a time, others beside them."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
FIRST_IN_THE_LAB = """
import pytest, time
from pathlib import Path

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]


def test_others_run_meanwhile():
    until_s = time.monotonic() + 30
    while len(list(Path(__file__).parent.glob("*.ran"))) < 2:
        assert time.monotonic() < until_s, "nothing else was run beside this"
        time.sleep(0.02)


@pytest.mark.parametrize("number", range(2))
def test_more(number):
    pass
"""
NEXT_IN_THE_LAB = """
import pytest
from pathlib import Path

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]


def test_nothing_else_came_between():
    assert not Path(__file__).with_name("test_f.ran").exists()
    Path(__file__).with_suffix(".began").touch()


@pytest.mark.parametrize("number", range(2))
def test_more(number):
    pass
"""
UNTIL_THE_NEXT = """
import time
from pathlib import Path


def test_the_next_lab_began_beside_this():
    until_s = time.monotonic() + 30
    while not Path(__file__).with_name("test_b.began").exists():
        assert time.monotonic() < until_s, "the lab was not used"
        time.sleep(0.02)


def test_another():
    pass
"""
BESIDE = """
import pytest
from pathlib import Path


@pytest.mark.parametrize("number", range(3))
def test_it(number):
    Path(__file__).with_suffix(".ran").touch()
"""


def test_the_lab_takes_as_many_processes_as_it_may_while_there_is_something_else_to_run(tmp_path):
    folder = tmp_path / "tests"
    folder.mkdir()
    text = CONFTEST.read_text()
    (folder / "conftest.py").write_text(text.replace("LABS = 2", "LABS = 1").replace("os.geteuid() != 0", "False"))
    assert "LABS = 2" in text
    labs = {"a": FIRST_IN_THE_LAB, "b": NEXT_IN_THE_LAB}
    for name, body in (labs | {"c": BESIDE, "d": BESIDE, "e": UNTIL_THE_NEXT, "f": BESIDE}).items():
        (folder / f"test_{name}.py").write_text(body)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = lab: as there\n")
    options = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *options, "tests"]
    ran = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == pytest.ExitCode.OK, ran.stdout
    assert "17 passed" in ran.stdout
