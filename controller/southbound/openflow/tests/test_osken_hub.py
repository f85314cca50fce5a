"""Each repair of os-ken's native hub: the defect is seen without it, and gone with it.

A defect is shown in a process of its own, since most of them are threads that never end.
"""

import contextlib
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from os_ken.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, HANDSHAKE_DISPATCHER, MAIN_DISPATCHER
from structlog.testing import capture_logs

from controller.southbound.errors import FrameworkUnknown
from controller.southbound.openflow import listener as listener_module
from controller.southbound.openflow import osken_datapath, osken_hub, visitors
from controller.southbound.openflow.listener import Address, Listener
from controller.southbound.openflow.osken_datapath import LockedTls
from mininet_tests.testing.eventually import eventually

_PREAMBLE = """
import os, socket, sys, threading, time
import structlog
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # what a script prints stands by itself
from os_ken.base.app_manager import AppManager, OSKenApp
from os_ken.controller import controller, event, handler, ofp_handler
from os_ken import cfg
from os_ken.lib import hub
from controller.southbound.openflow import osken_hub, visitors
from controller.southbound.openflow.listener import Address
from controller.southbound.openflow.osken_datapath import Datapath
repaired = sys.argv[1] == "repaired"
if repaired:
    osken_hub.repair()
cfg.CONF(args=[], project="test", default_config_files=[], default_config_dirs=[])
"""


def outcome(script: str, *, repaired: bool, within_s: float = 30.0) -> str:
    """The last line ``script`` prints, on os-ken as it comes or repaired; "never ended" if it does not end in time."""
    command = [sys.executable, "-c", _PREAMBLE + textwrap.dedent(script), "repaired" if repaired else "as it comes"]
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            return child.communicate(timeout=within_s)[0].splitlines()[-1]
        except subprocess.TimeoutExpired:
            child.kill()
            return "never ended"


def test_repair_1_an_exception_in_a_handler_does_not_end_the_event_loop():
    script = """
        class Ping(event.EventBase): pass
        class App(OSKenApp):
            seen = 0
            @handler.set_ev_cls(Ping)
            def ping(self, ev):
                self.seen += 1
                raise ValueError("a bug")
        app = AppManager().instantiate(App)
        app.start()
        for _ in range(3):
            app._send_event(Ping(), None)
        deadline = time.monotonic() + 20
        while app.seen < (3 if repaired else 1) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        print(app.seen, flush=True)
        os._exit(0)
    """
    assert outcome(script, repaired=False) == "1"
    assert outcome(script, repaired=True) == "3"


def test_repair_8_a_part_of_length_0_does_not_keep_the_parser_for_ever():
    script = """
        from os_ken.ofproto import ofproto_parser
        hello = bytes.fromhex("04000010000000010002000000000000")
        try:
            ofproto_parser.msg(None, 4, 0, 16, 1, hello)
        except ConnectionError as error:
            print(error, flush=True)
    """
    assert outcome(script, repaired=False, within_s=2.0) == "never ended"
    assert outcome(script, repaired=True) == "a part of 0 bytes at byte 8"


def test_repair_2_a_thread_of_the_hub_does_not_keep_the_process_alive():
    script = """
        hub.spawn(threading.Event().wait)
        print("ended", flush=True)
    """
    assert outcome(script, repaired=False, within_s=1.5) == "never ended"
    assert outcome(script, repaired=True) == "ended"


class OverlapSensor:
    """Stands for a TLS socket: notices if two threads are ever inside it at once."""

    def __init__(self) -> None:
        """Nobody is inside."""
        self._inside = threading.Lock()
        self.overlapped = False

    def recv(self, size_bytes: int) -> bytes:
        """Stay inside for a moment."""
        if not self._inside.acquire(blocking=False):
            self.overlapped = True
            return b"x"
        threading.Event().wait(0.002)
        self._inside.release()
        return b"x"

    def send(self, data: bytes) -> int:
        """Stay inside for a moment."""
        return len(data) if self.recv(0) else 0

    sendall = send

    def setblocking(self, flag: bool) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("wrap", "overlaps"), [(lambda sensor: sensor, True), (LockedTls, False)], ids=["bare", "locked"]
)
def test_repair_3_reading_and_writing_tls_never_overlap(wrap, overlaps):
    sensor = OverlapSensor()
    connection = wrap(sensor)

    done = {"read": 0, "sent": 0}

    def go(what: str, act: Callable[[], object]) -> None:
        while min(done.values()) < 50:  # neither ends before the other has begun
            act()
            done[what] += 1

    reader = threading.Thread(target=go, args=("read", lambda: connection.recv(8)))
    reader.start()
    go("sent", lambda: connection.sendall(b"xxxx"))
    reader.join()
    assert sensor.overlapped is overlaps


