"""The controller's allocations as the kernel part holds them, and the steps from one plan to the next. Pure.

Each allocation has a slot: the index of its entry and of its counters. It keeps the slot for as long as its name is
in the plan, so that its counters only grow; the next one there begins another term. A match (destination and ports)
leads to a slot.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Network
from zlib import crc32

from hostagent.errors import NoRoomBeside, NotEncodable
from hostagent.kernel.deals import Deal, Deals, Destination, deals_of
from topology.addresses import Prefix
from topology.protocol import Allocation, CalledLane, Tail

MAX_ENTRIES = 1024  # HEADWAY_MAX_ENTRIES in bpf/headway.h
# Of the plan and the one before together: two addresses each of as many entries as there are are a quarter of it. The
# map has room for one more: before Linux 6.13 a full one does not take another value for a match that it has, either.
MAX_MATCHES = 8191
MAX_TURNS = 1 << 15  # a round has 31 at most: to 512 destinations by two lanes, by IPv4 and by IPv6
V4_MAPPED = int(IPv6Address("::ffff:0:0"))  # RFC 4291 section 2.5.5.2
V4_MAPPED_BITS = 96
AHEAD_MS, LEAST_AHEAD_BYTES = 20, 1 << 18  # of a lane's rate: longer than a program takes until it writes again


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the kernel part is told once, when it is loaded.

    Attributes:
        loss_trip_ppm: segments sent again, in a million delivered or sent again, from which on loss is catastrophic and
            the allocation's connections are given back.
        loss_period_us: over what time loss is judged.
        loss_clear_ppm: at no more than this they are taken again...
        loss_hold_us: ...but not before this; twice as long each time it happens again soon, up to 32 times.
        rto_min_us: least retransmission timeout of a connection that is held.
        tail_copies: whether what is sent again at the end of a transfer goes three times.
        tail_coded: whether parities follow the end of the transfers of an allocation that says so, and what one that
            comes lacks is rebuilt.
    """

    loss_trip_ppm: int = 200_000
    loss_period_us: int = 3_000_000
    loss_clear_ppm: int = 20_000
    loss_hold_us: int = 10_000_000
    rto_min_us: int = 20_000
    tail_copies: bool = True
    tail_coded: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """Which sockets an allocation is for: destination prefix (IPv4 as ::ffff:a.b.c.d) and ports, 0 for any.

    ``own_dscp``: only those that the application itself has marked with this code point; None for any. ``source``: only
    those from this address of the host, written as the destination is; None for any.
    """

    dest: IPv6Network
    dest_port: int
    local_port: int
    own_dscp: int | None = None
    source: IPv6Address | None = None


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """What all connections of one allocation may do together; the rates are payload; ``dscp`` None: not marked.

    ``standby_bytes_per_s`` 0: what they want is not watched; ``size_bytes`` 0: not known. ``way``: a number for the
    circuits they cross, 0 if these are not known. ``ahead_bytes``: what the application of each connection may have
    written and not sent; 0 for what its buffer holds. ``tail_coded``: whether parities follow the end of a transfer.
    """

    rate_bytes_per_s: int
    window_segments: int
    dscp: int | None
    standby_bytes_per_s: int = 0
    size_bytes: int = 0
    way: int = 0
    ahead_bytes: int = 0
    tail_coded: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """One allocation in the kernel."""

    slot: int
    matches: tuple[Match, ...]
    entry: KernelEntry


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """All allocations in the kernel, by name; and to which lanes new connections are dealt."""

    held: dict[str, Held] = field(default_factory=dict)
    deals: Deals = field(default_factory=dict)

    @property
    def watched(self) -> dict[int, KernelEntry]:
        """The entries whose demand is watched, by slot."""
        return {held.slot: held.entry for held in self.held.values() if held.entry.standby_bytes_per_s}


