"""What the disks of announcements that have ended have yet to write: it stays booked until they have. Pure.

An announcement may be released as soon as all of it is across, or before; what has arrived by then lies in the page
cache of its receiver, and the disk is nobody else's until that is written.
"""

from collections.abc import Iterable

from controller.plan.announcements import Announcement
from controller.plan.calendar import Booking, Calendar, Need
from controller.plan.deliveries import total_bytes
from controller.plan.volume import ConstantRate
from topology.wire import PPM

LONGEST_US = 3_600_000_000  # no page cache is waited for longer: what is read at a start is bounded by that


class Unwritten:
    """By number of an announcement, what its disk has yet to write, in a calendar."""

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar
        self._booked: dict[int, tuple[str, ...]] = {}
        self._until_us: dict[int, int] = {}

    def put(self, ended: Announcement, ended_us: int) -> None:
        """Book what the disk of an announcement has yet to write, in place of what was known of that before."""
        self.drop(ended.sequence)
        drains = unwritten(ended, ended_us)
        if ended.store is None or not drains:
            return
        need = Need(((ended.store, PPM),))
        for number, part in enumerate(drains):
            name = f"/{ended.sequence}/{number}"  # no promise has such a name
            self._calendar.book(name, Booking(need, part.rate_bps, part.start_us, part.end_us))
            self._booked[ended.sequence] = (*self._booked.get(ended.sequence, ()), name)
        self._until_us[ended.sequence] = drains[-1].end_us

    def drop(self, number: int) -> None:
        """Let go of what was booked, if anything was."""
        self._until_us.pop(number, None)
        for name in self._booked.pop(number, ()):
            self._calendar.cancel(name)

    def drop_old(self, now_us: int) -> None:
        """Let go of what is written by now."""
        for number in [number for number, until_us in self._until_us.items() if until_us <= now_us]:
            self.drop(number)


def unwritten(known: Announcement, ended_us: int) -> tuple[ConstantRate, ...]:
    """Return at which rates the disk of an announcement writes, after that has ended, what had arrived by then.

    These are of those that it was promised. What waits is what by the promise waits once as much has arrived, less what
    is written since the last of it came; of hosts that nobody counts all is taken to have come as it was promised.
    """
    if not (known.rates and known.drains):
        return ()
    to_send, to_write = _moved(known.rates), _moved(known.drains)
    come_bytes, since_us = min(known.size_bytes, total_bytes(known.delivered)), ended_us
    if known.delivered and all(one.counted_since_ns or one.payload_bytes for one in known.delivered):
        since_us = max(0, ended_us - max(one.last_us for one in known.delivered))
    else:
        come_bytes = max(come_bytes, known.size_bytes * _moved(known.rates, ended_us) // to_send)
    as_if_us = _when_moved(known.rates, to_send * come_bytes // known.size_bytes)
    written = _moved(known.drains, min(ended_us, as_if_us + since_us))
    return _first(known.drains, ended_us, to_write * come_bytes // known.size_bytes - written)


def _moved(parts: Iterable[ConstantRate], until_us: int = 2**63) -> int:
    """Return what is moved by a time, bits x microseconds."""
    return sum(part.rate_bps * max(0, min(part.end_us, until_us) - part.start_us) for part in parts)


def _when_moved(parts: tuple[ConstantRate, ...], volume: int) -> int:
    """Return when so much is moved, Unix time."""
    for part in parts:
        needed_us = -(-volume // part.rate_bps)
        if needed_us <= part.end_us - part.start_us:
            return part.start_us + needed_us
        volume -= part.rate_bps * (part.end_us - part.start_us)
    return parts[-1].end_us


def _first(parts: Iterable[ConstantRate], from_us: int, volume: int) -> tuple[ConstantRate, ...]:
    """Return the parts after a time by which so much is moved, bits x microseconds."""
    found = []
    for part in parts:
        start_us, end_us = max(part.start_us, from_us), min(part.end_us, from_us + LONGEST_US)
        end_us = min(end_us, start_us + -(-volume // part.rate_bps))
        if start_us < end_us:
            found.append(ConstantRate(start_us, end_us, part.rate_bps))
            volume -= part.rate_bps * (end_us - start_us)
    return tuple(found)
