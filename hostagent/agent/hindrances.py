"""What keeps connections from sending, as TCP itself counts it (tcp_info of Linux 4.9, read by sock_diag).

For each connection the kernel counts how long it had data to send (busy), and of that, how long the peer's window or
its own buffer kept it back. Here that is summed by entry of the plan, since the look before.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from hostagent.doctor.connections import SendingConnection, sending
from hostagent.kernel.layout import EntryCounters
from hostagent.kernel.plan import V4_MAPPED, V4_MAPPED_BITS, Match, matches_of
from hostagent.log import log
from topology.protocol import Allocation

ENOUGH_PERCENT = 97  # of its rate; a flow that is held to a little more than its receiver drains has 94


@dataclass(frozen=True, slots=True)
class KeptBack:
    """How long the connections of an entry were busy since the look before, together, and what kept them back, us."""

    busy_us: int = 0
    receiver_us: int = 0
    buffer_us: int = 0

    def plus(self, other: "KeptBack") -> "KeptBack":
        """Return both together."""
        return KeptBack(
            self.busy_us + other.busy_us, self.receiver_us + other.receiver_us, self.buffer_us + other.buffer_us
        )


class Entries:
    """Which entry a connection belongs to, as ``slot_of`` in bpf/plan.h finds it.

    One of the connection's own address, else one of any; of these the longest prefix; of equal ones the one that names
    more. A mark is what the socket sends with, which may be the plan's: what a controller tells apart by the
    application's own mark, it marks with the same.
    """

    def __init__(self, allocations: Iterable[Allocation]) -> None:
        self._names: dict[Match, str] = {}
        for one in allocations:
            self._names |= {match: one.name for match in matches_of(one) if match not in self._names}
        self._bits = sorted({match.dest.prefixlen for match in self._names}, reverse=True)

    def name_of(self, connection: SendingConnection) -> str | None:
        """Return the name of a connection's entry; None if it has none.

        >>> from ipaddress import IPv4Address, IPv4Network
        >>> from topology.protocol import FlowClass
        >>> entries = Entries(
        ...     Allocation(name, FlowClass.URGENT, IPv4Network(dest), 800, 9, dest_port=port)
        ...     for name, dest, port in (("all", "10.0.0.0/8", 0), ("one", "10.1.0.1/32", 0), ("web", "10.0.0.0/8", 80))
        ... )
        >>> ours = IPv4Address("10.9.0.1")
        >>> peers = (("10.1.0.1", 80), ("10.2.0.1", 80), ("10.2.0.1", 81), ("11.0.0.1", 80))
        >>> [entries.name_of(SendingConnection(1, IPv4Address(a), port, ours, 9, 0, 0, 0, 0)) for a, port in peers]
        ['one', 'web', 'all', None]
        """
        return self._of(connection, _as_ipv6(connection.local)) or self._of(connection, None)

    def _of(self, connection: SendingConnection, source: IPv6Address | None) -> str | None:
        """Return the name of the entry of a source: an address of the host, or None for any."""
        peer, port, local_port = _as_ipv6(connection.peer), connection.port, connection.local_port
        for bits in self._bits:
            if bits < V4_MAPPED_BITS and not isinstance(connection.peer, IPv6Address):
                continue
            net = IPv6Network((int(peer) >> (128 - bits) << (128 - bits), bits))
            for match in (
                Match(net, port, local_port, source=source),
                Match(net, port, 0, source=source),
                Match(net, 0, local_port, source=source),
                Match(net, 0, 0, connection.dscp, source),
                Match(net, 0, 0, source=source),
            ):
                if match in self._names:
                    return self._names[match]
        return None


class Hindrances:
    """Looks at the connections while an entry that has some gets less than its rate.

    Args:
        connections: returns those that may send now.
    """

    def __init__(self, connections: Callable[[], Iterable[SendingConnection]] = sending) -> None:
        self._connections = connections
        self._before: Mapping[int, SendingConnection] = {}
        self._delivered: Mapping[str, int] = {}
        self._looked_ns = 0

    def seen(
        self, allocations: Iterable[Allocation], counters: Mapping[str, EntryCounters], now_ns: int
    ) -> dict[str, KeptBack]:
        """Return by entry what has come since the call before; nothing for one that has enough of its rate."""
        allocations, took_ns = tuple(allocations), now_ns - self._looked_ns
        slow = frozenset(a.name for a in allocations if self._is_slow(a, counters, took_ns))
        self._delivered = {name: one.delivered_bytes for name, one in counters.items()}
        self._looked_ns = now_ns
        if not slow:
            return {}
        try:
            now = {one.cookie: one for one in self._connections()}
        except OSError as error:
            log.warning("agent.connections_not_seen", why=str(error))
            return {}
        before, self._before = self._before, now
        entries, found = Entries(allocations), dict[str, KeptBack]()
        for cookie, one in now.items():
            name = entries.name_of(one)
            if name in slow:
                found[name] = found.get(name, KeptBack()).plus(_grown(one, before.get(cookie), took_ns // 1000))
        return found

    def _is_slow(self, allocation: Allocation, counters: Mapping[str, EntryCounters], took_ns: int) -> bool:
        seen = counters.get(allocation.name)
        if seen is None or not seen.connections:
            return False
        moved_bytes = seen.delivered_bytes - self._delivered.get(allocation.name, 0)
        return moved_bytes * 8_000_000_000 * 100 < allocation.rate_bps * took_ns * ENOUGH_PERCENT


def _grown(now: SendingConnection, before: SendingConnection | None, took_us: int) -> KeptBack:
    """Return what a connection has counted since it was seen before; no more than the time that has passed."""
    counted = (now.busy_us, now.receiver_us, now.buffer_us)
    known = (before.busy_us, before.receiver_us, before.buffer_us) if before else (0, 0, 0)
    return KeptBack(*(min(took_us, max(0, a - b)) for a, b in zip(counted, known, strict=True)))


def _as_ipv6(address: IPv4Address | IPv6Address) -> IPv6Address:
    return address if isinstance(address, IPv6Address) else IPv6Address(V4_MAPPED + int(address))
