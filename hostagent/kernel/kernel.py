"""The plan in the kernel: the loaded object as one thing with apply, renew, counters and close."""

import contextlib
import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from hostagent.errors import AlreadyRunning, BpfError, Unregistered
from hostagent.kernel import audit, cgroup, interfaces, leftovers
from hostagent.kernel.audit import Difference
from hostagent.kernel.coded import CodedTail
from hostagent.kernel.image import named_image, object_image
from hostagent.kernel.interfaces import Interfaces
from hostagent.kernel.layout import SLOT, Demanded, EntryCounters, layout_of
from hostagent.kernel.leftovers import Namespace, RunLock
from hostagent.kernel.loader import BpfObject, Libbpf, RingBuffer
from hostagent.kernel.plan import MAX_MATCHES, MAX_TURNS, KernelEntry, KernelPlan, MapChange, Tuning
from hostagent.lease_clock import lease_now_ns
from hostagent.log import log
from topology.protocol import Fault

PROGRAMS = ("headway_established", "headway_deal4", "headway_deal6")  # at the cgroup
LAPSE_MARGIN_NS = 50_000_000  # a lease with less left counts as over: sockets may fall back while we renew it
DEFAULT_ALGORITHM = Path("/proc/sys/net/ipv4/tcp_congestion_control")


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
            cgroup_dir: see :func:`hostagent.kernel.cgroup.opened_cgroup`.
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
        self._epoch = 0
        self._held = KernelPlan()
        self._left_seen = bytes(8)
        self._grants: dict[int, int] = {}  # of watched entries, by slot: under which epoch they have their rate
        with contextlib.ExitStack() as undo:
            lock = RunLock(run_dir, namespace)
            undo.callback(lock.close)
            lib = Libbpf()
            predecessor_fd = _predecessors(lib, inherited)
            if predecessor_fd is None:
                predecessor_fd = _cleaned(lib, namespace, run_dir, lock.had_predecessor)
            image = object_image()
            self._layout = layout_of(image)
            self._object = BpfObject(lib, named_image(image, namespace.algorithm))
            undo.callback(self._object.close)
            fallback = DEFAULT_ALGORITHM.read_text().strip()
            host = self._layout.host_bytes(namespace.cookie, namespace.algorithm, fallback, tuning)
            self._object.set_constants(".rodata.host", host)
            self._object.make_mappable("hw_counters")
            self._object.resize("hw_plan", MAX_MATCHES + 1)
            self._object.resize("hw_deal", MAX_TURNS)
            if predecessor_fd is not None:
                self._object.adopt(leftovers.CONNECTIONS_MAP.decode(), predecessor_fd)
                os.close(predecessor_fd)  # libbpf keeps a descriptor of its own
            self._object.load()
            self._plan = self._object.map("hw_plan")
            self._control = self._object.map("hw_control")
            self._entries = self._object.map("hw_entries")
            self._counters = self._object.map("hw_counters")
            self._demand = self._object.map("hw_demand")
            self._turns = self._object.map("hw_deal")
            self._left = self._object.map("hw_left")
            self.flips = RingBuffer(lib, self._object.map("hw_events"))
            undo.callback(self.flips.close)
            self.descriptors = {
                "ops": self._object.map("hw_ops").fd,
                "conns": self._object.map(leftovers.CONNECTIONS_MAP.decode()).fd,
            }
            self._register(namespace)
            self._attach(cgroup_dir)
            self._coded = CodedTail(lib, self._object, host) if tuning.tail_coded else None
            if self._coded is not None:
                undo.callback(self._coded.close)
            has_tails = tuning.tail_copies or tuning.tail_coded
            self._interfaces = Interfaces(self._object, interfaces.PROGRAMS if has_tails else interfaces.MARKING)
            undo.callback(self._interfaces.close)
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
        self._cgroup_dir = cgroup_dir
        self._hooks = {program: self._attached_program(program) for program in PROGRAMS}
        self._open_sockets = self._object.attach_iterator("headway_open")

    def _attached_program(self, program: str) -> int:
        """Attach a program that looks at new connections; return its link's descriptor."""
        cgroup_fd = cgroup.opened_cgroup(self._cgroup_dir)
        try:
            return self._object.attach_cgroup(program, cgroup_fd)
        finally:
            os.close(cgroup_fd)

    @property
    def codes_tails(self) -> bool:
        """Whether parities follow where an entry says so, and what is missing here is made again of those that come."""
        return self._coded is not None and self._coded.is_attached

    @property
    def expires_ns(self) -> int:
        """When the lease ends, CLOCK_BOOTTIME, 0 if there was none yet."""
        return self._expires_ns

    def apply(self, change: MapChange, expires_ns: int, epoch: int) -> None:
        """Bring a change and its lease into force; on return every matching socket obeys from its next ACK on.

        A new epoch gives a watched entry its rate if it wants it now; see docs/decisions/0012.

        Raises:
            BpfError: the kernel refused something.
        """
        watched, fresh = change.plan.watched, set(change.fresh_slots)
        is_new, is_first = epoch != self._epoch, not self._epoch
        for slot in change.fresh_slots:
            self._counters.put(SLOT.pack(slot), self._layout.fresh_counters(self._generation + 1))
            self._demand.put(SLOT.pack(slot), self._layout.zero_demand)
        if is_new:
            self._grants = {slot: epoch for slot in watched if slot not in fresh and self._demanded(slot).wants}
        for slot, entry in {**dict(change.entries), **(watched if is_new else {})}.items():
            self._write(slot, entry)
        for match, slot in change.puts:
            self._plan.put(self._layout.match_bytes(match), self._layout.matched_bytes(match, slot))
        for match in change.deletes:
            self._plan.delete(self._layout.match_bytes(match))
        self._deal(change)
        self._generation += change.rescan
        lapsed = self._expires_ns < lease_now_ns() + LAPSE_MARGIN_NS
        self._held, self._epoch = change.plan, epoch
        self._lease(expires_ns)
        if change.rescan or change.entries or (is_new and watched) or lapsed:
            self.walk()  # also where only a rate has grown: who waits for an ACK would learn of it a round trip later
        # What an agent before this one has promised is not known: its flights begin anew, standing by.
        for slot in () if is_first else fresh & watched.keys():
            if self._demanded(slot).wants:
                self._grants[slot] = epoch
                self._write(slot, watched[slot])

    def _deal(self, change: MapChange) -> None:
        """Deal new connections to other lanes; turns of a round before go first, so that none of them is left over."""
        for destination, count in change.undealt:
            for number in range(count):
                self._turns.delete(self._layout.turn_bytes(destination, number))
        for destination, deal in change.deals:
            for number in reversed(range(len(deal.turns))):  # the first one counts: all others are there then
                self._turns.put(self._layout.turn_bytes(destination, number), self._layout.dealt_bytes(deal, number))

    def demand(self) -> dict[str, tuple[bool, bool]]:
        """Return by name of each watched entry whether it wants its rate, and whether it stands by under this epoch.

        Raises:
            BpfError: the kernel refused something.
        """
        told = {}
        for name, held in self._held.held.items():
            if not held.entry.standby_bytes_per_s:
                continue
            seen = self._demanded(held.slot)
            if not seen.wants and self._grants.get(held.slot, 0) > seen.ended_grant:
                # The epoch came while the flight ended: it is used up before anybody is told so.
                self._grants[held.slot] = 0
                self._write(held.slot, held.entry)
                seen = self._demanded(held.slot)
            told[name] = bool(seen.wants), self._grants.get(held.slot, 0) <= seen.ended_grant
        return told

    def repaired(self) -> tuple[Difference, ...]:
        """Compare the maps with the plan in force, put right what differs, and return what that was.

        Sockets that an application has taken from us are taken again, and those that it has marked are marked anew.

        Raises:
            Unregistered: the congestion control is not the kernel's any more; only a new agent can register it.
            BpfError: the kernel refused something.
        """
        if not self._object.is_registered("hw_ops"):
            raise Unregistered
        for programs in (self._coded, self._interfaces):  # in this order: the second takes out what the first looks for
            if programs is not None:
                programs.follow()
        maps = {"matches": self._plan, "entries": self._entries, "control": self._control}
        lease = self._layout.control_bytes(self._generation, self._expires_ns)
        should = audit.wanted_contents(self._layout, self._held, self._grants, lease)
        found = audit.Contents(
            {key: self._plan.value(key) for key in self._plan.every_key()},
            {key: self._entries.value(key) for key in should.entries},
            {audit.CONTROL: self._control.value(audit.CONTROL)},
        )
        differ = audit.differences(self._layout, should, found, self._held)
        for one in differ:
            if one.value is None:
                maps[one.where].delete(one.key)
            else:
                maps[one.where].put(one.key, one.value)
        for program in [name for name, link_fd in self._hooks.items() if not self._object.is_attached(link_fd)]:
            self._hooks[program] = self._attached_program(program)
            differ += (Difference("hook", b"", None, Fault.MISSING, ""),)
        if any(one.where != "entries" for one in differ):
            self._generation += 1
            self._lease(self._expires_ns)
            self.walk()
        elif self._some_have_left():
            self.walk()
        return differ

    def _some_have_left(self) -> bool:
        """Whether applications have changed sockets of ours, by an algorithm or a mark, since this was last asked."""
        before, self._left_seen = self._left_seen, self._left.value(SLOT.pack(0))
        return self._left_seen != before

    def _demanded(self, slot: int) -> Demanded:
        return self._layout.demanded(self._demand.value(SLOT.pack(slot)))

    def _write(self, slot: int, entry: KernelEntry) -> None:
        self._entries.put(SLOT.pack(slot), self._layout.entry_bytes(entry, self._grants.get(slot, 0)))

    def counters(self, slots: Iterable[int]) -> tuple[EntryCounters, ...]:
        """Return the counters of some slots.

        Raises:
            BpfError: the kernel refused.
        """
        return tuple(self._layout.counters(self._counters.value(SLOT.pack(slot))) for slot in slots)

    def end_fallback(self, slot: int, now_ns: int) -> None:
        """Let the plan hold again for an allocation that has fallen back and has no connection left.

        Nothing else in its counters is written, for the kernel part may be counting there. It ends a fallback by the
        same two stores, so it does not matter who is first. Had it judged a new catastrophe since this one was seen,
        that would be taken back, too, and judged again a period later.

        Raises:
            BpfError: the kernel refused.
        """
        self._counters.put_words(slot, self._layout.fallback_end(now_ns))

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
        self._control.put(SLOT.pack(0), self._layout.control_bytes(self._generation, expires_ns))
        self._expires_ns = expires_ns


def _predecessors(lib: Libbpf, inherited: Mapping[str, int]) -> int | None:
    """Unregister what the agent before has left, by the descriptors it had; return its sockets' storage if it fits."""
    ops_fd, conns_fd = inherited.get("ops"), inherited.get("conns")
    if ops_fd is not None:
        if leftovers.unregister(lib, ops_fd):
            log.info("agent.leftover_removed", by="inherited descriptor")
        os.close(ops_fd)
    return None if conns_fd is None else leftovers.own_storage(lib, conns_fd)


def _cleaned(lib: Libbpf, namespace: Namespace, run_dir: Path, had_predecessor: bool) -> int | None:
    """Unregister what dead agents left; return the storage of this namespace's own dead agent, if any."""
    adopted: int | None = None
    for registration in leftovers.registrations(lib):
        own = registration.namespace_id == namespace.id
        if not (had_predecessor if own else leftovers.agent_is_dead(run_dir, registration.namespace_id)):
            continue
        if own and adopted is None:
            adopted = leftovers.connections_fd(lib, registration)
        if leftovers.found_and_unregistered(lib, registration):
            log.info("agent.leftover_removed", algorithm=leftovers.ALGORITHM_PREFIX + registration.namespace_id)
    return adopted
