"""The agent's kernel part on another kernel than this machine's: the oldest that Debian still ships."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HOSTAGENT_TESTS = HERE.parent / "hostagent/tests"
AGENT_TESTS = [str(HOSTAGENT_TESTS / name) for name in ("test_agent_root.py", "test_demand_root.py")]
# every program, and every way out; the timer and the ring buffer
CHOSEN = "share_the_aggregate or killed_agents_sockets or keeps_its_own_dscp or gives_it_back_by_itself or what_died"

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(900),
]


@pytest.mark.parametrize("series", ["6.1"])
def test_one_object_does_all_on_an_older_kernel(series):
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "root",
        "-p",
        "no:cacheprovider",
        *AGENT_TESTS,
        "-k",
        CHOSEN,
    ]
    lab = [str(HERE / "lab"), "--kernel", series, "--dilation", "4", "--timeout", "600", "--"]
    done = subprocess.run([*lab, str(HERE / "isolated.sh"), *tests], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
