"""Agents that call where no controller is yet: each is heard once, and none is let in."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from apps.cli.network_called import MOST, Callers, agents_calling
from hostagent.doctor.survey import host_interfaces
from mininet_tests.testing.eventually import eventually
from topology.protocol import ATTACH_PATH, Hello, HostInterface, to_bytes


@pytest.fixture
def address():
    """An address that is free."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


def answers(address):
    """Whether somebody listens there."""
    host, _, port = address.rpartition(":")
    with socket.socket() as asking:
        return asking.connect_ex((host, int(port))) == 0


def test_who_calls_is_heard_and_sent_away(address, monkeypatch):
    refused, heard, all_called = [], [], threading.Event()
    monkeypatch.setattr("apps.cli.network_called.time", SimpleNamespace(sleep=all_called.wait))
    hellos = [Hello(host, "1", "6.12", interfaces=host_interfaces()) for host in ("dtn2", "dtn1")]

    def call(hello):
        with connect(f"ws://{address}{ATTACH_PATH}", proxy=None, compression=None) as stream:
            stream.send(to_bytes(hello), text=True)
            with pytest.raises(ConnectionClosed) as closed:
                stream.recv(timeout=5)
        refused.append(closed.value.rcvd.reason)

    with ThreadPoolExecutor() as pool:
        answer = pool.submit(agents_calling, address, None, 60, heard.append)
        eventually(lambda: answers(address), within_s=5, what="it listens")
        for hello in (*hellos, hellos[0]):
            call(hello)
        all_called.set()
        assert answer.result() == (hellos[1], hellos[0])
    assert heard == hellos
    assert refused == [f'"{hello.host}" is not a host of this network' for hello in (*hellos, hellos[0])]


@pytest.mark.parametrize("name", ["", "dtn1: {}\n", "\x1b[2J", "-", "a" * 64])
def test_what_is_no_name_is_neither_shown_nor_written(name):
    heard = []
    callers = Callers(heard.append)
    callers.host_up(Hello(name, "1", "6.12"))
    callers.host_up(Hello("dtn1", "1", "6.12", interfaces=(HostInterface(name, ()),)))
    assert heard == [Hello("dtn1", "1", "6.12")]
    assert callers.hellos == {"dtn1": heard[0]}


def test_no_more_callers_are_kept_than_a_site_has_hosts():
    callers = Callers(lambda _: None)
    for number in range(MOST + 5):
        callers.host_up(Hello(f"dtn{number}", "1", "6.12"))
    assert len(callers.hellos) == MOST


def test_a_port_that_is_taken_is_said(address):
    host, _, port = address.rpartition(":")
    with (
        socket.create_server((host, int(port))),
        pytest.raises(OSError, match=f"cannot listen for agents at {address}"),
    ):
        agents_calling(address, None, 1)
