"""What one host may be acting on, from what it was told and what it has said of it. Pure.

A message counts from when it is sent, not from when it is confirmed: the host may act on it at any moment in between.
It stops to count when a later one is confirmed, since a host reads them in order, or a lease after the last time that
it can have been renewed: the kernel of the host counts the lease down itself. Times are elapsed times, which nobody
can set.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from controller.plan.plan import Entry


@dataclass(frozen=True, slots=True)
class Grant:
    """One message to a host.

    Attributes:
        epoch: its number.
        entries: what the host may do.
        until_us: from when on it does not count any more, elapsed time; None while it is renewed.
        stepped_down: the names of the flows of which the host says that it keeps to their standby rate.
    """

    epoch: int
    entries: tuple[Entry, ...]
    until_us: int | None = None
    stepped_down: frozenset[str] = frozenset()

    @property
    def acting(self) -> tuple[Entry, ...]:
        """What the host acts on at most while this holds."""
        if not self.stepped_down:
            return self.entries
        return tuple(e.stepped_down() if e.flow.name in self.stepped_down else e for e in self.entries)


@dataclass(frozen=True, slots=True)
class Leases:
    """The messages to one host that may still count, oldest first."""

    grants: tuple[Grant, ...] = ()

    def acting(self, now_us: int) -> tuple[Entry, ...]:
        """Return, for each flow, the most that the host may be acting on at an instant."""
        alive = [t.acting for t in self.grants if t.until_us is None or now_us < t.until_us]
        return alive[0] if len(alive) == 1 == len(alive[0]) else most(*alive)

    def changes_us(self, now_us: int) -> int | None:
        """Return when the next message stops to count by itself; None if none does."""
        return min((t.until_us for t in self.grants if t.until_us is not None and now_us < t.until_us), default=None)

    def sent(self, epoch: int, entries: tuple[Entry, ...], now_us: int, lease_us: int) -> "Leases":
        """Return them after one more message was sent; what was before is not renewed any more.

        The same epoch once more is the same message: what the host has said of it stays said.
        """
        if self.grants and self.grants[-1].epoch == epoch:
            return Leases((*self.grants[:-1], replace(self.grants[-1], until_us=None)))
        until_us = now_us + lease_us
        before = [
            Grant(t.epoch, t.entries, until_us, t.stepped_down) if t.until_us is None else t
            for t in self.grants
            if t.until_us is None or now_us < t.until_us
        ]
        return Leases((*before, Grant(epoch, entries)))

    def taken_over(self, epoch: int, entries: tuple[Entry, ...], until_us: int) -> "Leases":
        """Return them with what an earlier controller has granted, as the host says when it calls."""
        return Leases((Grant(epoch, entries, until_us), *self.grants))

    def confirmed(self, epoch: int) -> "Leases":
        """Return them after the host has confirmed an epoch: it acts on nothing that came before."""
        return Leases(tuple([t for t in self.grants if t.epoch >= epoch]))

    def stepped_down(self, epoch: int, name: str) -> "Leases":
        """Return them after the host has said that under an epoch it keeps a flow to its standby rate.

        Said again, which it is each second, it changes nothing.
        """
        if all(t.epoch != epoch or name in t.stepped_down for t in self.grants):
            return self
        return Leases(
            tuple(replace(t, stepped_down=t.stepped_down | {name}) if t.epoch == epoch else t for t in self.grants)
        )

    def lost(self, now_us: int, lease_us: int) -> "Leases":
        """Return them after the stream has ended: nothing is renewed any more."""
        return Leases(
            tuple(t if t.until_us is not None else replace(t, until_us=now_us + lease_us) for t in self.grants)
        )


def most(*held: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return, for each flow, the largest allocation among those a host may be acting on.

    One that is for the same connections by the same way as an earlier one, under another name, is the same flow: where
    one allocation stands for several promises it goes on when that of its name ends.
    """
    largest: dict[str, Entry] = {}
    names: dict[tuple[object, ...], str] = {}
    for entry in (e for entries in held for e in entries):
        flow = entry.flow
        name = names.setdefault((flow.host, flow.target, flow.flow_class, flow.path, flow.selector), flow.name)
        known = largest.get(name)
        if known is None or entry.frame_bps > known.frame_bps:
            largest[name] = entry
    return tuple(largest.values())
