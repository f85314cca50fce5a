"""Who is connected to the switches' port: so many at once, and each for so long until it is a switch.

Who has not said a word costs a descriptor and no thread; os-ken takes three threads for each that has.
"""

import socket
import threading
from dataclasses import dataclass
from typing import Any

from os_ken.base import app_manager  # noqa: F401 - must come before os_ken.controller: they import each other
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER

from controller.security.connections import OpenConnections, Places
from controller.security.tls import shown_dpid, shown_serial

MOST, MOST_OF_ONE = 512, 128  # of those that are silent, and again of those that are served
PER_S, BURST_US = 256, 500_000  # connections of an address
SWITCH_WITHIN_S = 5.0  # from the connection to its features reply; a switch says all of it at once
_HELLO, _TLS_HANDSHAKE = 0, 0x16  # OFPT_HELLO; RFC 8446 section 5.1
_VERSIONS = range(1, 7)  # of OpenFlow, on the wire


@dataclass(eq=False, slots=True)
class Visitor:
    """A connection.

    Attributes:
        connected: its socket.
        peer: its other end.
        network: those whose connections count together.
        since_s: when it came, monotonic.
        serial: of its certificate; 0 as long as there is none.
        datapath: os-ken's, once it speaks OpenFlow.
    """

    connected: socket.socket
    peer: Any
    network: str
    since_s: float
    serial: int = 0
    datapath: Any = None

    @property
    def gives_way(self) -> bool:
        """Whether it may be ended for another: all that are only waited for."""
        return True

    @property
    def is_switch(self) -> bool:
        """Whether it has finished the OpenFlow handshake; its connection may be ending by now."""
        return self.datapath is not None and self.datapath.state in {MAIN_DISPATCHER, DEAD_DISPATCHER}

    def end(self) -> None:
        """End it at once; who serves it is woken."""
        try:
            self.connected.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it has ended already


class Visitors:
    """All of them. Any thread may call."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._silent = OpenConnections[Visitor](most, most_of_one)
        self._places = Places(most, most_of_one)
        self._served: set[Visitor] = set()
        self._lock = threading.Lock()

    def came(self, visitor: Visitor) -> Visitor | None:
        """Take one in that has said nothing yet; return who must leave for it, None if there is room."""
        with self._lock:
            return self._silent.came(visitor, visitor.network)

    def begins(self, visitor: Visitor) -> bool:
        """Note that it has said something; return whether there is a place for it."""
        with self._lock:
            self._silent.went(visitor)
            if not self._places.take(visitor.network):
                return False
            self._served.add(visitor)
            return True

    def went(self, visitor: Visitor) -> None:
        """Forget one."""
        with self._lock:
            self._silent.went(visitor)
            if visitor in self._served:
                self._served.remove(visitor)
                self._places.leave(visitor.network)

    def served(self) -> tuple[Visitor, ...]:
        """Return those that are served."""
        with self._lock:
            return tuple(self._served)

    def late(self, now_s: float) -> tuple[Visitor, ...]:
        """Return those that are served and should be switches by now."""
        return tuple(each for each in self.served() if now_s - each.since_s > SWITCH_WITHIN_S and not each.is_switch)


def why_no_switch(first: bytes, *, by_tls: bool) -> str:
    """Return why what begins with some bytes is no switch; empty if it may be one.

    >>> why_no_switch(bytes.fromhex("0400"), by_tls=False), why_no_switch(bytes.fromhex("1603"), by_tls=True)
    ('', '')
    >>> why_no_switch(b"GE", by_tls=False)
    'no OpenFlow: it begins with 4745'
    >>> why_no_switch(bytes.fromhex("0600"), by_tls=True)
    'it speaks OpenFlow in plain text, this port TLS: ovs-vsctl set-controller BRIDGE ssl:...'
    >>> why_no_switch(bytes.fromhex("1603"), by_tls=False)
    'it speaks TLS, this port does not'
    """
    is_hello = first[:1] and first[0] in _VERSIONS and first[1:2] in (b"", bytes([_HELLO]))
    is_tls = first[:1] == bytes([_TLS_HANDSHAKE])
    if by_tls:
        if is_hello:
            return "it speaks OpenFlow in plain text, this port TLS: ovs-vsctl set-controller BRIDGE ssl:..."
        return "" if is_tls else f"no TLS: it begins with {first.hex()}"
    if is_tls:
        return "it speaks TLS, this port does not"
    return "" if is_hello else f"no OpenFlow: it begins with {first.hex()}"


def certified_dpid(shown: Any, revoked: frozenset[int]) -> int:
    """Return the datapath id that a certificate is for, as :meth:`ssl.SSLSocket.getpeercert` shows it.

    Raises:
        ConnectionError: it is none of a switch, or revoked.
    """
    if shown_serial(shown) in revoked:
        raise ConnectionError("its certificate is revoked")
    dpid = shown_dpid(shown)
    if dpid is None:
        raise ConnectionError("its certificate is not that of a switch; make it by: headway pki switch")
    return dpid
