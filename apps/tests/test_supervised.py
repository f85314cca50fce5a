"""The controller under a service manager: it says when it is up, that it lives, and that it ends."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import OWN

NETWORK = Path(__file__).parents[2] / "mininet-tests/networks/chile-illinois.yaml"


@pytest.fixture
def manager(tmp_path):
    """The socket at which a service manager listens; what it has heard."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(20)
        yield listening


@pytest.fixture
def running(tmp_path, manager):
    with started(tmp_path, f"store: sqlite:///{tmp_path}/headway.db\n") as process:
        yield process


@contextlib.contextmanager
def started(folder, settings):
    """A controller as a process, with these settings beside the usual ones."""
    file, log = folder / "controller.yaml", folder / "log"
    with socket.create_server((OWN, 0)) as one, socket.create_server((OWN, 0)) as other:
        openflow, rest = one.getsockname()[1], other.getsockname()[1]
    listen = f'{{openflow: "{OWN}:{openflow}", rest: "{OWN}:{rest}", agents: "unix:{folder}/agents"}}'
    file.write_text(f"network: {NETWORK}\nlisten: {listen}\n{settings}")
    code = "from apps.main import main; main()"
    command = [sys.executable, "-c", code, "controller", "--config", str(file)]
    with log.open("wb") as to:
        process = subprocess.Popen(command, env={**os.environ, "NOTIFY_SOCKET": str(folder / "notify")}, stderr=to)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def heard(manager):
    return dict(line.split("=", 1) for line in manager.recv(4096).decode().splitlines())


def test_it_is_ready_when_it_serves_and_says_each_second_that_it_lives(manager, running):
    assert heard(manager)["READY"] == "1"
    assert [heard(manager)["WATCHDOG"] for _ in range(2)] == ["1", "1"]
    running.send_signal(signal.SIGTERM)
    eventually(lambda: "STOPPING" in heard(manager), within_s=10, what="it says that it ends")
    assert running.wait(timeout=20) == 0


def test_one_that_hangs_says_nothing(manager, running):
    assert heard(manager)["READY"] == "1"
    running.send_signal(signal.SIGSTOP)
    manager.settimeout(3)
    with pytest.raises(TimeoutError):
        while True:
            heard(manager)
    running.send_signal(signal.SIGCONT)


def test_one_of_a_pair_that_is_ended_while_it_waits_for_its_database_has_not_failed(manager, tmp_path):
    nowhere = "store: postgresql://nobody@127.0.0.1:1/headway\npair: {address: 'http://127.0.0.1:8080'}\n"
    with started(tmp_path, nowhere) as process:
        assert heard(manager)["STATUS"] == "waits for the database"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
