"""What hosts take, as their senders and they themselves tell it; and which flows are held to that. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from controller.plan.held import Intaking, can_be_held
from controller.plan.intake import Brake, Intake, IntakeSight
from controller.plan.keys import StorePlace
from controller.plan.plan import Entry, Flow, Plan, Selector
from controller.plan.routes import TransferEnds
from controller.plan.storing import StoreCapacity
from controller.state.progress import EntryProgress
from controller.state.reported import HostState, KnownStore, Reported
from topology.addresses import is_within
from topology.network import Network
from topology.telemetry import EntryTelemetry, StoreTelemetry, Telemetry
from topology.units import shown_rate
from topology.wire import Framing, Layer, converted_bps

LARGEST_PORT = 65535
IDLE_SHARE = 20  # of what is planned: a store that drains less, and keeps nothing waiting, has too little to drain
ENOUGH_PERCENT = 97  # of the planned rate: nothing keeps it back; one that is held has 94
BUSY_MS = 500  # of about a second: less, and it had too little to send for anything to be learnt
SURE_SHARE = 4  # its window was closed for a quarter of the time: that is not the first round trip alone
WAITED_SHARE = 50  # its window was closed for a fiftieth of the time: all the time there was no room for more


class Senders(NamedTuple):
    """Who is planned to send to a host."""

    network: Network
    entries: tuple[Entry, ...]


def senders_to(host: str, plan: Plan, network: Network) -> Senders:
    """Return who is planned to send to a host, by any of its interfaces."""
    return Senders(network, tuple(e for e in plan.entries if network.machine(e.flow.target) == host))


class IntakeNews(NamedTuple):
    """The receiver of a flow, or a store, that is held to another rate than before."""

    name: str
    before: Intake
    now: Intake


def seen_by_sender(seen: EntryTelemetry, delivered_bps: int, planned_bps: int) -> IntakeSight | None:
    """Return what a sender has seen of its receiver since the telemetry before; None if that says nothing.

    Args:
        seen: what was counted of an entry.
        delivered_bps: what its receiver has confirmed, bit/s of payload.
        planned_bps: what it was granted, bit/s of payload.
    """
    if seen.fallback or not seen.connections:
        return None
    if delivered_bps * 100 >= planned_bps * ENOUGH_PERCENT:
        return IntakeSight(delivered_bps, is_waiting=False)
    if seen.busy_ms < BUSY_MS:
        return None
    closed_ms = seen.receiver_limited_ms
    is_sure = closed_ms * SURE_SHARE >= seen.busy_ms
    return IntakeSight(delivered_bps, closed_ms * WAITED_SHARE >= seen.busy_ms, is_sure=is_sure)


def intakes_after(
    known: Mapping[str, Intake],
    told: Telemetry,
    moves: Mapping[str, EntryProgress],
    granted: Iterable[Entry],
    elapsed_us: int,
) -> dict[str, Intake]:
    """Return, by entry, what a host's receivers take after it has told of its entries, and of what it was granted."""
    by_name: dict[str, Entry] = {entry.flow.name: entry for entry in granted}
    found = {}
    for seen in told.entries:
        entry = by_name.get(seen.name)
        if entry is None:
            continue
        before = known.get(seen.name, Intake(entry.flow.target, since_us=elapsed_us))
        granted_bps = entry.payload_bps
        sight = seen_by_sender(seen, moves[seen.name].delivered_bps, granted_bps) if seen.name in moves else None
        found[seen.name] = before if sight is None else before.seen(sight, granted_bps, elapsed_us)
    return found


def seen_by_store(told: StoreTelemetry, planned_bps: int) -> IntakeSight | None:
    """Return what a store's host has seen of it; None while so little comes that it says nothing."""
    if not told.is_waiting and told.drained_bps * IDLE_SHARE < planned_bps:
        return None
    return IntakeSight(told.drained_bps, told.is_waiting, told.room_bytes, Brake(told.brake))


def stores_after(
    host: str, known: Mapping[str, KnownStore], told: Telemetry, senders: Senders, elapsed_us: int
) -> dict[str, KnownStore]:
    """Return, by name, what the stores of a host take after it has told of them."""
    found = {}
    for one in told.stores:
        before = known[one.name].intake if one.name in known else Intake(host, since_us=elapsed_us)
        if one.rate_bps is not None:
            since_us = before.since_us if before.is_fixed else elapsed_us
            now = Intake(host, one.rate_bps, one.room_bytes, Brake(one.brake), since_us, is_fixed=True)
        else:
            sending = [entry for entry in senders.entries if is_kept_in(entry.flow, one, senders.network)]
            planned_bps = sum(entry.payload_bps for entry in sending)
            sight = seen_by_store(one, planned_bps)
            now = before if sight is None else before.seen(sight, planned_bps, elapsed_us)
        found[one.name] = KnownStore(one, now)
    return found


def is_kept_in(flow: Flow, store: StoreTelemetry, network: Network) -> bool:
    """Return whether what a flow sends to a store's host is put there."""
    return is_put_there(flow.host, flow.selector, store, network)


