"""The agent's kernel part on another kernel than this machine's: the oldest that Debian still ships."""

import subprocess
import sys

import pytest

from mininet_tests.lab import commands

HOSTAGENT_TESTS = commands.ROOT / "hostagent/tests"
AGENT_TESTS = [str(HOSTAGENT_TESTS / f"test_{name}_root.py") for name in ("agent", "demand", "lanes", "lease")]
# every program, and every way out; the timer and the ring buffer
CHOSEN = (
    "share_the_aggregate or killed_agents_sockets or keeps_its_own_dscp or gives_it_back_by_itself or what_died"
    " or dealt_in_proportion or an_mptcp_subflow"
)

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
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
    options = "--kernel", series, "--dilation", "4", "--timeout", "850"
    done = subprocess.run(commands.in_lab(*options, command=tests), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
