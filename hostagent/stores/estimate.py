"""What a store drains and has room for, from what was seen of it at two moments, about a second apart. Pure.

While data waits, what is drained is the receiver's rate; while nothing waits it is no more than what came, and says
nothing of what the receiver could take. Data waits at two places: in the sockets, for the program that reads them, and
in the page cache, for the disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from topology.telemetry import StoreBrake

WAITS_MS = 100  # of what is drained: less is what any reader has in its socket at any moment
BUSY_PERCENT = 90  # of the time the disk had something to write: it was the disk that was waited for
MEMORY_SHARE = 10  # a tenth of the time some program waited for memory: no other disk or reader would help
IO_SHARE = 2  # half of the time for a disk
PAUSE_MS = 200  # for so long a writer that is held up sleeps at most: MAX_PAUSE in linux/mm/page-writeback.c
OWN_PERCENT = 75  # of what the disk has written can be of the store's own: then its rate is the store's
LEAST_DIRTY_BYTES = 16 << 20  # below that nothing is known to wait for the disk: files of others are dirty, too
LEAST_DIRTY_PART = 4  # where less can wait than four times that: a quarter of what can


@dataclass(frozen=True, slots=True)
class SocketIntake:
    """One receiving connection: what has come in order so far, what of it is unread, and the room there is for more."""

    received_bytes: int
    unread_bytes: int
    room_bytes: int


@dataclass(frozen=True, slots=True)
class DiskState:
    """A disk and the page cache before it.

    Attributes:
        written_bytes: so far.
        busy_ms: for how long it had something to do so far.
        dirty_bytes: what waits in the page cache to be written, of all disks.
        limit_bytes: how much can wait when writers are held up.
        device: which disk it is, by its numbers, as in ``8:1``.
    """

    written_bytes: int
    busy_ms: int
    dirty_bytes: int
    limit_bytes: int
    device: str = ""


@dataclass(frozen=True, slots=True)
class PressureState:
    """For how long some program of the host has waited so far: for memory, and for a disk."""

    memory_us: int
    io_us: int


@dataclass(frozen=True, slots=True)
class StoreLook:
    """What is seen of a store at a moment.

    Attributes:
        at_ns: when.
        connections: those whose data it takes, by the kernel's name for each.
        disk: its disk; None if it is on none that counts.
        pressure: what programs wait for; None if the kernel does not tell.
    """

    at_ns: int
    connections: Mapping[int, SocketIntake]
    disk: DiskState | None = None
    pressure: PressureState | None = None


@dataclass(frozen=True, slots=True)
class StoreIntake:
    """What a store took between two looks.

    Attributes:
        drained_bps: what was read from its sockets, or written to its disk if that was waited for: no more than what
            was read and what the page cache has less of, for others may write there, too; bit/s of payload.
        is_waiting: whether something waited all the time, so that no more could be drained.
        unread_bytes: what waits in the sockets.
        room_bytes: what it can take at once now: in the page cache, if it has a disk, else in the sockets.
        brake: what makes it slow, if something does.
        most_bytes: what it can take at once when nothing waits in its page cache; 0 if it has no disk.
    """

    drained_bps: int
    is_waiting: bool
    unread_bytes: int
    room_bytes: int
    brake: StoreBrake
    most_bytes: int = 0


def intake(
    before: StoreLook, now: StoreLook, rate_bps: int | None = None, buffer_bytes: int | None = None
) -> StoreIntake:
    """Return what a store took between two looks.

    Args:
        before: the first.
        now: the second.
        rate_bps: what it drains for good, if that is known.
        buffer_bytes: what it takes at once when nothing waits, if that is known.
    """
    took_ns = max(1, now.at_ns - before.at_ns)
    read_bytes = sum(_read_bytes(before.connections.get(key), one) for key, one in now.connections.items())
    read_bps = read_bytes * 8 * 10**9 // took_ns
    unread = [sum(one.unread_bytes for one in look.connections.values()) for look in (before, now)]
    reader_waits = min(unread) * 8_000 > read_bps * WAITS_MS and min(unread) > 0
    written_bps = _waited_for_bps(before.disk, now.disk, took_ns)
    own_bps = read_bps + _backlog_less_bps(before.disk, now.disk, took_ns)
    is_own = written_bps is not None and own_bps * 100 >= written_bps * OWN_PERCENT
    disk_waits = written_bps is not None and (is_own or reader_waits)
    brake = _brake(before.pressure, now.pressure, took_ns, StoreBrake.DISK if disk_waits else StoreBrake.READER)
    if now.disk is not None and not disk_waits and brake is StoreBrake.DISK:
        brake = StoreBrake.READER  # its own disk is not what programs wait for
    drained_bps = read_bps if written_bps is None or not disk_waits else min(own_bps, written_bps)
    most_bytes = _most_bytes(now.disk, rate_bps or written_bps or 0) if buffer_bytes is None else buffer_bytes
    room_bytes = _room_bytes(now, most_bytes, unread[1])
    return StoreIntake(drained_bps, disk_waits or reader_waits, unread[1], room_bytes, brake, most_bytes or 0)


def _most_bytes(disk: DiskState | None, rate_bps: int) -> int | None:
    """Return what a store's page cache can take at once when nothing waits there; None if it has no disk.

    Once it is full, a writer sleeps, and meanwhile the disk drains: of the room, so much is never used.
    """
    return None if disk is None else max(0, disk.limit_bytes - rate_bps * PAUSE_MS // 8_000)


def _room_bytes(now: StoreLook, most_bytes: int | None, unread_bytes: int) -> int:
    """Return what a store can take at once now: what is on its way to its disk has a part of the room already.

    What fits into the sockets is not counted besides: that is where data lands while its reader is held up.
    """
    if most_bytes is None:
        return sum(one.room_bytes for one in now.connections.values())
    return max(0, most_bytes - (now.disk.dirty_bytes if now.disk else 0) - unread_bytes)


def _brake(before: PressureState | None, now: PressureState | None, took_ns: int, otherwise: StoreBrake) -> StoreBrake:
    """Return what programs wait for: memory, or a disk that is not counted (NFS, btrfs), if they do for long enough."""
    if before is None or now is None:
        return otherwise
    if (now.memory_us - before.memory_us) * 1000 * MEMORY_SHARE >= took_ns:
        return StoreBrake.MEMORY
    return StoreBrake.DISK if (now.io_us - before.io_us) * 1000 * IO_SHARE >= took_ns else otherwise


def _read_bytes(before: SocketIntake | None, now: SocketIntake) -> int:
    """Return what was read of a connection; of one that was not there before, all that was."""
    drained = now.received_bytes - now.unread_bytes
    return max(0, drained - (before.received_bytes - before.unread_bytes if before else 0))


def _backlog_less_bps(before: DiskState | None, now: DiskState | None, took_ns: int) -> int:
    """Return how much less waits in the page cache, bit/s: so much was written beyond what came, if it was our own."""
    if before is None or now is None:
        return 0
    return max(0, before.dirty_bytes - now.dirty_bytes) * 8 * 10**9 // took_ns


def _waited_for_bps(before: DiskState | None, now: DiskState | None, took_ns: int) -> int | None:
    """Return what a disk has written if it was waited for all the time, bit/s; None if it was not, or is another."""
    if before is None or now is None or before.device != now.device:
        return None
    is_busy = (now.busy_ms - before.busy_ms) * 1_000_000 * 100 >= took_ns * BUSY_PERCENT
    least_bytes = min(LEAST_DIRTY_BYTES, now.limit_bytes // LEAST_DIRTY_PART)
    waits = min(before.dirty_bytes, now.dirty_bytes) > least_bytes
    return (now.written_bytes - before.written_bytes) * 8 * 10**9 // took_ns if is_busy and waits else None
