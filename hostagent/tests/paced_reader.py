"""A program that reads no faster than it is told to: what a receiver with a slow disk looks like from outside."""

import contextlib
import socket
import threading
import time

from hostagent.tests.rig import MBIT, NamespaceHost, connected, end_both

READ_BYTES = 16_384


class PacedReader:
    """One connection: its sender always has something to send, its reader reads at a rate, or as fast as it can."""

    def __init__(self, source: NamespaceHost, sink: NamespaceHost, mbps: float | None, buffer_bytes: int = 0) -> None:
        self.sender, self.receiver = connected(source, sink)
        self.mbps = mbps
        self.read_bytes = 0
        if buffer_bytes:
            self.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self.port: int = self.receiver.getsockname()[1]
        self._threads = [threading.Thread(target=work) for work in (self._fill, self._read)]
        for thread in self._threads:
            thread.start()

    def _fill(self) -> None:
        block = bytes(1 << 18)
        with contextlib.suppress(OSError):
            while True:
                self.sender.sendall(block)

    def _read(self) -> None:
        block, due_s = bytearray(READ_BYTES), time.monotonic()
        with contextlib.suppress(OSError):
            while got := self.receiver.recv_into(block):
                self.read_bytes += got
                if self.mbps is not None:
                    due_s = max(due_s, time.monotonic() - 0.1) + got * 8 / (self.mbps * MBIT)
                    time.sleep(max(0.0, due_s - time.monotonic()))

    def close(self) -> None:
        """End both ends."""
        end_both(self.sender, self.receiver, self._threads)
