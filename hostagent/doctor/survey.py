"""How the host is set up for a plan's windows and rates: settings, interface, memory, other namespaces. Reads only."""

import contextlib
import fcntl
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from hostagent.doctor import multipath, netlink, receive_window
from hostagent.doctor.buffers import Numbers
from hostagent.doctor.connections import OpenConnection, established
from hostagent.doctor.hardware import Hardware, hardware
from hostagent.doctor.multipath import MptcpPaths
from hostagent.kernel import leftovers, probe
from hostagent.kernel.leftovers import Namespace
from topology.addresses import Address
from topology.protocol import MOST_ADDRESSES, MOST_INTERFACES, HostInterface

TCP_SETTINGS = (
    "tcp_rmem",
    "tcp_wmem",
    "tcp_mem",
    "tcp_moderate_rcvbuf",
    "tcp_window_scaling",
    "tcp_timestamps",
    "tcp_sack",
    "tcp_no_metrics_save",
    "tcp_slow_start_after_idle",
    "tcp_mtu_probing",
    "tcp_early_retrans",
    "tcp_recovery",
    "tcp_retries2",
)
CORE_SETTINGS = ("rmem_max", "wmem_max")
# Of protocols that use several paths themselves.
RIVAL_SETTINGS = (
    "mptcp.enabled",
    "mptcp.stale_loss_cnt",
    "sctp.pf_enable",
    "sctp.pf_retrans",
    "sctp.rto_min",
    "sctp.rto_max",
    "sctp.path_max_retrans",
)
PROC = Path("/proc")
INTERFACES = Path("/sys/class/net")
# What a container's runtime leaves where the container sees it: Docker, Podman, systemd (nspawn and services like it).
CONTAINER_SIGNS = (Path("/.dockerenv"), Path("/run/.containerenv"), Path("/run/host/container-manager"))
ANYWHERE = ("192.0.2.1", "2001:db8::1")  # RFC 5737, RFC 3849: addresses of nobody, so only a default route leads there
_SIOCGIFMTU = 0x8921  # include/uapi/linux/sockios.h
_GETADDR, _ANY, _LOCAL = 22, 1, 2  # RTM_GETADDR, IFA_ADDRESS, IFA_LOCAL
_ADDRESS = struct.Struct("=BBBBI")  # struct ifaddrmsg


@dataclass(frozen=True, slots=True)
class Interface:
    """The interface through which the data leaves; ``speed_bps`` is None if it does not say."""

    name: str
    mtu_bytes: int
    qdisc: str
    gso_max_bytes: int
    speed_bps: int | None
    hardware: Hardware = field(default_factory=Hardware)


@dataclass(frozen=True, slots=True)
class OtherNamespace:
    """A network namespace of this kernel that is not ours, by one of its processes."""

    pid: int
    program: str
    processes: int


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found.

    Attributes:
        facts: what the agent needs to run at all.
        settings: sysctls of this namespace by their short names; ``tcp_mem`` only in the kernel's first one.
        interface: of the route; None if there is no route.
        memory_bytes: the host's memory.
        available_bytes: of it, what programs could have now.
        timer_ns: the resolution of the clock that paces.
        others: network namespaces of this kernel with processes that we can see.
        container: what says that this is a container, empty if nothing does.
        agent_runs: whether an agent holds this namespace.
        connections: those that are open now.
        lanes: the interfaces that a lane may leave by.
        mptcp: what Multipath TCP's path manager may do; None if the kernel does not tell.
        has_sctp_module: whether the kernel has SCTP, loaded or to be loaded; None if its modules cannot be seen.
    """

    facts: probe.Facts
    settings: dict[str, Numbers]
    interface: Interface | None
    memory_bytes: int
    available_bytes: int
    timer_ns: int
    others: tuple[OtherNamespace, ...] = ()
    container: str = ""
    agent_runs: bool = False
    connections: tuple[OpenConnection, ...] = ()
    lanes: tuple[HostInterface, ...] = ()
    mptcp: MptcpPaths | None = None
    has_sctp_module: bool | None = False


def survey(cgroup_dir: Path | None, run_dir: Path, to: str | None) -> Survey:
    """Look at this host.

    Args:
        cgroup_dir: as configured, None to look for one.
        run_dir: where agents keep their locks.
        to: the other end of the path; None for the default route.

    Raises:
        ValueError: ``to`` is not an address.
        OSError: /proc cannot be read.
    """
    memory = receive_window.memory_bytes(receive_window.MEMORY.read_text())
    return Survey(
        facts=probe.facts(cgroup_dir),
        settings=sysctls(receive_window.SYSCTL, receive_window.CORE),
        interface=route_interface(to),
        memory_bytes=memory["MemTotal"],
        available_bytes=memory["MemAvailable"],
        timer_ns=round(time.clock_getres(time.CLOCK_MONOTONIC) * 1e9),
        others=other_namespaces(PROC),
        container=container(),
        agent_runs=_agent_runs_here(run_dir),
        connections=established(),
        lanes=multipath.lane_interfaces(host_interfaces(), INTERFACES),
        mptcp=multipath.mptcp_paths(),
        has_sctp_module=multipath.has_sctp_module(multipath.MODULES),
    )


def _agent_runs_here(run_dir: Path) -> bool:
    """Return whether an agent runs in this process's namespace."""
    try:
        namespace = Namespace.of_this_process()
    except OSError:  # before Linux 5.14, where none can run
        return False
    return agent_runs(run_dir, namespace.id)


