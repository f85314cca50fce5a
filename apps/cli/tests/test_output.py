"""Standard output that nobody reads: the command goes on to its own end; what has no end by itself ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import FILES

HEADWAY = Path(sys.executable).parent / "headway"
NETWORK = str(FILES["chile-illinois-2"])
LATE = {
    "network": NETWORK,
    "from": "2026-12-01T00:00:00Z",
    "until": "2026-12-01T00:01:00Z",
    "workload": [{"name": "image", "class": "urgent", "from": "base20", "to": "arch", "bytes": "268.8 MB"}],
}


@pytest.fixture
def unread():
    """The end of a pipe that is written to, and nobody has the other one."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [("version",), ("--help",), ("network", "show", NETWORK)])
def test_a_command_that_nobody_reads_ends_as_if_one_did(unread, arguments, unbuffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [HEADWAY, *arguments]
    done = subprocess.run(command, stdout=unread, stderr=subprocess.PIPE, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_it_has_found_is_its_exit_code_all_the_same(unread, tmp_path):
    (tmp_path / "late.yaml").write_text(yaml.safe_dump(LATE))
    command = [HEADWAY, "what-if", tmp_path / "late.yaml", "--kill", "north", "--at", "2026-12-01T00:00:01Z"]
    done = subprocess.run(command, stdout=unread, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (4, b"")


@pytest.mark.parametrize("program", [[HEADWAY, "agent"], [HEADWAY.with_name("headway-agent")]])
def test_an_agents_units_that_nobody_reads_are_no_failure(unread, program):
    command = [*program, "units", "--rate", "1Gbps", "--rtt", "1ms"]
    done = subprocess.run(command, stdout=unread, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_closed_output_is_as_output_that_nobody_reads(cli):
    command = ["sh", "-c", f'exec "{HEADWAY}" export --url {cli.url} >&-']
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", [("events", "--json"), ("top", "--json", "--interval", "0.5")])
def test_what_is_followed_ends_well_once_nobody_reads(cli, command):
    asked = ("reserve", "--from", "base20", "--to", "arch", "--rate", "1Mbps", "--start", "2030-01-01T00:00:00Z")
    following = subprocess.Popen(
        [HEADWAY, *command, "--url", cli.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with following:
        os.set_blocking(following.stdout.fileno(), False)
        eventually(lambda: cli.run(*asked, "--for", "1h") and following.stdout.read(1), within_s=30, what="a line")
        following.stdout.close()
        eventually(lambda: cli.run(*asked, "--for", "1h") and following.poll() is not None, within_s=30, what="an end")
        assert (following.returncode, following.stderr.read()) == (0, "")
