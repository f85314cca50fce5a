"""Programs that were forked are ours to wait for, end as they would, and leave what they were forked from alone."""

import os
import subprocess
import sys

import pytest
import yaml

from mininet_tests.testing.loopback import free_port
from mininet_tests.testing.networks import chile_illinois
from topology.network_text import section_of

# In a process of its own: pytest's have threads.
STARTED = """
import subprocess, sys
from pathlib import Path
import httpx
from mininet_tests.site.fork_server import fork_server
from mininet_tests.testing.eventually import eventually
folder, port, inside = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if sys.argv[3:] else None
print("said once")
def answers():
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v1/topology").status_code
    except httpx.TransportError:
        return 0
with fork_server() as forks:
    def start(program, name, inside=None):
        return forks.start(program, folder / f"{name}.yaml", folder / f"{name}.log", inside)
    print(start("controller", "missing").wait(30), start("agent", "missing").wait(30))
    log = folder / "controller.log"
    log.touch()  # who was forked may not have opened it yet
    first = start("controller", "controller", inside)
try:
    eventually(lambda: "event=controller.up" in log.read_text(), within_s=60, what="the controller is up")
    print(answers(), first.poll())
    try:
        first.wait(0.01)
    except subprocess.TimeoutExpired:
        print("goes on")
    first.terminate()
    print(first.wait(30), first.poll())
finally:
    first.kill()
"""


@pytest.fixture
def folder(tmp_path):
    """With the configuration of a controller that has its ports to itself."""
    listen = {name: f"127.0.0.1:{free_port()}" for name in ("openflow", "rest", "agents")}
    config = {"network": section_of(chile_illinois()), "listen": listen, "store": f"sqlite:///{tmp_path}/headway.db"}
    (tmp_path / "controller.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def shown(folder, *inside):
    """What was printed, and the standard error."""
    port = yaml.safe_load((folder / "controller.yaml").read_text())["listen"]["rest"].split(":")[1]
    command = [sys.executable, "-c", STARTED, folder, port, *map(str, inside)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout.splitlines(), done.stderr


def test_they_answer_end_as_they_would_and_go_on_without_what_has_forked_them(folder):
    lines, errors = shown(folder)
    assert (lines, errors) == (["said once", "2 2", "200 None", "goes on", "0 0"], "")
    assert "cannot be read" in (folder / "missing.log").read_text()
    log = (folder / "controller.log").read_text()
    assert "said once" not in log
    assert "Traceback" not in log


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces")
def test_one_inside_another_s_network_is_not_reached_from_ours(folder):
    command = ["unshare", "--net", "--mount", "sh", "-c", "ip link set lo up; echo up; sleep 300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as inside:
        try:
            assert inside.stdout.readline() == b"up\n"
            lines, errors = shown(folder, inside.pid)
        finally:
            inside.kill()
    assert (lines, errors) == (["said once", "2 2", "0 None", "goes on", "0 0"], "")
