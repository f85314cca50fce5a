"""A transport that sends at once what is written in one turn of the event loop.

uvicorn writes the head of an answer and its body one after the other. Each would be a system call, a packet and a
record of TLS of its own, which is a tenth of what a short answer costs.
"""

import asyncio
from typing import Any

LARGE_BYTES = 1 << 16  # of what is written at once; it is not worth waiting with


class Joined:
    """Passes all on to a transport, and writes joined."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._written: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send some bytes at the end of this turn, or before the connection is closed."""
        if not self._written:
            self._loop.call_soon(self._send)
        self._written.append(data)
        if len(data) >= LARGE_BYTES:
            self._send()

    def close(self) -> None:
        """End the connection after all that was written."""
        self._send()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes are not sent yet."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._written))

    def __getattr__(self, name: str) -> Any:
        """Return what else a transport has."""
        return getattr(self._transport, name)

    def _send(self) -> None:
        written, self._written = self._written, []
        if written and not self._transport.is_closing():
            self._transport.write(b"".join(written))