def test_repair_4_a_connection_that_the_switch_closed_ends_at_once():
    script = """
        server = socket.create_server(("127.0.0.1", 0))
        switch = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
        datapath = (Datapath if repaired else controller.Datapath)(ours, "test")
        serving = threading.Thread(target=datapath.serve)
        serving.start()
        switch.recv(8)
        switch.close()
        serving.join(timeout=20 if repaired else 1)
        print("still serving" if serving.is_alive() else datapath.state, flush=True)
        os._exit(0)
    """
    assert outcome(script, repaired=False) == "still serving"
    assert outcome(script, repaired=True) == "dead"


class Interrupting:
    """A message during whose numbering another thread numbers one, as the scheduler may have it."""

    def __init__(self, datapath: Any, other: Any) -> None:
        """Prepare."""
        self.datapath, self.other, self.xid = datapath, other, None

    def set_xid(self, xid: int) -> None:
        """Take the number; let the other in."""
        self.xid = xid
        if self.other is not None:
            self.datapath.set_xid(self.other)


@pytest.mark.parametrize(("kind", "agree"), [("controller", False), ("osken_datapath", True)])
def test_repair_5_the_number_returned_is_the_number_of_the_message(kind, agree):
    ours, switch = socket.create_server(("127.0.0.1", 0)), socket.socket()
    switch.connect(ours.getsockname())
    module = osken_datapath if kind == "osken_datapath" else osken_datapath.controller
    datapath = module.Datapath(ours.accept()[0], "test")
    message = Interrupting(datapath, Interrupting(datapath, None))
    assert (datapath.set_xid(message) == message.xid) is agree
    for each in (ours, switch, datapath.socket):
        each.close()


def test_repair_6_waiting_with_a_time_out_ends():
    script = """
        print(hub.Event().wait(timeout=0.1), flush=True)
    """
    assert outcome(script, repaired=False, within_s=1.5) == "never ended"
    assert outcome(script, repaired=True) == "False"


def test_repair_7_a_port_in_use_is_an_error_at_once():
    script = """
        taken = socket.create_server(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        try:
            if repaired:
                osken_hub.start(OSKenApp, Address(port=port))
            else:
                cfg.CONF.set_override("ofp_listen_host", "127.0.0.1")
                cfg.CONF.set_override("ofp_tcp_listen_port", port)
                AppManager().instantiate(ofp_handler.OFPHandler).start()
            print("started, and deaf", flush=True)
        except OSError as error:
            print(os.strerror(error.errno), flush=True)
        os._exit(0)
    """
    assert outcome(script, repaired=False) == "started, and deaf"
    assert outcome(script, repaired=True) == "Address already in use"


@contextlib.contextmanager
def listening() -> Iterator[tuple[Listener, list[Any]]]:
    """A listener that serves, and what it logs."""
    with capture_logs() as logs:
        listener = Listener(Address(port=0))
        serving = threading.Thread(target=listener, daemon=True)
        serving.start()
        try:
            yield listener, logs
        finally:
            listener.close()
            serving.join(10)
            assert not serving.is_alive()


def is_ended(one: socket.socket) -> bool:
    """Whether the other end has hung up, once it has."""
    one.settimeout(20)
    with contextlib.suppress(ConnectionResetError):
        while one.recv(1_000):
            pass
    return True


def stranger(listener: Listener, source: str = "127.0.0.1") -> socket.socket:
    """A connection."""
    return socket.create_connection(("127.0.0.1", listener.port), source_address=(source, 0))


HELLO = bytes.fromhex("0400000800000001")  # of OpenFlow 1.3


def test_bytes_that_are_no_openflow_end_their_connection_and_not_its_thread():
    nonsense = {
        "no OpenFlow: it begins with ffff": b"\xff\xff\x00\x08\xff\xff\xff\xff",
        "it speaks TLS, this port does not": b"\x16\x03\x01",
        "no OpenFlow 1.3: OFPUnknownVersion": HELLO + b"\xff\xff\x00\x08\xff\xff\xff\xff",
    }
    with listening() as (listener, logs):
        for why, said in nonsense.items():
            with stranger(listener) as one:
                one.sendall(said)
                assert is_ended(one)
            eventually(lambda why=why: any(why in each["error"] for each in logs), within_s=10, what=why)
        assert {each["event"] for each in logs} == {"openflow.connection_failed"}


def test_who_says_nothing_or_not_all_of_it_costs_no_thread_for_long_and_is_cut_off(monkeypatch):
    monkeypatch.setattr(visitors, "SWITCH_WITHIN_S", 2.0)
    monkeypatch.setattr(listener_module, "SWITCH_WITHIN_S", 2.0)
    with listening() as (listener, _), stranger(listener) as silent, stranger(listener) as half:
        half.sendall(HELLO)
        eventually(lambda: len(listener._visitors.served()) == 1, within_s=10, what="the half one is served")
        assert is_ended(silent)
        assert is_ended(half)
        eventually(lambda: not listener._visitors.served(), within_s=10, what="nobody is served")


