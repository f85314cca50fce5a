"""The plan in the kernel: the loaded object as one thing with apply, renew, counters and close."""

import contextlib
import errno
import os
import time
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path

import structlog

from hostagent import cgroup, layout, leftovers
from hostagent.errors import AlreadyRunning, BpfError, NoSuchFile
from hostagent.layout import SLOT, Counters
from hostagent.leftovers import Namespace, RunLock
from hostagent.loader import BpfObject, Libbpf
from hostagent.plan import Change, Tuning

OBJECT_FILE = "headway.bpf.o"
NAME_PLACEHOLDER = b"headway@@@@@@@@\0"  # in hw_ops; libbpf 1.1 cannot set a struct_ops map's values
LAPSE_MARGIN_NS = 50_000_000  # a lease with less left counts as over: sockets may fall back while we renew it
DEFAULT_ALGORITHM = Path("/proc/sys/net/ipv4/tcp_congestion_control")

log = structlog.get_logger()


class Kernel:
    """This namespace's allocations in the kernel. Not for use by two threads at once."""

    def __init__(
        self,
        namespace: Namespace,
        cgroup_dir: Path | None,
        run_dir: Path,
        tuning: Tuning,
        inherited: Mapping[str, int],
    ) -> None:
        """Load the object, clean up after dead agents, register and attach. No socket is touched yet.

        Args:
            namespace: this process's network namespace.
            cgroup_dir: see :func:`hostagent.cgroup.opened`.
            run_dir: where the lock is.
            tuning: what the kernel part is told once.
            inherited: ``descriptors`` of the agent that ran here before, as far as a supervisor has kept them; closed
                here. Without them a dead agent's are found only with CAP_SYS_ADMIN.

        Raises:
            AlreadyRunning: another agent holds the namespace.
            BpfError: the kernel refused something.
            OSError: the cgroup or the run directory cannot be used.
        """
        self._generation = 0
        self._expires_ns = 0
        with contextlib.ExitStack() as undo:
            lock = RunLock(run_dir, namespace)
            undo.callback(lock.close)
            lib = Libbpf()
            predecessor_fd = _predecessors(lib, inherited)
            if predecessor_fd is None:
                predecessor_fd = _cleaned(lib, namespace, run_dir, lock.had_predecessor)
            self._object = BpfObject(lib, named_image(object_image(), namespace.algorithm))
            undo.callback(self._object.close)
            fallback = DEFAULT_ALGORITHM.read_text().strip()
            self._object.set_constants(
                ".rodata.host", layout.host_bytes(namespace.cookie, namespace.algorithm, fallback, tuning)
            )
            if predecessor_fd is not None:
                self._object.adopt(leftovers.CONNECTIONS_MAP.decode(), predecessor_fd)
                os.close(predecessor_fd)  # libbpf keeps a descriptor of its own
            self._object.load()
            self._plan = self._object.map("hw_plan")
            self._control = self._object.map("hw_control")
            self._entries = self._object.map("hw_entries")
            self._counters = self._object.map("hw_counters")
            self.descriptors = {
                "ops": self._object.map("hw_ops").fd,
                "conns": self._object.map(leftovers.CONNECTIONS_MAP.decode()).fd,
            }
            self._register(namespace)
            self._attach(cgroup_dir)
            self._close = undo.pop_all()

    def _register(self, namespace: Namespace) -> None:
        try:
            self._object.register("hw_ops")
        except BpfError as error:
            if error.errno != errno.EEXIST:
                raise
            evidence = f"{namespace.algorithm} is registered; if its agent died, start once with CAP_SYS_ADMIN"
            raise AlreadyRunning(namespace.id, evidence) from error

    def _attach(self, cgroup_dir: Path | None) -> None:
        cgroup_fd = cgroup.opened(cgroup_dir)
        try:
            self._object.attach_cgroup("headway_established", cgroup_fd)
        finally:
            os.close(cgroup_fd)
        self._open_sockets = self._object.attach_iterator("headway_open")

    @property
    def expires_ns(self) -> int:
        """When the lease ends, CLOCK_MONOTONIC, 0 if there was none yet."""
        return self._expires_ns

    def apply(self, change: Change, expires_ns: int) -> None:
        """Bring a change and its lease into force; on return every matching socket obeys from its next ACK on.

        Raises:
            BpfError: the kernel refused something.
        """
        for slot in change.fresh_slots:
            self._counters.put(SLOT.pack(slot), layout.ZERO_COUNTERS)
        for slot, entry in change.entries:
            self._entries.put(SLOT.pack(slot), layout.entry_bytes(entry))
        for match, slot in change.puts:
            self._plan.put(layout.match_bytes(match), layout.matched_bytes(match, slot))
        for match in change.deletes:
            self._plan.delete(layout.match_bytes(match))
        if change.rescan:
            self._generation += 1
        lapsed = self._expires_ns < time.monotonic_ns() + LAPSE_MARGIN_NS
        self._lease(expires_ns)
        if change.rescan or lapsed:
            self.walk()

    def counters(self, slots: Iterable[int]) -> tuple[Counters, ...]:
        """Return the counters of some slots.

        Raises:
            BpfError: the kernel refused.
        """
        return tuple(layout.counters(self._counters.value(SLOT.pack(slot))) for slot in slots)

    def walk(self) -> None:
        """Look at every open socket once: take, give back, watch those that have fallen back.

        Raises:
            BpfError: the kernel refused.
        """
        self._object.walk(self._open_sockets)

    def close(self) -> None:
        """Give every socket back, detach and unregister."""
        try:
            self._lease(0)
            self.walk()
        finally:
            self._close.close()

    def _lease(self, expires_ns: int) -> None:
        self._control.put(SLOT.pack(0), layout.control_bytes(self._generation, expires_ns))
        self._expires_ns = expires_ns


