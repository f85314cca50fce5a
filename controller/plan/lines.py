"""The lines of the circuits: which are down, as the ports at their ends say, and which are not trusted yet. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum

RETURN_AFTER_US = 10_000_000  # a line that has come back is used again when it has been up for this long

Port = tuple[int, int]  # dpid and port number


class LineState(StrEnum):
    """How a circuit's line is."""

    UP = "up"
    DOWN = "down"
    RETURNING = "returning"  # up, but not for long enough yet


@dataclass(slots=True)
class Lines:
    """What is known of the lines. One that flaps would move flows with each beat: one that returns must prove itself.

    Attributes:
        return_after_us: how long a line must have been up again before it is used.
    """

    return_after_us: int = RETURN_AFTER_US
    _dead_ports: dict[str, set[Port]] = field(default_factory=dict)
    _trusted_us: dict[str, int] = field(default_factory=dict)
    _noted: frozenset[str] = frozenset()

    def said(self, circuit: str, port: Port, now_us: int, *, is_live: bool) -> None:
        """Take in what a switch says of the port at one end of a circuit."""
        dead = self._dead_ports.setdefault(circuit, set())
        was_up = not dead
        (dead.discard if is_live else dead.add)(port)
        if not was_up and not dead:
            self._trusted_us[circuit] = now_us + self.return_after_us

    def state(self, circuit: str, now_us: int) -> LineState:
        """Return how a circuit's line is."""
        if self._dead_ports.get(circuit):
            return LineState.DOWN
        return LineState.RETURNING if now_us < self._trusted_us.get(circuit, 0) else LineState.UP

    def down(self, now_us: int) -> frozenset[str]:
        """Return the circuits that are not to be used."""
        return frozenset(c for c in self._dead_ports if self.state(c, now_us) is not LineState.UP)

    def news(self, now_us: int) -> tuple[tuple[str, LineState], ...]:
        """Return, once, the circuits that are down since the last call, and those that may be used again."""
        down, noted = self.down(now_us), self._noted
        self._noted = down
        gone, back = sorted(down - noted), sorted(noted - down)
        return (*((c, LineState.DOWN) for c in gone), *((c, LineState.UP) for c in back))

    def due_us(self, now_us: int) -> int | None:
        """Return when the next line will have proved itself; None if none is about to."""
        returning = (self._trusted_us[c] for c in self._dead_ports if self.state(c, now_us) is LineState.RETURNING)
        return min(returning, default=None)
