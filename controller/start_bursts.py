"""Whether a start of all senders at one instant fits the buffers of the ports where they meet, now."""

from controller.plan.ports import PortBurst, port_bursts
from controller.state.guard import GuardedState
from topology.network import Hop


def start_bursts(state: GuardedState) -> tuple[PortBurst, ...]:
    """Return what a start needs at each port under the desired plan; who has no agent now is not paced."""
    with state.changed:
        plan, paced = state.desired.plan, state.reported.connected
    return port_bursts(plan, state.site.network, paced)


class StartBurstWatch:
    """Says once of each port that a start would overrun it, and again when it has fitted in between."""

    def __init__(self, state: GuardedState) -> None:
        self._state = state
        self._looked_at: tuple[int, frozenset[str]] | None = None
        self._said: frozenset[Hop] = frozenset()

    def look(self) -> None:
        """Look again, if there is another plan or another agent than before."""
        state = self._state
        with state.changed:
            now = state.desired.plan.epoch, state.reported.connected
        if now == self._looked_at:
            return
        self._looked_at = now
        too_large = [port for port in start_bursts(state) if not port.fits]
        for port in too_large:
            if port.link not in self._said:
                state.events.publish(
                    "burst.too_large",
                    level="warning",
                    link=str(port.link),
                    senders=", ".join(port.hosts),
                    needed_bytes=port.chosen_bytes,
                    buffer_bytes=port.buffer_bytes,
                    why="; ".join(c.reason for c in port.chosen),
                )
        self._said = frozenset(port.link for port in too_large)
