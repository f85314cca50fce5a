"""The sockets at which switches, agents and users of the API find the controller."""

import socket
from pathlib import Path


def listening_at(host: str, port: int, backlog: int) -> socket.socket:
    """Return a TCP socket that listens; at ``::`` for both families, as a site's hosts may have either.

    Who comes by IPv4 has an IPv4-mapped address there (RFC 4291 section 2.5.5.2).

    Args:
        host: IPv4 or IPv6 address, or a name of this machine; empty for all IPv4 addresses.
        port: TCP port; 0 lets the system choose one.
        backlog: how many may call at once.

    Raises:
        OSError: the port is taken, or the address is not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    is_all = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=backlog, dualstack_ipv6=is_all)


def cannot_listen(whom: str, address: object, error: OSError) -> OSError:
    """Return an error that says for whom, and where, nobody can listen, and why.

    >>> cannot_listen("agents", "192.0.2.1:50051", OSError(99, "Cannot assign requested address"))
    OSError('cannot listen for agents at 192.0.2.1:50051: Cannot assign requested address')
    """
    found = OSError(f"cannot listen for {whom} at {address}: {error.strerror or error}")
    found.errno = error.errno
    return found


def answers(path: Path) -> bool:
    """Return whether somebody listens at a path; a dead process may have left its socket there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        return asking.connect_ex(str(path)) == 0
