"""Interfaces that converge: several senders' NICs on the near end of the long line, each with a rate of its own.

    nic1 --+
    nic2 --+-- near -- far -- receiver
    ...  --+

They are in one namespace with one agent, which holds an allocation for each; the port they meet at sees no difference
to as many hosts.
"""

import socket
import struct
from dataclasses import dataclass

from mininet_tests.site.command import run
from mininet_tests.site.long_line import LongLine
from mininet_tests.site.tcp_flows import TcpStream

SUBNET = "10.78"
FIRST_PORT = 6000
NIC_LIMIT_BYTES = 100_000_000  # a host's own queue: it never drops here
LEAST_BURST_BYTES = 3028  # two frames
# Of the interface's rate: while the CPU cuts a super-packet, the bucket must not run over.
BURST_S = 0.0001
SEND_BUFFER_BYTES = 1 << 27  # whatever the window, it can be written at once; the agent sets tcp_wmem as it needs it
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # asm-generic/socket.h
ABORTED = struct.pack("ii", 1, 0)  # SO_LINGER: close by a reset
SENDER_SYSCTLS = {
    "net.ipv4.tcp_congestion_control": "reno",  # slow start without HyStart, as in 2003, and without pacing
}


@dataclass(frozen=True, slots=True)
class Nic:
    """One sender's interface, and the port its connection has there."""

    number: int

    @property
    def device(self) -> str:
        """Its name on the sender's side."""
        return f"nic{self.number}"

    @property
    def address(self) -> str:
        """The sender's address there."""
        return f"{SUBNET}.{self.number}.1"

    @property
    def gateway(self) -> str:
        """The near end's address there."""
        return f"{SUBNET}.{self.number}.254"

    @property
    def port(self) -> int:
        """Where the sender listens on it."""
        return FIRST_PORT + self.number


class Nics:
    """The interfaces, on a line that is there already."""

    def __init__(self, line: LongLine, count: int, *, single_packets: bool = True) -> None:
        """Add them.

        Args:
            line: the line; it takes them down with itself.
            count: how many.
            single_packets: no super-packets on them.
        """
        self._single_packets = single_packets
        self.line = line
        self.nics = [Nic(number) for number in range(1, count + 1)]
        line.sender.set(SENDER_SYSCTLS)
        line.far.run("ip", "route", "add", f"{SUBNET}.0.0/16", "via", "10.77.9.1")
        for nic in self.nics:
            self._add(nic)

    def _add(self, nic: Nic) -> None:
        far_end, gateway = f"lan{nic.number}", nic.gateway
        macs = [f"02:00:00:01:{nic.number:02x}:{end:02x}" for end in (1, 2)]
        peer = ("peer", far_end, "address", macs[1], "netns", "near")
        run("ip", "-n", "sender", "link", "add", nic.device, "address", macs[0], "type", "veth", *peer)
        ends = (("sender", nic.device, nic.address, gateway, macs[1]), ("near", far_end, gateway, nic.address, macs[0]))
        for place, device, own, other, mac in ends:
            commands = (
                f"link set {device} addrgenmode none",
                f"link set {device} up",
                f"address add {own}/24 dev {device}",
                f"neighbour add {other} lladdr {mac} dev {device} nud permanent",
            )
            run("ip", "-n", place, "-batch", "-", text="\n".join(commands))
            if self._single_packets:
                off = ("tso", "off", "gso", "off", "gro", "off")
                run("ip", "netns", "exec", place, "ethtool", "-K", device, *off)

    def set_rate(self, count: int, frame_bps: int, burst_s: float = BURST_S) -> None:
        """Give the first ``count`` interfaces a rate, counted in Ethernet frames."""
        burst_bytes = max(LEAST_BURST_BYTES, int(frame_bps / 8 * burst_s))
        parameters = ["tbf", "rate", f"{frame_bps}bit", "burst", str(burst_bytes), "limit", str(NIC_LIMIT_BYTES)]
        batch = [f"qdisc replace dev {nic.device} root handle 1: {' '.join(parameters)}" for nic in self.nics[:count]]
        self.line.sender.run("tc", "-batch", "-", text="\n".join(batch))

    def set_window(self, count: int, initial_segments: int | None, largest_segments: int | None = None) -> None:
        """Set the windows of new connections on the first ``count``; None for the kernel's own, and for no limit."""
        options = "" if initial_segments is None else f" initcwnd {initial_segments}"
        options += "" if largest_segments is None else f" cwnd lock {largest_segments}"
        batch = [
            f"route replace default via {SUBNET}.{nic.number}.254 dev {nic.device} metric {nic.number + 10}{options}"
            for nic in self.nics[:count]
        ]
        self.line.sender.run("ip", "-batch", "-", text="\n".join(batch))

    def bound(self, nic: Nic, kind: socket.SocketKind) -> socket.socket:
        """Return a socket that sends by an interface only."""
        end = self.line.sender.inside(lambda: socket.socket(socket.AF_INET, kind))
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, nic.device.encode())
        end.bind((nic.address, nic.port))
        return end

    def connected(self, count: int, receive_bytes: int | None = None) -> list[TcpStream]:
        """Return a new connection by each of the first ``count``; the receiver connects, so its window is open.

        Args:
            count: of interfaces.
            receive_bytes: what the receiver's buffer is to hold; None for the kernel's own choice.
        """
        return [self._connected(nic, receive_bytes) for nic in self.nics[:count]]

    def abort(self, stream: TcpStream) -> None:
        """Close a connection by a reset: what is under way is forgotten."""
        stream.sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORTED)
        stream.close()

    def _connected(self, nic: Nic, receive_bytes: int | None) -> TcpStream:
        listener = self.bound(nic, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER_BYTES)  # who is accepted has it too
        listener.listen(1)
        receiver = self.line.receiver.inside(socket.socket)
        if receive_bytes is not None:  # before the handshake, which says how the window is scaled
            receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, receive_bytes)
        receiver.connect((nic.address, nic.port))
        sender, _ = listener.accept()
        listener.close()
        for end in (sender, receiver):
            end.setblocking(False)
        return TcpStream(sender, receiver)
