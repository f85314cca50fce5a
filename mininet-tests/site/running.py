"""A controller as a process of its own, without switches and agents: what durability and speed are tested on."""

import contextlib
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from mininet_tests.site.command import HEADWAY
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.loopback import free_port
from mininet_tests.testing.networks import chile_illinois
from topology.network_text import section_of
from topology.units import rate_bps

UP_WITHIN_S = 120.0  # 4 s of a processor that is its own; others may want it too


@dataclass(slots=True)
class Running:
    """A controller that can be killed and started again on the same database.

    Attributes:
        config: its configuration file.
        url: its REST API.
        process: the process, None while it is down.
        trusts: what is believed of its REST API, if that speaks TLS.
        token: that is shown to it, if it must be.
        inside: what stands before its command, of a machine of its own.
        begun_at: where in its log the last start begins.
    """

    config: Path
    url: str
    process: subprocess.Popen[bytes] | None = None
    trusts: ssl.SSLContext | None = None
    token: str = ""
    inside: tuple[str, ...] = ()
    begun_at: int = 0

    @property
    def pid(self) -> int:
        """The process's number.

        Raises:
            RuntimeError: it is down.
        """
        if self.process is None:
            raise RuntimeError("the controller is down")
        return self.process.pid

    def start(self) -> None:
        """Start it, and return once it answers."""
        self.begin()
        eventually(self._answers, within_s=UP_WITHIN_S, what=f"the controller answers ({self.config})")

    def begin(self) -> None:
        """Start it, and return at once."""
        with self.config.with_suffix(".log").open("ab") as log:
            self.begun_at = log.tell()
            command = [*self.inside, str(HEADWAY), "controller", "--config", str(self.config)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _answers(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            tail = self.config.with_suffix(".log").read_text(errors="replace")[-2000:]
            raise AssertionError(f"the controller ended with {self.process.returncode}:\n{tail}")
        with contextlib.suppress(httpx.TransportError), self.http(timeout_s=5) as http:
            return http.get("/v1/topology").status_code == 200
        return False

    def http(self, timeout_s: float) -> httpx.Client:
        """Return what asks its REST API."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        is_tls = self.url.startswith("https:")  # to read the system's authorities takes 30 ms of a processor
        return httpx.Client(base_url=self.url, timeout=timeout_s, verify=self.trusts or is_tls, headers=headers)

    def asks(self, method: str, path: str, timeout_s: float = 20.0, **more: Any) -> httpx.Response:
        """Return its answer to one request over REST; ``more`` is httpx's.

        Raises:
            httpx.TransportError: there is none.
        """
        with self.http(timeout_s) as http:
            return http.request(method, path, **more)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it by a signal."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(20)
            self.process = None


def is_well(http: httpx.Client) -> bool:
    """Return whether a controller has nothing to complain of, and every host's agent."""
    health = http.get("/healthz").json()
    return bool(health["ok"]) and not health["hosts_missing"]


@contextlib.contextmanager
def running(
    directory: Path,
    database: str,
    inside: tuple[str, ...] = (),
    *,
    rate: str = "10 Gbit/s",
    trusts: ssl.SSLContext | None = None,
    token: str = "",
    **more: object,
) -> Iterator[Running]:
    """Give a controller of the two-site network on a database; it is ended afterwards.

    Args:
        directory: of its configuration and its log.
        database: the database's URL.
        inside: what stands before its command, of a machine of its own; then all of ``listen`` must be said.
        rate: of the circuit.
        trusts: what is believed of its REST API, which then speaks TLS.
        token: that is shown to it.
        more: of its configuration; what ``listen`` does not say is at free ports.
    """
    said = more.pop("listen", {})
    assert isinstance(said, dict)  # noqa: S101 (for mypy)
    listen = {name: f"127.0.0.1:{free_port()}" for name in ("openflow", "rest", "agents")} | said
    config = directory / "controller.yaml"
    network = section_of(chile_illinois(rate_bps(rate)))
    config.write_text(yaml.safe_dump({"network": network, "listen": listen, "store": database, **more}))
    one = Running(config, f"http{'s' if trusts else ''}://{listen['rest']}", None, trusts, token, inside)
    try:
        one.start()
        yield one
    finally:
        one.end(signal.SIGKILL if sys.exc_info()[0] else signal.SIGTERM)
        if "HEADWAY_SHOW_LOGS" in os.environ:
            sys.stderr.write(config.with_suffix(".log").read_text(errors="replace"))
