"""Who is the master of a real Open vSwitch, beside a second controller that is played by the test."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controller.southbound.errors import SwitchGone, SwitchRefused
from controller.southbound.openflow.state import SwitchState, drop_meter
from mininet_tests.site.userspace_switch import BRIDGE, DPID, NEEDS_OVS, connected_switch, in_switch_namespace
from mininet_tests.testing.eventually import eventually

pytestmark = NEEDS_OVS

SMALL, LARGE = (SwitchState(meters=frozenset({drop_meter(1000, rate, 1000)})) for rate in (1_000_000, 9_000_000))
PORT = 6699  # of the switch, for the second controller
_HEADER = struct.Struct("!BBHI")  # OpenFlow 1.3, section 7.1: version, type, length, xid
_ROLE = struct.Struct("!I4xQ")  # section 7.3.9: role, generation_id
_VERSION, _HELLO, _ERROR, _ROLE_REQUEST, _ROLE_REPLY, _MASTER = 4, 0, 1, 24, 25, 2


class SecondController:
    """Asks for roles, and does nothing else."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.sendall(_HEADER.pack(_VERSION, _HELLO, _HEADER.size, 1))

    def becomes_master(self, term: int) -> bool:
        """Ask to be the master under a term; return whether the switch agrees."""
        size = _HEADER.size + _ROLE.size
        self._connection.sendall(_HEADER.pack(_VERSION, _ROLE_REQUEST, size, 2) + _ROLE.pack(_MASTER, term))
        while True:
            _, kind, length, _ = _HEADER.unpack(self._exactly(_HEADER.size))
            self._exactly(length - _HEADER.size)
            if kind in {_ERROR, _ROLE_REPLY}:
                return kind == _ROLE_REPLY

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._connection.recv(size - len(data))
            assert more, "the switch has ended the connection"
            data += more
        return data


@contextmanager
def second_controller() -> Iterator[SecondController]:
    """Connect to the switch, which listens for it."""
    with in_switch_namespace():
        connection = eventually(dialled, within_s=10, what="the switch listens")
    with connection:
        connection.settimeout(10)
        yield SecondController(connection)


def dialled() -> socket.socket | None:
    """Return a connection to the switch; None while it does not listen yet."""
    try:
        return socket.create_connection(("127.0.0.1", PORT))
    except ConnectionRefusedError:
        return None


def test_a_switch_obeys_the_controller_of_the_latest_term_and_no_other(tmp_path):
    with connected_switch(tmp_path) as switch:
        switch.sessions.apply(DPID, SMALL, timeout_s=5)
        first = switch.ovs.vsctl("get-controller", BRIDGE).strip()
        switch.ovs.vsctl("set-controller", BRIDGE, first, f"ptcp:{PORT}:127.0.0.1")
        with second_controller() as other:
            assert not other.becomes_master(1)  # of the past
            assert switch.sessions.still_obeying(timeout_s=5) == {DPID}
            switch.sessions.apply(DPID, LARGE, timeout_s=5)
            assert other.becomes_master(1 << 60)
            assert switch.sessions.still_obeying(timeout_s=5) == frozenset()
            with pytest.raises(SwitchRefused, match="OFPBRC_IS_SLAVE"):
                switch.sessions.apply(DPID, SMALL, timeout_s=5)
            meters = switch.ovs.ofctl("-O", "OpenFlow13", "dump-meters", BRIDGE)
            assert "rate=9000" in meters
            # It calls again, and is asked in vain.
            eventually(lambda: len(switch.listener.lost) >= 2, within_s=30, what="the switch has called again")
            with pytest.raises(SwitchGone):
                switch.sessions.apply(DPID, SMALL, timeout_s=0.1)
