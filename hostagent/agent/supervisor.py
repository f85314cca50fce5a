"""What the agent and the service manager say to each other: systemd's notify protocol, without a library.

Source: sd_notify(3), sd_listen_fds(3). Each message is one datagram of ``NAME=value`` lines to ``$NOTIFY_SOCKET``. What
is in the descriptor store survives a killed agent: without CAP_SYS_ADMIN nobody could find its BPF maps again.
"""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from hostagent.log import log

FIRST_DESCRIPTOR = 3  # SD_LISTEN_FDS_START
NAME_PREFIX = "headway-"


@dataclass(frozen=True, slots=True)
class Supervisor:
    """The one that started this process.

    Attributes:
        address: where it listens, empty if nobody does.
        inherited: descriptors that it kept for us, by the name we gave them.
    """

    address: str | bytes
    inherited: Mapping[str, int]

    @classmethod
    def of_this_process(cls, environment: Mapping[str, str]) -> Self:
        """Return what the environment tells of it."""
        named = environment.get("NOTIFY_SOCKET", "")
        address = b"\0" + named[1:].encode() if named.startswith("@") else named
        return cls(address, inherited(environment, os.getpid()))

    def ready(self, status: str) -> None:
        """Say that the service is up, and how it is."""
        self._say(f"READY=1\nSTATUS={status}")

    def alive(self, status: str) -> None:
        """Say that the service works; if this is not heard for WatchdogSec, it is killed and started again."""
        self._say(f"WATCHDOG=1\nSTATUS={status}")

    def stopping(self) -> None:
        """Say that the service ends."""
        self._say("STOPPING=1")

    def keep(self, descriptors: Mapping[str, int]) -> None:
        """Have descriptors kept for the next process, in place of those that were kept under their names."""
        for name, descriptor in descriptors.items():
            self._say(f"FDSTOREREMOVE=1\nFDNAME={NAME_PREFIX}{name}")
            # A BPF map answers poll with an error, on which systemd would drop it.
            self._say(f"FDSTORE=1\nFDPOLL=0\nFDNAME={NAME_PREFIX}{name}", descriptor)

    def forget(self, descriptors: Mapping[str, int]) -> None:
        """Have descriptors given up: what they led to is gone."""
        for name in descriptors:
            self._say(f"FDSTOREREMOVE=1\nFDNAME={NAME_PREFIX}{name}")

    def _say(self, message: str, *descriptors: int) -> None:
        """Send one message; a service manager that is gone does not stop the service."""
        if not self.address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(1)
                sender.connect(self.address)
                if descriptors:
                    socket.send_fds(sender, [message.encode()], list(descriptors))
                else:
                    sender.send(message.encode())
        except OSError as error:
            log.warning("supervisor.gone", why=str(error), message=message.partition("\n")[0])


def inherited(environment: Mapping[str, str], pid: int) -> dict[str, int]:
    """Return the kept descriptors that are ours by their names, without our prefix; all others are closed.

    Args:
        environment: this process's.
        pid: this process's; descriptors meant for another (a parent that was started with them) are left alone.
    """
    if environment.get("LISTEN_PID") != str(pid):
        return {}
    ours: dict[str, int] = {}
    names = environment.get("LISTEN_FDNAMES", "").split(":")
    for offset in range(int(environment.get("LISTEN_FDS", "0"))):
        descriptor = FIRST_DESCRIPTOR + offset
        name = names[offset] if offset < len(names) else ""
        if not name.startswith(NAME_PREFIX) or name.removeprefix(NAME_PREFIX) in ours:
            os.close(descriptor)
            continue
        os.set_inheritable(descriptor, False)
        ours[name.removeprefix(NAME_PREFIX)] = descriptor
    return ours
