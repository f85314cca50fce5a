"""What a test starts is shown line by line, and ends with it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mininet_tests.lab.played import relayed
from mininet_tests.testing.eventually import eventually


def test_each_line_is_shown_behind_the_name_and_the_exit_code_is_the_programs_own(capfd):
    assert relayed("ring", ["sh", "-c", "echo one; echo two >&2; printf three; exit 7"]) == 7
    assert capfd.readouterr().err == "ring: one\nring: two\nring: three\n"


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL], ids=lambda by: by.name)
def test_a_program_ends_with_the_test_that_started_it(by, tmp_path):
    here = (  # a shell lets its jobs in the background ignore SIGINT, and what they start inherits that
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"from mininet_tests.lab.played import relayed; relayed('x', ['sh', '-c', 'echo $$ >{tmp_path}/pid; sleep 60'])"
    )
    with subprocess.Popen([sys.executable, "-c", here], stderr=subprocess.DEVNULL) as test:
        eventually(
            lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), within_s=60, what="it starts"
        )
        program = Path("/proc") / (tmp_path / "pid").read_text().strip()
        test.send_signal(by)
        eventually(lambda: not program.exists(), within_s=20, what="the program ends")


LONG = f"pytest.mark.{'long'}"  # in pieces: no test of this file is one
OWN = f"""
import pytest
from mininet_tests.lab.played import is_long_tier


@pytest.fixture(scope="module")
def found(request):
    return is_long_tier(request)


@{LONG}
def test_more(found):
    assert found


def test_short(found):
    print("long tier:", found)
"""


@pytest.mark.parametrize(("asked", "seen"), [("long or not long", True), ("not long", False)])
def test_a_boot_is_for_all_tests_of_its_file_that_are_asked_for(asked, seen, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = long: as there\n")
    (tmp_path / "test_own.py").write_text(OWN)
    (tmp_path / "test_other.py").write_text(f"import pytest\n\n\n@{LONG}\ndef test_x():\n    pass\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-qs",
        "-p",
        "no:cacheprovider",
        "-m",
        asked,
        "test_own.py",
        "test_other.py",
    ]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert f"long tier: {seen}" in done.stdout
