"""Addresses and ports of loopback that tests beside each other do not take from one another."""

import contextlib
import itertools
import os
import socket

OWN = f"127.1.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"  # connections of others have the ports of 127.0.0.1
OWN_PORTS, OF_A_WORKER = 20_000, 1_000  # below those that Linux gives away (net.ipv4.ip_local_port_range)
_ports = itertools.count(os.getpid())


def free_port() -> int:
    """Return a port of loopback that nobody listens at, and that nobody is given who asks the kernel for any."""
    first = OWN_PORTS + OF_A_WORKER * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        with (
            contextlib.suppress(OSError),
            socket.create_server(("127.0.0.1", first + next(_ports) % OF_A_WORKER)) as bound,
        ):
            return int(bound.getsockname()[1])
