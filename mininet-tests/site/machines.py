"""Machines of their own for servers, each at the end of a cable on which packets can be lost: network namespaces."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from mininet_tests.site.command import run
from mininet_tests.testing.delayed_cable import DelayedCable, tap

LOSES_ALL = ("root", "pfifo", "limit", "0")  # a queue with room for nothing (tc-pfifo(8))


class CabledMachine:
    """A machine. It knows the way back to us, and over us to the others if we forward (:func:`forwards`).

    Args:
        number: of those that one process makes.
        rtt_s: of its cable, there and back, seconds.

    Attributes:
        name: of its network namespace.
        near: our address at the cable.
        address: its own.
        near6: our IPv6 address at the cable.
        address6: its own.
    """

    def __init__(self, number: int = 0, rtt_s: float = 0.0) -> None:
        self.name = f"hw{secrets.token_hex(4)}"  # namespaces have one folder, whatever else is isolated
        net = (os.getpid() + number) % 250
        self.near, self.address = f"198.18.{net}.1", f"198.18.{net}.2"  # RFC 2544 section C.2.2: for tests
        self.near6, self.address6 = f"2001:2:0:{net:x}::1", f"2001:2:0:{net:x}::2"  # RFC 5180 section 8: for tests
        self._rtt_s = rtt_s
        self._cable: DelayedCable | None = None

    @property
    def inside(self) -> tuple[str, ...]:
        """What stands before a command so that it runs there, in the same process."""
        return "ip", "netns", "exec", self.name

    def __enter__(self) -> Self:
        """Make it."""
        run("ip", "netns", "add", self.name)
        try:
            self._lay()
            run("ip", "address", "add", f"{self.near}/30", "dev", self.name)
            run("ip", "address", "add", f"{self.near6}/64", "dev", self.name, "nodad")
            run("ip", "-n", self.name, "address", "add", f"{self.address}/30", "dev", "eth")
            run("ip", "-n", self.name, "address", "add", f"{self.address6}/64", "dev", "eth", "nodad")
            run("ip", "link", "set", self.name, "up")
            for device in ("lo", "eth"):
                run("ip", "-n", self.name, "link", "set", device, "up")
            run("ip", "-n", self.name, "route", "add", "default", "via", self.near)
            if self._cable is not None:
                self._cable.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Take it away, its end of the cable with it."""
        if self._cable is not None:
            self._cable.close()
        run("ip", "netns", "delete", self.name)

    def _lay(self) -> None:
        """Lay the cable: an interface of ours by the machine's name, and ``eth`` there."""
        if not self._rtt_s:
            run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth", "netns", self.name)
            return
        far = f"{self.name}f"
        self._cable = DelayedCable((tap(self.name), tap(far)), self._rtt_s)
        run("ip", "link", "set", far, "netns", self.name, "name", "eth")

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Lose every packet from it and to it for a time: nothing arrives, and nobody is told, not even of a link."""
        run("tc", "qdisc", "add", "dev", self.name, *LOSES_ALL)
        run("tc", "-n", self.name, "qdisc", "add", "dev", "eth", *LOSES_ALL)
        try:
            yield
        finally:
            run("tc", "qdisc", "delete", "dev", self.name, "root")
            run("tc", "-n", self.name, "qdisc", "delete", "dev", "eth", "root")


def forwards() -> None:
    """Let machines reach each other over us; for a network namespace that is ours alone."""
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