@dataclass(frozen=True, slots=True)
class MapChange:
    """The steps from one kernel plan to the next, in the order of the fields.

    Attributes:
        plan: what the kernel holds afterwards.
        fresh_slots: counters to set to zero.
        entries: entries to write, those that shrink before those that grow.
        puts: matches to write.
        deletes: matches to remove; after the puts, so that no socket is without its entry meanwhile.
        deals: destinations whose connections are dealt to lanes otherwise than before.
        undealt: destinations without lanes from now on, with the turns they had.
        rescan: open sockets must be walked: which ones match, or their DSCP, has changed.
    """

    plan: KernelPlan
    fresh_slots: tuple[int, ...] = ()
    entries: tuple[tuple[int, KernelEntry], ...] = ()
    puts: tuple[tuple[Match, int], ...] = ()
    deletes: tuple[Match, ...] = ()
    deals: tuple[tuple[Destination, Deal], ...] = ()
    undealt: tuple[tuple[Destination, int], ...] = ()
    rescan: bool = False


def matches_of(allocation: Allocation) -> tuple[Match, ...]:
    """Return which sockets an allocation is for: from each address of its interface to each prefix of its destination.

    >>> from ipaddress import IPv4Network
    >>> from topology.protocol import FlowClass
    >>> (match,) = matches_of(Allocation("a", FlowClass.URGENT, IPv4Network("10.0.0.0/8"), 800, 9, dest_port=443))
    >>> match.dest == IPv6Network("::ffff:10.0.0.0/104"), match.dest_port, match.source
    (True, 443, None)
    """
    dests = dict.fromkeys((allocation.dest, *allocation.also))
    selector = allocation.dest_port, allocation.local_port, allocation.own_dscp
    if not allocation.sources:
        return tuple(dict.fromkeys(Match(_as_ipv6(dest), *selector) for dest in dests))
    sources = [prefix for prefix in allocation.sources if prefix.num_addresses == 1]  # a cluster's are not our sockets'
    return tuple(
        Match(_as_ipv6(dest), *selector, _as_ipv6(source).network_address)
        for source in sources
        for dest in dests
        if source.version == dest.version
    )


def _as_ipv6(prefix: Prefix) -> IPv6Network:
    if isinstance(prefix, IPv6Network):
        return prefix
    return IPv6Network((V4_MAPPED + int(prefix.network_address), V4_MAPPED_BITS + prefix.prefixlen))


