"""What a host has for protocols that use several paths by themselves: Multipath TCP's endpoints, SCTP. Reads only."""

import platform
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from topology.addresses import Address
from topology.protocol import HostInterface

MODULES = Path("/lib/modules")
_SIGNAL, _SUBFLOW, _FULLMESH = 1, 2, 8  # MPTCP_PM_ADDR_FLAG_*, include/uapi/linux/mptcp_pm.h
_USED = _SIGNAL | _SUBFLOW | _FULLMESH  # an implicit endpoint has none of them: the kernel made it of a peer's subflow


@dataclass(frozen=True, slots=True)
class MptcpPaths:
    """What the kernel's path manager may do.

    Attributes:
        subflows: how many subflows a connection may have beside its first.
        accepted: how many addresses it takes from the other end (``add_addr_accepted``).
        endpoints: addresses of ours that are tried from, or told to the other end.
    """

    subflows: int
    accepted: int
    endpoints: tuple[Address, ...] = ()


def mptcp_paths() -> MptcpPaths | None:
    """Return the limits and endpoints of this network namespace; None if the kernel does not tell."""
    from pyroute2 import MPTCP, NetlinkError

    try:
        with MPTCP() as manager:
            (limits,) = manager.limits("show")
            found = [message.get_attr("MPTCP_PM_ATTR_ADDR") for message in manager.endpoint("show")]
    except (NetlinkError, OSError):  # no Multipath TCP, or not for us to see
        return None
    return MptcpPaths(
        subflows=limits.get_attr("MPTCP_PM_ATTR_SUBFLOWS"),
        accepted=limits.get_attr("MPTCP_PM_ATTR_RCV_ADD_ADDRS"),
        endpoints=tuple(
            ip_address(one.get_attr(f"MPTCP_PM_ADDR_ATTR_ADDR{4 if is_ipv4 else 6}"))
            for one in found
            for is_ipv4 in [one.get_attr("MPTCP_PM_ADDR_ATTR_FAMILY") == socket.AF_INET]
            if one.get_attr("MPTCP_PM_ADDR_ATTR_FLAGS") & _USED
        ),
    )


def lane_interfaces(interfaces: tuple[HostInterface, ...], sysfs: Path) -> tuple[HostInterface, ...]:
    """Return the interfaces that a lane may leave by, with what addresses of theirs others can reach.

    Those that bridges have, containers' for one, lead out by another interface.
    """
    reachable = (
        HostInterface(
            one.name, tuple(its for its in one.addresses if not its.is_link_local), one.mtu_bytes, one.rate_bps
        )
        for one in interfaces
        if not (sysfs / one.name / "bridge").exists()
    )
    return tuple(one for one in reachable if one.addresses)


def has_sctp_module(modules: Path, release: str = "") -> bool | None:
    """Return whether the running kernel has SCTP to load, or built in; None if its modules cannot be seen."""
    folder = modules / (release or platform.release())
    try:
        lists = [one.read_text() for name in ("modules.dep", "modules.builtin") if (one := folder / name).exists()]
    except OSError:  # hidden, as from a service with ProtectKernelModules=
        return None
    return any("/net/sctp/sctp.ko" in one for one in lists) if lists else None
