"""The lines of the circuits: which are down, as the ports at their ends say, and which are not trusted yet. Pure.

Times are elapsed times: a wall clock that is set proves nothing of a line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

RETURN_AFTER_US = 10_000_000  # a line that has come back is used again when it has been up for this long

Port = tuple[int, int]  # dpid and port number


class LineState(StrEnum):
    """How a circuit's line is."""

    UP = "up"
    DOWN = "down"
    RETURNING = "returning"  # up, but not for long enough yet


class LineEvent(StrEnum):
    """What happens to it."""

    CUT = "cut"  # the port at one of its ends is dead
    JOIN = "join"  # the ports at both ends are live
    PROVE = "prove"  # it has been up for long enough, or is all there is


LINE_NEXT: dict[LineState, dict[LineEvent, LineState]] = {
    LineState.UP: {LineEvent.CUT: LineState.DOWN, LineEvent.JOIN: LineState.UP},
    LineState.DOWN: {LineEvent.CUT: LineState.DOWN, LineEvent.JOIN: LineState.RETURNING},
    LineState.RETURNING: {
        LineEvent.CUT: LineState.DOWN,
        LineEvent.JOIN: LineState.RETURNING,
        LineEvent.PROVE: LineState.UP,
    },
}


@dataclass(frozen=True, slots=True)
class Lines:
    """What is known of the lines. One that flaps would move flows with each beat: one that returns must prove itself.

    Unless it is all there is: then it is :meth:`trusted` at once, for flows have nowhere else to be.

    Attributes:
        return_after_us: how long a line must have been up again before it is used.
        dead_ports: by circuit that a switch has spoken of, the ports at its ends that are dead.
        states: by such a circuit, how its line is; one that returns may have proved itself since.
        trusted_us: by circuit that has been down, from when on it is used again.
        last_down: the circuits that were down when :meth:`noted` was called last.
    """

    return_after_us: int = RETURN_AFTER_US
    dead_ports: Mapping[str, frozenset[Port]] = field(default_factory=dict)
    states: Mapping[str, LineState] = field(default_factory=dict)
    trusted_us: Mapping[str, int] = field(default_factory=dict)
    last_down: frozenset[str] = frozenset()

    def said(self, circuit: str, port: Port, now_us: int, *, is_live: bool) -> "Lines":
        """Return them after a switch has said how the port at one end of a circuit is."""
        ports, before = self.dead_ports.get(circuit, frozenset()), self.states.get(circuit, LineState.UP)
        dead = ports - {port} if is_live else ports | {port}
        state = LINE_NEXT[before][LineEvent.CUT if dead else LineEvent.JOIN]
        trusted_us = dict(self.trusted_us)
        if (before, state) == (LineState.DOWN, LineState.RETURNING):
            trusted_us[circuit] = now_us + self.return_after_us
        return replace(
            self,
            dead_ports={**self.dead_ports, circuit: dead},
            states={**self.states, circuit: state},
            trusted_us=trusted_us,
        )

    def state(self, circuit: str, now_us: int) -> LineState:
        """Return how a circuit's line is."""
        known = self.states.get(circuit, LineState.UP)
        is_proved = known is LineState.RETURNING and self.trusted_us[circuit] <= now_us
        return LINE_NEXT[known][LineEvent.PROVE] if is_proved else known

    def down(self, now_us: int) -> frozenset[str]:
        """Return the circuits that are not to be used."""
        return frozenset(c for c in self.dead_ports if self.state(c, now_us) is not LineState.UP)

    def returning(self, now_us: int) -> tuple[str, ...]:
        """Return the circuits that have yet to prove themselves, in the order in which they will have."""
        found = [(self.trusted_us[c], c) for c in self.dead_ports if self.state(c, now_us) is LineState.RETURNING]
        return tuple(circuit for _, circuit in sorted(found))

    def trusted(self, circuit: str, now_us: int) -> "Lines":
        """Return them with one that returns used from now on."""
        return replace(self, trusted_us={**self.trusted_us, circuit: now_us})

    def noted(self, now_us: int) -> tuple["Lines", tuple[tuple[str, LineState], ...]]:
        """Return them, and the circuits that are down since the last call, and those that may be used again."""
        down, before = self.down(now_us), self.last_down
        gone, back = sorted(down - before), sorted(before - down)
        news = (*((c, LineState.DOWN) for c in gone), *((c, LineState.UP) for c in back))
        return replace(self, last_down=down), news

    def due_us(self, now_us: int) -> int | None:
        """Return when the next line will have proved itself; None if none is about to."""
        return next((self.trusted_us[circuit] for circuit in self.returning(now_us)), None)