@pytest.mark.parametrize(
    ("state", "is_late"),
    [(HANDSHAKE_DISPATCHER, True), (CONFIG_DISPATCHER, True), (MAIN_DISPATCHER, False), (DEAD_DISPATCHER, False)],
)
def test_a_switch_whose_connection_ends_is_none_that_came_late(state, is_late):
    """Its end takes round trips by TLS."""
    known = visitors.Visitors()
    with socket.socket() as unused:
        visitor = visitors.Visitor(unused, ("192.0.2.7", 4711), "192.0.2.7", 0.0, datapath=SimpleNamespace(state=state))
        known.came(visitor)
        assert known.begins(visitor)
        assert known.late(visitors.SWITCH_WITHIN_S + 1) == ((visitor,) if is_late else ())


def test_a_flood_from_one_address_is_bounded_and_takes_no_place_of_another():
    with listening() as (listener, logs), contextlib.ExitStack() as open_ones:
        threads = threading.active_count()
        flood = [open_ones.enter_context(stranger(listener, "127.0.0.2")) for _ in range(3 * visitors.MOST_OF_ONE)]
        for one in flood:
            with contextlib.suppress(ConnectionError):  # some had to leave
                one.sendall(HELLO)
        honest = open_ones.enter_context(stranger(listener))
        honest.sendall(HELLO)
        honest.settimeout(20)
        assert honest.recv(8)[1] == 0, "no hello"
        assert threading.active_count() - threads <= 3 * (visitors.MOST_OF_ONE + 1)
        assert len([each for each in logs if each["peer"].startswith("127.0.0.2:")]) <= 5, (
            "it is said once, and counted"
        )


def test_an_os_ken_that_the_repairs_were_not_tried_on_is_refused(monkeypatch):
    monkeypatch.setattr(osken_hub, "KNOWN_VERSIONS", ("3.1.0",))
    with pytest.raises(FrameworkUnknown, match=r"need os-ken 3\.1\.0"):
        osken_hub.repair()


def test_another_hub_is_refused(monkeypatch):
    monkeypatch.setattr(osken_hub.hub, "HUB_TYPE", "eventlet")
    with pytest.raises(FrameworkUnknown, match="eventlet"):
        osken_hub.repair()


def test_messages_that_are_sent_together_arrive_whole_and_in_their_order():
    script = """
        from os_ken.ofproto.ofproto_v1_3_parser import OFPBarrierRequest
        from controller.southbound.openflow.osken_datapath import PIECE_BYTES
        server = socket.create_server(("127.0.0.1", 0))
        switch = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
        datapath = Datapath(ours, "test")
        asked = [OFPBarrierRequest(datapath) for _ in range(PIECE_BYTES // 3)]  # of 8 bytes each
        xids = [datapath.set_xid(message) for message in asked]
        threading.Thread(target=datapath._send_loop, daemon=True).start()
        said = [datapath.send_together(asked), datapath.send_together([])]
        got = switch.makefile("rb").read(8 * len(asked))
        same = [int.from_bytes(got[at + 4 : at + 8], "big") for at in range(0, len(got), 8)] == xids
        datapath.send_q = None  # as when the loop has ended
        print(said, same, datapath.send_together(asked[:1]), flush=True)
    """
    assert outcome(script, repaired=True) == "[True, True] True False"


def test_a_full_send_queue_is_no_obstacle_to_the_end():
    script = """
        server = socket.create_server(("127.0.0.1", 0))
        switch = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
        datapath = Datapath(ours, "test")
        serving = threading.Thread(target=datapath.serve, daemon=True)
        serving.start()
        def flood():
            while datapath.send(bytes(1 << 20)):
                pass
        flooding = threading.Thread(target=flood, daemon=True)
        flooding.start()
        time.sleep(0.2)
        switch.close()
        serving.join(timeout=5); flooding.join(timeout=5)
        print(serving.is_alive(), flooding.is_alive(), flush=True)
    """
    assert outcome(script, repaired=True) == "False False"


def test_stopping_frees_the_port_and_starting_again_works():
    script = """
        class App(OSKenApp): pass
        for _ in range(2):
            running = osken_hub.start(App, Address(port=0))
            port = running.port
            socket.create_connection(("127.0.0.1", port)).close()
            running.stop()
            socket.create_server(("127.0.0.1", port)).close()
        print("twice", flush=True)
    """
    assert outcome(script, repaired=True) == "twice"


def test_an_application_that_does_not_start_leaves_no_port_open():
    script = """
        class App(OSKenApp):
            def __init__(self): raise ValueError("a bug")
        port = socket.create_server(("127.0.0.1", 0)).getsockname()[1]
        try:
            osken_hub.start(App, Address(port=port))
        except ValueError:
            socket.create_server(("127.0.0.1", port)).close()
            print("free", flush=True)
    """
    assert outcome(script, repaired=True) == "free"
