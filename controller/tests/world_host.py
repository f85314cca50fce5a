"""A host of the random world, as it is, apart from what a controller believes of it."""

from collections import deque
from dataclasses import dataclass, field

from controller.plan.plan import Entry
from topology.protocol import Applied, Demand


@dataclass(slots=True)
class WorldHost:
    """A host as it is.

    Attributes:
        in_force: what its kernel holds, and of which epoch.
        until_us: when that lease ends.
        stepped_down: the flows that it keeps to their standby rate.
        inbox: what is on its way to it, with the time it was sent.
        outbox: what is on its way to the controller.
        hangs: it reads nothing.
        is_first: it has read nothing since it started anew; what it said before it does not know, so it stands by.
    """

    in_force: tuple[int, tuple[Entry, ...]] = (0, ())
    until_us: int = 0
    stepped_down: set[str] = field(default_factory=set)
    inbox: deque[tuple[int, int, tuple[Entry, ...]]] = field(default_factory=deque)
    outbox: deque[Applied | Demand] = field(default_factory=deque)
    hangs: bool = False
    is_first: bool = False

    def acting(self, now_us: int) -> tuple[Entry, ...]:
        """Return what it really may send."""
        if now_us >= self.until_us:
            return ()
        return tuple(e.stepped_down() if e.flow.name in self.stepped_down else e for e in self.in_force[1])