def entry_of(allocation: Allocation) -> KernelEntry:
    """Return the kernel's entry; the rates are rounded down to whole bytes per second, never up.

    Raises:
        NotEncodable: less than one byte per second.
    """
    standby_bps = allocation.standby_bps
    if standby_bps is not None and standby_bps < 8:
        raise NotEncodable((allocation.name,), f"a standby of {standby_bps} bit/s is less than one byte per second")
    if allocation.rate_bps < 8:
        raise NotEncodable((allocation.name,), f"{allocation.rate_bps} bit/s is less than one byte per second")
    standby_bytes_per_s = (standby_bps or 0) // 8
    rate_bytes_per_s = allocation.rate_bps // 8
    return KernelEntry(
        rate_bytes_per_s,
        allocation.window_segments,
        allocation.dscp,
        standby_bytes_per_s,
        allocation.size_bytes,
        way=crc32(",".join(allocation.circuits).encode()),
        ahead_bytes=max(LEAST_AHEAD_BYTES, rate_bytes_per_s * AHEAD_MS // 1000) if allocation.lanes else 0,
        tail_coded=allocation.tail is Tail.CODED,
    )


def changes_to(
    allocations: Iterable[Allocation], old: KernelPlan, called: Iterable[CalledLane] = ()
) -> tuple[MapChange, ...]:
    """Return the changes from ``old`` to exactly ``allocations``, one after the other.

    It is one; where there is no room for both plans at once, one before it takes out what the new plan does not have.

    Raises:
        NotEncodable: as of ``change_to``, but for want of room only if the new plan alone is too large.
    """
    wanted, called = tuple(allocations), tuple(called)
    try:
        return (change_to(wanted, old, called),)
    except NoRoomBeside:
        first = _difference(old, _staying(wanted, old))
        return first, change_to(wanted, first.plan, called)


def _staying(wanted: Iterable[Allocation], old: KernelPlan) -> KernelPlan:
    """Return the new plan without the names and the matches that the old one does not have."""
    matches = {match for held in old.held.values() for match in held.matches}
    return KernelPlan(
        {
            one.name: Held(
                old.held[one.name].slot, tuple(match for match in matches_of(one) if match in matches), entry_of(one)
            )
            for one in wanted
            if one.name in old.held
        },
        old.deals,
    )


def change_to(allocations: Iterable[Allocation], old: KernelPlan, called: Iterable[CalledLane] = ()) -> MapChange:
    """Return the steps from ``old`` to exactly ``allocations``, and the lanes that connections of ours go to.

    Without a difference there are none.

    A slot that becomes free is not given away in the same change: sockets may use it until the last step.

    Raises:
        NoRoomBeside: too many names or matches while those of ``old`` are there.
        NotEncodable: two allocations with one name or one match, too many of either or of turns, or a rate that rounds
            to nothing.
    """
    wanted = tuple(allocations)
    _check(wanted)
    taken = {held.slot for held in old.held.values()}
    free = (slot for slot in range(MAX_ENTRIES) if slot not in taken)
    held: dict[str, Held] = {}
    for allocation in wanted:
        before = old.held.get(allocation.name)
        slot = before.slot if before else next(free, None)
        if slot is None:
            raise NoRoomBeside((allocation.name,), f"no free slot of {MAX_ENTRIES} until the old plan has gone")
        held[allocation.name] = Held(slot, matches_of(allocation), entry_of(allocation))
    deals = deals_of(wanted, called)
    count = sum(len(deal.turns) for deal in deals.values())
    if count > MAX_TURNS:
        raise NotEncodable(("lanes",), f"{count} turns of connections, of at most {MAX_TURNS}")
    return _difference(old, KernelPlan(held, deals))


def _check(allocations: tuple[Allocation, ...]) -> None:
    """Refuse what has no single meaning.

    Raises:
        NotEncodable: two allocations with one name or one match, too many of either, or one with a port and a mark.
    """
    names: set[str] = set()
    by_match: dict[Match, str] = {}
    for allocation in allocations:
        if allocation.name in names:
            raise NotEncodable((allocation.name,), "the name occurs twice")
        names.add(allocation.name)
        if len(names) > MAX_ENTRIES:
            raise NotEncodable((allocation.name,), f"more than {MAX_ENTRIES} allocations")
        if allocation.own_dscp is not None and (allocation.dest_port or allocation.local_port):
            raise NotEncodable((allocation.name,), "a port and the application's own mark; one of them tells enough")
        for match in matches_of(allocation):
            other = by_match.setdefault(match, allocation.name)
            if other != allocation.name:
                raise NotEncodable((other, allocation.name), "the same destination and ports; which one holds?")
        if len(by_match) > MAX_MATCHES:
            raise NotEncodable((allocation.name,), f"more than {MAX_MATCHES} addresses and ports")


def _difference(old: KernelPlan, new: KernelPlan) -> MapChange:
    old_slots = {match: held.slot for held in old.held.values() for match in held.matches}
    new_slots = {match: held.slot for held in new.held.values() for match in held.matches}
    if len(old_slots.keys() | new_slots.keys()) > MAX_MATCHES:
        raise NoRoomBeside((), f"more than {MAX_MATCHES} addresses and ports, with those of the plan before")
    old_entries = {held.slot: held.entry for held in old.held.values()}
    changed = [(h.slot, h.entry) for h in new.held.values() if old_entries.get(h.slot) != h.entry]
    nothing = KernelEntry(0, 0, None)
    changed.sort(key=lambda item: item[1].rate_bytes_per_s > old_entries.get(item[0], nothing).rate_bytes_per_s)
    puts = tuple((match, slot) for match, slot in new_slots.items() if old_slots.get(match) != slot)
    deletes = tuple(match for match in old_slots if match not in new_slots)
    marked_anew = any(slot in old_entries and old_entries[slot].dscp != entry.dscp for slot, entry in changed)
    return MapChange(
        plan=new,
        fresh_slots=tuple(held.slot for held in new.held.values() if held.slot not in old_entries),
        entries=tuple(changed),
        puts=puts,
        deletes=deletes,
        deals=tuple(dealt for dealt in new.deals.items() if old.deals.get(dealt[0]) != dealt[1]),
        undealt=tuple((to, len(deal.turns)) for to, deal in old.deals.items() if new.deals.get(to) != deal),
        rescan=bool(puts or deletes or marked_anew),
    )
