"""What the service manager hears, on a socket that stands for its own."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostagent.agent import supervisor
from hostagent.agent.supervisor import Supervisor, inherited
from hostagent.log import log


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path: Path) -> Iterator[tuple[socket.socket, Supervisor]]:
    """The manager's end, and a supervisor made from what it would put into the environment."""
    name = f"headway-test-{os.getpid()}"
    path = str(tmp_path / "notify") if request.param == "path" else f"\0{name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(path)
        listening.settimeout(5)
        shown = path if request.param == "path" else f"@{name}"
        yield listening, Supervisor.of_this_process({"NOTIFY_SOCKET": shown})


def heard(listening: socket.socket) -> list[str]:
    return listening.recv(4096).decode().split("\n")


def test_it_is_told_that_the_service_is_ready_alive_and_stopping(manager):
    listening, ours = manager
    ours.ready("holding: epoch 1")
    ours.alive("holding: epoch 2")
    ours.stopping()
    assert heard(listening) == ["READY=1", "STATUS=holding: epoch 1"]
    assert heard(listening) == ["WATCHDOG=1", "STATUS=holding: epoch 2"]
    assert heard(listening) == ["STOPPING=1"]


def test_a_descriptor_is_kept_in_place_of_the_one_of_the_same_name(manager, tmp_path):
    listening, ours = manager
    file = tmp_path / "kept"
    file.write_text("kept")
    with file.open() as opened:
        ours.keep({"ops": opened.fileno()})
        assert heard(listening) == ["FDSTOREREMOVE=1", "FDNAME=headway-ops"]
        message, descriptors, _, _ = socket.recv_fds(listening, 4096, 2)
    assert message.decode().split("\n") == ["FDSTORE=1", "FDPOLL=0", "FDNAME=headway-ops"]
    assert os.read(descriptors[0], 10) == b"kept"
    os.close(descriptors[0])


def test_without_a_service_manager_nothing_is_said():
    with log.captured() as logs:
        Supervisor.of_this_process({}).ready("holding")
    assert logs == []


def test_a_service_manager_that_is_gone_does_not_stop_the_service(tmp_path):
    with log.captured() as logs:
        Supervisor.of_this_process({"NOTIFY_SOCKET": str(tmp_path / "gone")}).alive("holding")
    assert [one["event"] for one in logs] == ["supervisor.gone"]


@pytest.fixture
def passed(monkeypatch) -> Iterator[list[int]]:
    """Four descriptors one after the other, as a service manager passes them."""
    pipes = [*os.pipe(), *os.pipe()]
    first = 1000  # nobody else's: other tests of this process have had 200 open
    for offset, descriptor in enumerate(pipes):
        os.dup2(descriptor, first + offset, inheritable=True)
        os.close(descriptor)
    monkeypatch.setattr(supervisor, "FIRST_DESCRIPTOR", first)
    yield [first + offset for offset in range(4)]
    for offset in range(4):
        try:
            os.close(first + offset)
        except OSError:
            continue


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_kept_descriptors_come_back_by_their_names_and_others_are_closed(passed):
    names = "headway-ops:stored:headway-conns:headway-ops"
    environment = {"LISTEN_PID": "7", "LISTEN_FDS": "4", "LISTEN_FDNAMES": names}
    assert inherited(environment, 7) == {"ops": passed[0], "conns": passed[2]}
    assert [is_open(descriptor) for descriptor in passed] == [True, False, True, False]
    assert not os.get_inheritable(passed[0])


def test_descriptors_meant_for_another_process_are_left_alone(passed):
    environment = {"LISTEN_PID": "8", "LISTEN_FDS": "4", "LISTEN_FDNAMES": "headway-ops:a:b:c"}
    assert inherited(environment, 7) == {}
    assert all(is_open(descriptor) for descriptor in passed)


def test_without_kept_descriptors_there_are_none():
    assert inherited({}, 7) == {}
