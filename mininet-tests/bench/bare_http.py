"""A bare HTTP client over one connection, which leaves the processor to the controller; and what to ask it for."""

import asyncio
import random
import time
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import urlsplit

YEAR_S = 365 * 86_400


class BareHttp:
    """One connection, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, url: str) -> Self:
        """Connect."""
        address = urlsplit(url)
        return cls(*await asyncio.open_connection(address.hostname, address.port))

    async def call(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        if method == "POST":
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(head.encode() + b"\r\n" + body)
        said = await self._reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in said.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return int(said[9:12]), await self._reader.readexactly(length)

    async def done(self, status: int, method: str, path: str, body: bytes = b"") -> bytes:
        """Return the body of an answer that has to have a status.

        Raises:
            AssertionError: it has another one.
        """
        found, answer = await self.call(method, path, body)
        if found != status:
            raise AssertionError(f"{method} {path}: {found} {answer!r}")
        return answer

    def close(self) -> None:
        """End the connection."""
        self._writer.close()


def reservation(chance: random.Random) -> dict[str, Any]:
    """Return the body of a request for a little bandwidth somewhere in the next year, 5 minutes to 4 hours."""
    start_s = time.time() + 3600 + chance.randrange(YEAR_S)
    return {
        "from": "la-serena",
        "to": "champaign",
        "class": "urgent",
        "rate_bps": chance.randrange(1, 1_000) * 1_000,
        "start": datetime.fromtimestamp(start_s, UTC).isoformat(),
        "duration_s": chance.randrange(300, 14_400),
    }
