"""Hosts' agents as the controller hears them: they confirm what they are told, and say what a test lets them say."""

import contextlib
import ssl
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from topology.protocol import ATTACH_PATH, Applied, Hello, parsed_allocations, to_bytes
from topology.telemetry import EntryTelemetry, Telemetry

EVERY_S = 0.2


def agent_tls(pki: Path, host: str) -> ssl.SSLContext:
    """Return what a host's agent shows, and whom it believes, by the folder with the certificates of all."""
    context = ssl.create_default_context(cafile=pki / "ca.pem")
    context.load_cert_chain(pki / "agents" / f"{host}.pem", pki / "agents" / f"{host}.key")
    return context


@dataclass(slots=True)
class SpokenAgent:
    """One of them, with a thread of its own.

    Attributes:
        host: whose.
        address: where the controller listens for agents.
        pki: the folder with the certificates of all.
        fallback: what every entry is said to have fallen back for.
        failures: what nobody has foreseen.
    """

    host: str
    address: str
    pki: Path
    fallback: Literal["", "loss"] = ""
    failures: list[str] = field(default_factory=list)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> Self:
        """Call the controller."""
        self._end.clear()
        self._thread = threading.Thread(target=self._noting, daemon=True)
        self._thread.start()
        return self

    def end(self) -> None:
        """Hang up."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    def _noting(self) -> None:
        try:
            self._speak()
        except (OSError, WebSocketException, ValueError) as error:
            self.failures.append(f"{self.host}: {type(error).__name__}: {error}")

    def _speak(self) -> None:
        context, address = agent_tls(self.pki, self.host), f"wss://{self.address}{ATTACH_PATH}"
        with connect(address, ssl=context, proxy=None, compression=None) as stream:
            stream.send(to_bytes(Hello(self.host, "0", "6.12", 0)), text=True)
            epoch, names = 0, tuple[str, ...]()
            while not self._end.is_set():
                with contextlib.suppress(TimeoutError):
                    told = parsed_allocations(stream.recv(timeout=EVERY_S, decode=False))
                    if told.epoch != epoch:
                        epoch, names = told.epoch, tuple(entry.name for entry in told.entries)
                        stream.send(to_bytes(Applied(epoch)), text=True)
                stream.send(to_bytes(Telemetry(epoch, 1000, self._entries(names))), text=True)

    def _entries(self, names: Iterable[str]) -> tuple[EntryTelemetry, ...]:
        return tuple(EntryTelemetry(name, 1, 1, 0, 0, 0, 180_000, self.fallback) for name in names)
