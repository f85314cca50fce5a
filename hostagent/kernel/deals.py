"""Which lane a new connection goes by: turns, laid out so that any few in a row are in proportion. Pure.

Connections are few (a mover has four or eight), so they are dealt: a hash would give 8 connections to 2 lanes as 4 : 4
in a quarter of all cases. An application that binds an address itself has chosen its lane.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network

from topology.addresses import Prefix
from topology.protocol import Allocation, CalledLane

MOST_TURNS = 60  # of one destination: 2 and 3 lanes of usual proportions go into it without a rest
V4_MAPPED = int(IPv6Address("::ffff:0:0"))  # RFC 4291 section 2.5.5.2


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a connection goes: an address (IPv4 as ::ffff:a.b.c.d), and a port, 0 for any."""

    address: IPv6Address
    port: int


@dataclass(frozen=True, slots=True)
class Deal:
    """Whose turn it is, address by address; they are the host's own, or the far end's."""

    turns: tuple[IPv6Address, ...]
    is_far: bool = False


Deals = Mapping[Destination, Deal]


def deals_of(allocations: Iterable[Allocation], called: Iterable[CalledLane] = ()) -> Deals:
    """Return how the next connections that are bound to no address are dealt, by where they go.

    From which address those are that this host sends by, and to which those go that it is sent by.

    Lanes are in proportion to what each is to move. One that is for a port of this host, or for what an application has
    marked, is not dealt to: neither is known when a connection is made.

    >>> from ipaddress import ip_network
    >>> from topology.protocol import FlowClass
    >>> def lane(number, size_bytes):
    ...     name, own = f"image/{number}", (ip_network(f"10.0.0.{number}/32"),)
    ...     to = ip_network("10.0.0.9/32")
    ...     return Allocation(name, FlowClass.URGENT, to, 800, 9, size_bytes=size_bytes, sources=own, lanes="image")
    >>> two = lane(1, 200), lane(2, 100)
    >>> [str(turn.ipv4_mapped) for turn in deals_of(two)[Destination(IPv6Address("::ffff:10.0.0.9"), 0)].turns]
    ['10.0.0.1', '10.0.0.2', '10.0.0.1']
    >>> two = [CalledLane("image", one.sources, one.size_bytes) for one in two]
    >>> [str(turn.ipv4_mapped) for turn in deals_of((), two)[Destination(IPv6Address("::ffff:10.0.0.1"), 0)].turns]
    ['10.0.0.1', '10.0.0.2', '10.0.0.1']
    """
    lanes: dict[tuple[str, Destination], dict[IPv6Address, int]] = {}
    for one in allocations:
        if not one.lanes or one.local_port or one.own_dscp is not None:
            continue
        for dest in dict.fromkeys((one.dest, *one.also)):
            source = next((own for own in one.sources if _is_address(own) and own.version == dest.version), None)
            if source is not None and _is_address(dest):
                to = one.lanes, Destination(_as_ipv6(dest), one.dest_port)
                lanes.setdefault(to, {})[_as_ipv6(source)] = max(1, one.size_bytes)
    dealt: dict[Destination, Deal] = {}
    for (_, destination), of_lanes in lanes.items():
        if len(of_lanes) > 1:
            dealt.setdefault(destination, Deal(turns(of_lanes)))
    for of_one in _far(called).values():
        if len(of_one) > 1:
            for address in of_one:
                dealt.setdefault(Destination(address, 0), Deal(turns(of_one), is_far=True))
    return dealt


def _far(called: Iterable[CalledLane]) -> Mapping[tuple[str, int], Mapping[IPv6Address, int]]:
    """Return the far end's addresses, one a lane, with what each lane is to carry; by announcement and family."""
    found: dict[tuple[str, int], dict[IPv6Address, int]] = {}
    for lane in called:
        for version in (4, 6):
            first = next((one for one in lane.addresses if _is_address(one) and one.version == version), None)
            if first is not None:
                found.setdefault((lane.lanes, version), {})[_as_ipv6(first)] = max(1, lane.size_bytes)
    return found


def turns(weights: Mapping[IPv6Address, int]) -> tuple[IPv6Address, ...]:
    """Return lanes in turn, each as often as its weight says; the smallest round that is right to a sixtieth.

    How many turns of the round each has is settled first, by largest remainders, so that none is a whole turn off. Then
    smooth weighted round robin: the next turn is of whoever is furthest behind his part.
    """
    fewest = len(weights)
    count = min(range(fewest, max(fewest, MOST_TURNS) + 1), key=lambda n: (_off(list(weights.values()), n), n))
    parts = _apportioned(weights, count)
    has = dict.fromkeys(parts, 0)
    order = []
    for _ in range(count):
        has = {lane: behind + parts[lane] for lane, behind in has.items()}
        lane = max(has, key=lambda one: has[one])
        has[lane] -= count
        order.append(lane)
    return tuple(order)


def _apportioned(weights: Mapping[IPv6Address, int], count: int) -> Mapping[IPv6Address, int]:
    """Return how many of so many turns each lane has, by largest remainders.

    >>> list(_apportioned({IPv6Address(1): 10, IPv6Address(2): 6, IPv6Address(3): 6}, 4).values())
    [2, 1, 1]
    """
    total = sum(weights.values())
    whole = {lane: weight * count // total for lane, weight in weights.items()}
    by_rest = sorted(weights, key=lambda lane: weights[lane] * count % total, reverse=True)
    for lane in by_rest[: count - sum(whole.values())]:
        whole[lane] += 1
    return whole


def _off(weights: Sequence[int], count: int) -> int:
    """Return how far a round of so many turns is from the proportion, in sixtieths of a turn of it."""
    total = sum(weights)
    return max(abs(round(w * count / total) * total - w * count) * MOST_TURNS // (total * count) for w in weights)


def _is_address(prefix: Prefix) -> bool:
    return prefix.num_addresses == 1


def _as_ipv6(prefix: Prefix) -> IPv6Address:
    if isinstance(prefix, IPv6Network):
        return prefix.network_address
    return IPv6Address(V4_MAPPED + int(prefix.network_address))