def object_image() -> bytes:
    """Return the prebuilt BPF object.

    Raises:
        NoSuchFile: it was not installed.
    """
    path = resources.files("hostagent").joinpath("bpf", OBJECT_FILE)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NoSuchFile(Path(str(path))) from None


def named_image(image: bytes, algorithm: str) -> bytes:
    """Return the object with the congestion control's name in place of the placeholder.

    Raises:
        ValueError: the placeholder is not there exactly once, or the name is too long.
    """
    if image.count(NAME_PLACEHOLDER) != 1:
        raise ValueError(f"{OBJECT_FILE} holds the name's placeholder {image.count(NAME_PLACEHOLDER)} times, not once")
    if len(algorithm) >= len(NAME_PLACEHOLDER):
        raise ValueError(f'"{algorithm}" is longer than {len(NAME_PLACEHOLDER) - 1} characters')
    return image.replace(NAME_PLACEHOLDER, algorithm.encode().ljust(len(NAME_PLACEHOLDER), b"\0"))


def _predecessors(lib: Libbpf, inherited: Mapping[str, int]) -> int | None:
    """Unregister what the agent before has left, by the descriptors it had; return its sockets' storage."""
    ops_fd, conns_fd = inherited.get("ops"), inherited.get("conns")
    if ops_fd is not None:
        if leftovers.unregister(lib, ops_fd):
            log.info("agent.leftover_removed", by="inherited descriptor")
        os.close(ops_fd)
    return conns_fd


def _cleaned(lib: Libbpf, namespace: Namespace, run_dir: Path, had_predecessor: bool) -> int | None:
    """Unregister what dead agents left; return the storage of this namespace's own dead agent, if any."""
    adopted: int | None = None
    for registration in leftovers.registrations(lib):
        own = registration.namespace_id == namespace.id
        if not (had_predecessor if own else leftovers.is_dead(run_dir, registration.namespace_id)):
            continue
        if own and adopted is None:
            adopted = leftovers.connections_fd(lib, registration)
        if leftovers.found_and_unregistered(lib, registration):
            log.info("agent.leftover_removed", algorithm=leftovers.ALGORITHM_PREFIX + registration.namespace_id)
    return adopted
