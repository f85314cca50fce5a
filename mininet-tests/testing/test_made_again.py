"""Each run of a test ends within its timeout: also one that is made again, and what comes after a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HANGS = """
import threading
import pytest

pytestmark = pytest.mark.timeout(0.3)


@pytest.fixture
def left_over():
    yield
    threading.Event().wait()


def test_the_first_time_it_fails_then_it_hangs(tmp_path_factory):
    ran = tmp_path_factory.getbasetemp() / "ran"
    if not ran.exists():
        ran.touch()
        raise AssertionError("it fails")
    threading.Event().wait()


def test_it_hangs_each_time():
    threading.Event().wait()


def test_what_it_leaves_behind_hangs(left_over):
    raise AssertionError("it fails")
"""


def test_no_run_of_a_test_hangs_for_longer_than_its_timeout(tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (tmp_path / "test_hangs.py").write_text(HANGS)
    command = [sys.executable, "-m", "pytest", "-q", "--reruns", "2", "-p", "no:cacheprovider", "--basetemp", "made"]
    seen = subprocess.run(
        command,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert seen.returncode == pytest.ExitCode.TESTS_FAILED, seen.stdout
    assert "3 failed, 1 error, 8 rerun" in seen.stdout, seen.stdout
