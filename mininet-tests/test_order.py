"""In which order files of tests are shared out: as many as wait for the lab at a time, others beside them."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
IN_THE_LAB = """
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
BESIDE = """
import pytest
from pathlib import Path


@pytest.mark.parametrize("number", range(3))
def test_it(number):
    Path(__file__).with_suffix(".ran").touch()
"""


def test_the_lab_takes_no_more_processes_than_it_may_while_there_is_something_else_to_run(tmp_path):
    folder = tmp_path / "tests"
    folder.mkdir()
    text = CONFTEST.read_text()
    (folder / "conftest.py").write_text(text.replace("LABS = 2", "LABS = 1").replace("os.geteuid() != 0", "False"))
    assert "LABS = 2" in text
    for name, body in {"a": IN_THE_LAB, "b": IN_THE_LAB, "c": BESIDE, "d": BESIDE}.items():
        (folder / f"test_{name}.py").write_text(body)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = lab: as there\n")
    options = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *options, "tests"]
    ran = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == pytest.ExitCode.OK, ran.stdout
    assert "12 passed" in ran.stdout
