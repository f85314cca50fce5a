"""Whether a start of all senders at one instant fits the buffers of the ports where they meet, now."""

from controller.book import Book
from controller.plan.ports import PortBurst, port_bursts
from topology.network import Hop


def start_bursts(book: Book) -> tuple[PortBurst, ...]:
    """Return what a start needs at each port under the wanted plan; who has no agent now is not paced."""
    with book.changed:
        plan = book.desired
        paced = {name for name, state in book.hosts.items() if state.connected}
    return port_bursts(plan, book.site.network, paced)


class StartBurstWatch:
    """Says once of each port that a start would overrun it, and again when it has fitted in between."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._looked_at: tuple[int, frozenset[str]] | None = None
        self._said: frozenset[Hop] = frozenset()

    def look(self) -> None:
        """Look again, if there is another plan or another agent than before."""
        book = self._book
        with book.changed:
            now = book.desired.epoch, frozenset(name for name, state in book.hosts.items() if state.connected)
        if now == self._looked_at:
            return
        self._looked_at = now
        too_large = [port for port in start_bursts(book) if not port.fits]
        for port in too_large:
            if port.link not in self._said:
                book.events.publish(
                    "burst.too_large",
                    level="warning",
                    link=str(port.link),
                    senders=", ".join(port.hosts),
                    needed_bytes=port.chosen_bytes,
                    buffer_bytes=port.buffer_bytes,
                    why="; ".join(c.reason for c in port.chosen),
                )
        self._said = frozenset(port.link for port in too_large)
