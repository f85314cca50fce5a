"""The lines of circuits, whose ends can be pulled out of a running site and put back."""

import fcntl
import socket
import struct
import subprocess

from mininet_tests.site.emulation import Emulation, now_us
from mininet_tests.site.topos import wire_port
from mininet_tests.site.wiring import in_namespace

IFF_UP, SIOCSIFFLAGS = 1, 0x8914  # netdevice(7)
BOTH_ENDS = (0, 1)  # 0 is the senders'


class CircuitCable:
    """The line of a circuit, whose ends can be pulled out; one call of the kernel each, no program is started."""

    def __init__(self, site: Emulation, circuit: str) -> None:
        self._socket: socket.socket = in_namespace(site.realised.wires[circuit].pid, socket.socket)
        links = [link for _, _, link in site.realised.network.circuit_links if link.circuit == circuit]
        self._ends = [wire_port(link).encode() for link in links]

    def pull(self, ends: tuple[int, ...]) -> int:
        """Take the carrier from ends; return when, before the first of them had lost it."""
        at_us = now_us()
        for end in ends:
            self._set_flags(self._ends[end], 0)
        return at_us

    def plug(self) -> None:
        """Give all ends their carrier again."""
        for end in self._ends:
            self._set_flags(end, IFF_UP)

    def _set_flags(self, end: bytes, flags: int) -> None:
        fcntl.ioctl(self._socket, SIOCSIFFLAGS, struct.pack("16sh14x", end, flags))


class InterfaceCable:
    """The line of a host's interface, which can be cut: nothing arrives any more by it, and nobody is told."""

    def __init__(self, site: Emulation, interface: str, far: str) -> None:
        network, net = site.realised.network, site.realised.net
        self._address = str(network.host(interface).ip)
        self._pids = [net[network.machine(name)].pid for name in (interface, far)]

    def pull(self, ends: tuple[int, ...] = BOTH_ENDS) -> int:
        """Cut it at ends, 0 is its own; return when, before it was."""
        at_us = now_us()
        dropped = f"ip saddr {self._address} drop\nip daddr {self._address} drop"
        chain = f"chain cut {{\ntype filter hook prerouting priority -400;\n{dropped}\n}}"
        self._ruled(f"table inet headway-cut {{\n{chain}\n}}\n", ends)
        return at_us

    def plug(self) -> None:
        """Join it again, when both ends have been cut."""
        self._ruled("delete table inet headway-cut\n", BOTH_ENDS)

    def _ruled(self, rules: str, ends: tuple[int, ...]) -> None:
        for end in ends:
            command = ["mnexec", "-a", str(self._pids[end]), "nft", "-f", "-"]
            subprocess.run(command, input=rules, text=True, check=True)