def sysctls(sysctl: Path, core: Path) -> dict[str, Numbers]:
    """Return the settings that can be seen in this namespace: those of a protocol only where its module is loaded."""
    paths = {name: sysctl / name for name in TCP_SETTINGS} | {name: core / name for name in CORE_SETTINGS}
    paths |= {name: sysctl.parent / name.replace(".", "/") for name in RIVAL_SETTINGS}
    return {name: Numbers.parsed(path.read_text()) for name, path in paths.items() if path.exists()}


def route_interface(to: str | None) -> Interface | None:
    """Return the interface of the route to an address, or of the default route; None if there is none.

    Raises:
        ValueError: not an address.
    """
    from pyroute2 import IPRoute, NetlinkError

    wanted = ANYWHERE if to is None else (str(ip_address(to)),)
    with IPRoute() as route_socket:
        for address in wanted:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            try:
                (route,) = route_socket.route("get", dst=address, family=family)
                (link,) = route_socket.get_links(route.get_attr("RTA_OIF"))
                qdiscs = [one for one in route_socket.get_qdiscs(link["index"]) if one["index"] == link["index"]]
            except NetlinkError:
                continue
            name = str(link.get_attr("IFLA_IFNAME"))
            return Interface(
                name=name,
                mtu_bytes=int(link.get_attr("IFLA_MTU")),
                qdisc=str(link.get_attr("IFLA_QDISC")),
                gso_max_bytes=int(link.get_attr("IFLA_GSO_MAX_SIZE") or 65536),
                speed_bps=_speed_bps(INTERFACES / name / "speed"),
                hardware=hardware(name, link, qdiscs),
            )
    return None


def _speed_bps(path: Path) -> int | None:
    """Return an interface's speed; virtual ones have none, or say -1."""
    try:
        mbps = int(path.read_text())
    except OSError:
        return None
    return mbps * 1_000_000 if mbps > 0 else None


def host_interfaces() -> tuple[HostInterface, ...]:
    """Return this namespace's interfaces that have addresses, in the kernel's order, the loopback aside.

    Those that are reached on their own link alone, as containers' are, come last: there may be more than are told.
    What the kernel does not tell is left out.
    """
    found: dict[int, list[Address]] = {}
    with contextlib.suppress(OSError), netlink.connected(socket.NETLINK_ROUTE) as route:
        for message in netlink.dumped(route, _GETADDR, bytes(_ADDRESS.size)):
            _, _, _, _, index = _ADDRESS.unpack_from(message)
            raw = netlink.attribute(message, _ADDRESS.size, _LOCAL)  # IPv4's; of a line to one peer _ANY is the peer's
            found.setdefault(index, []).append(ip_address(raw or netlink.attribute(message, _ADDRESS.size, _ANY)))
    names = dict(socket.if_nameindex())
    known = [(names[index], its) for index, its in sorted(found.items()) if names.get(index, "lo") != "lo"]
    known.sort(key=lambda one: all(address.is_link_local for address in one[1]))
    mtus = mtus_bytes()
    return tuple(
        HostInterface(
            name, tuple(its[:MOST_ADDRESSES]), mtus.get(name, 0), _speed_bps(INTERFACES / name / "speed") or 0
        )
        for name, its in known[:MOST_INTERFACES]
    )


def largest_mtu_bytes() -> int:
    """Return the largest MTU of this namespace's interfaces, the loopback aside; 1500 if there are no others."""
    return max((1500, *(mtu_bytes for name, mtu_bytes in mtus_bytes().items() if name != "lo")))


def mtus_bytes() -> dict[str, int]:
    """Return the MTU of each interface of this namespace, by name."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack("16s16x", name.encode())
            with contextlib.suppress(OSError):  # it has gone meanwhile
                answer = fcntl.ioctl(any_socket, _SIOCGIFMTU, request)
                (found[name],) = struct.unpack_from("=i", answer, 16)
    return found


def other_namespaces(proc: Path) -> tuple[OtherNamespace, ...]:
    """Return the network namespaces of processes that are not in ours; without root only one's own are seen."""
    own = (proc / "self/ns/net").readlink()
    first: dict[Path, int] = {}
    count: Counter[Path] = Counter()
    for pid in sorted(int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()):
        try:
            namespace = (proc / str(pid) / "ns/net").readlink()
        except OSError:  # ended, or somebody else's
            continue
        if namespace != own:
            first.setdefault(namespace, pid)
            count[namespace] += 1
    return tuple(OtherNamespace(pid, _program(proc, pid), count[namespace]) for namespace, pid in first.items())


def _program(proc: Path, pid: int) -> str:
    try:
        return (proc / str(pid) / "comm").read_text().strip()
    except OSError:
        return "?"


def container() -> str:
    """Return what says that this process runs in a container, empty if nothing does."""
    return next((str(sign) for sign in CONTAINER_SIGNS if sign.exists()), "")


def agent_runs(run_dir: Path, namespace_id: str) -> bool:
    """Return whether an agent holds a namespace's lock."""
    try:
        with leftovers.lock_path(run_dir, namespace_id).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
