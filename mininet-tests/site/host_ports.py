"""New connections between hosts of a running site, opened while its long line is under way with others."""

import socket
import threading
import time

from mininet_tests.site.emulation import Emulation
from mininet_tests.site.tcp_flows import Drain, TcpStream
from mininet_tests.site.wiring import in_namespace

FIRST_PORT = 5401


class Ports:
    """Connections from hosts of the emulation to one of them, each at a port of its own."""

    def __init__(self, site: Emulation, receiver: str, drain: Drain) -> None:
        self._site, self._receiver, self._drain = site, receiver, drain
        self._next = FIRST_PORT

    def opened(self, host: str, *, drained: bool = True) -> TcpStream:
        """Return a new connection from a host to the receiver, as soon as the host has it.

        Args:
            host: which.
            drained: whether what arrives is read as it comes; else nobody reads it.
        """
        self._next += 1
        net, address = self._site.realised.net, (str(self._site.realised.network.host(self._receiver).ip), self._next)
        listener = in_namespace(net[self._receiver].pid, lambda: socket.create_server(address))
        stream = TcpStream(in_namespace(net[host].pid, lambda: socket.create_connection(address, timeout=20)), listener)
        stream.sender.setblocking(False)
        threading.Thread(target=self._accept, args=(stream, drained), daemon=True).start()
        return stream

    def _accept(self, stream: TcpStream, drained: bool) -> None:
        """Take a connection at its other end, half a round trip later."""
        listener = stream.receiver
        stream.receiver, _ = listener.accept()
        listener.close()
        if drained:
            stream.receiver.setblocking(False)
            stream.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 22)  # see tcp_flows.py
            self._drain.add([stream])

    def all_opened(self, hosts: tuple[str, ...]) -> list[TcpStream]:
        """Return a new connection from each host, opened at the same time."""
        found: dict[str, TcpStream] = {}
        threads = [threading.Thread(target=lambda h=h: found.update({h: self.opened(h)})) for h in hosts]
        for thread in threads:
            thread.start()
            time.sleep(0.001)  # so that each takes a port of its own
        for thread in threads:
            thread.join()
        return [found[h] for h in hosts]