def is_put_there(sender: str, selector: Selector, store: StoreTelemetry, network: Network) -> bool:
    """Return whether what a host sends to a store's host by some connections is put there.

    Where the store is that of some ports, connections that may use any are not known to be: they are left as they are.
    """
    port = selector.dest_port
    takes_all = store.first_port == 0 and store.last_port == LARGEST_PORT
    in_ports = takes_all or (bool(port) and store.first_port <= port <= store.last_port)
    own = network.host(sender).prefixes
    return in_ports and (not store.senders or any(is_within(one, prefix) for one in own for prefix in store.senders))


def capacity_of(
    reported: Reported, network: Network, ends: TransferEnds, selector: Selector, framing: Framing
) -> StoreCapacity | None:
    """Return the store that what is sent is put in, if it is known what that takes; None: all, or nobody knows."""
    machine = network.machine(ends.target)
    host = reported.hosts.get(machine)  # a site that is not ours has no agent that could tell
    for name, store in host.stores.items() if host is not None and host.connected else ():
        if all(is_put_there(sender, selector, store.told, network) for sender in ends.senders):
            if store.intake.drain_bps is None:
                return None
            payload, wire = framing.segment_bytes(Layer.PAYLOAD), framing.segment_bytes(Layer.WIRE)
            drain_bps = converted_bps(store.intake.drain_bps, Layer.PAYLOAD, Layer.WIRE, framing)
            room_bits, most_bits = (
                8 * size * wire // payload for size in (store.told.room_bytes, store.told.most_bytes)
            )
            return StoreCapacity(StorePlace(machine, name), drain_bps, room_bits, most_bits)
    return None


def news(before: Mapping[str, Intake], now: Mapping[str, Intake]) -> Iterator[IntakeNews]:
    """Yield what is held to another rate than before; what is not told of any more is held no longer."""
    for name in sorted(before.keys() | now.keys()):
        was, known = before.get(name, Intake()), now.get(name, Intake())
        if was.drain_bps != known.drain_bps:
            yield IntakeNews(name, was, known)


def holding_receivers(
    flows: Iterable[Flow], reported: Reported, network: Network, absent: frozenset[str]
) -> Iterator[Intaking]:
    """Yield the receivers that some flows are held by; what a store's host has told lapses once it is absent."""
    holding = reported.hosts.holding

    def concerns(flow: Flow) -> bool:
        return flow.machine in holding or network.machine(flow.target) in holding

    concerned = [f for f in flows if concerns(f)] if holding else []
    sending = [f for f in concerned if can_be_held(f) and not f.is_away and not reported.agent_of(f).waits(f)]
    for flow in sending:
        intake = intake_of(flow, reported)
        if intake is not None:
            yield Intaking(intake, (flow.name,))
    for name in sorted(holding):
        host = reported.hosts[name]
        if name in absent or not host.stores:
            continue
        to_it, taken = [f for f in sending if network.machine(f.target) == name], set[str]()
        for store in host.stores.values():
            kept = [f.name for f in to_it if f.name not in taken and is_kept_in(f, store.told, network)]
            taken.update(kept)
            if store.intake.drain_bps is not None and kept:
                yield Intaking(store.intake, tuple(kept))


def intake_of(flow: Flow, reported: Reported) -> Intake | None:
    """Return what the receiver of a flow takes; None if that is all, or nobody knows: its sender has to be there."""
    host = reported.agent_of(flow)
    intake = host.intakes.get(flow.name) if host.connected else None
    return None if intake is None or intake.drain_bps is None else intake


def why_held(flow: Flow, reported: Reported, network: Network) -> str:
    """Return in words what holds a flow to less than it could be sent; empty if nothing does."""
    own = intake_of(flow, reported)
    there = reported.hosts.get(network.machine(flow.target))  # of a site that is not ours nobody tells
    told = there.stores.values() if there is not None else ()
    stores = (s.intake for s in told if is_kept_in(flow, s.told, network))
    intake = own or next((one for one in stores if one.drain_bps is not None), None)
    return said_of(intake) if intake is not None and can_be_held(flow) else ""


def slow_now(told_by: HostState) -> Iterator[Intake]:
    """Yield, of what a host tells, the receivers that keep somebody waiting now.

    Of flows, those that are held; of stores those that something waits for, unless their operator has said the rate:
    who knows it need not be told. Of a host whose stream has ended nobody knows it.
    """
    if not told_by.connected:
        return
    yield from (one for one in told_by.intakes.values() if one.drain_bps is not None)
    for store in told_by.stores.values():
        if store.intake.drain_bps is not None and store.told.is_waiting and not store.intake.is_fixed:
            yield store.intake


def why_slow(intake: Intake, told: StoreTelemetry | None) -> Brake | None:
    """Return what makes a receiver slow; None if it is not, or if it is known by its operator's word alone."""
    is_seen = told is None or told.is_waiting or not intake.is_fixed
    return intake.brake if intake.drain_bps is not None and is_seen else None


def said_of(intake: Intake) -> str:
    """Return in words what a receiver takes that is held."""
    return f"{intake.host} takes no more than {shown_rate(intake.drain_bps or 0)} ({intake.brake})"
