"""What a host is granted, as the message it is sent. Pure."""

from dataclasses import replace

from controller.plan.keys import FlowId
from controller.plan.paths import candidates
from controller.plan.plan import Entry, Flow, Plan, Selector, Standby
from controller.plan.reservations import NO_CONSTRAINTS
from controller.site import Site
from topology.addresses import Prefix
from topology.protocol import Allocation, Allocations, CalledLane, Tail
from topology.wire import Layer, converted_bps


def grant(
    site: Site, desired: Plan, host: str, epoch: int, entries: tuple[Entry, ...], *, codes_tails: bool = False
) -> Allocations:
    """Return the message that grants a host some entries.

    Args:
        site: where.
        desired: the plan that is desired; a switch may have led a flow to its path there already.
        host: who.
        epoch: the grant's number.
        entries: what it may do.
        codes_tails: whether its agent knows of coded tails; one that does not would decline all of it.
    """
    now = desired.of_host(host)
    led = {} if now is entries else {e.flow.name: e.flow.path for e in now}
    return Allocations(
        epoch=epoch,
        lease_ms=site.lease_ms,
        entries=tuple(_allocation(site, e if codes_tails else _plain(e), led.get(e.flow.name, ())) for e in entries),
        receive_window_bytes=site.receive_window_bytes,
        called=tuple(
            CalledLane(one.lanes_of, site.network.host(one.host).prefixes, one.size_bytes)
            for one in (desired.called.get(host, ()) if epoch else ())
        ),
    )


def taken_over(site: Site, desired: Plan, host: str, held: Allocation) -> Entry | None:
    """Return what a host says that an earlier controller has granted it; None if it leads to nobody in the network.

    An entry of the desired plan that says the same to the host is that one. Another one's way is the desired plan's for
    the flow, or the first that crosses no circuit which the host was not told of.
    """
    planned = next((e for e in desired.of_host(host) if e.flow.name == held.name), None)
    if planned is not None and _allocation(site, planned, planned.flow.path) == held:
        return planned
    hosts = site.network.hosts
    own = (h for h in site.network.interfaces_of(host) if not {*h.prefixes}.isdisjoint(held.sources))
    sender = next(own, site.network.host(host))
    target = next((h.name for h in hosts if any(held.dest.overlaps(prefix) for prefix in h.prefixes)), None)
    if target is None:
        return None
    if planned is not None and planned.flow.target == target:
        path = planned.flow.path
    else:
        ways = candidates(site.network, sender.name, target, NO_CONSTRAINTS)
        told = (way for way in ways if set(site.network.circuits_along(way)) <= {*held.circuits})
        path = next(told, ways[0] if ways else ())
    if not path:
        return None
    flow = Flow(
        FlowId(held.name),
        held.flow_class,
        sender.name,
        target,
        held.dest,
        path,
        size_bytes=held.size_bytes,
        selector=Selector(held.dest_port, held.local_port, held.own_dscp),
        mark=held.dscp,
        also=held.also,
        interface_of=sender.interface_of,
        lanes_of=held.lanes,
        tail=held.tail,
    )
    framing = site.network.framing_of(path)

    def frame_bps(payload_bps: int) -> int:
        return converted_bps(payload_bps, Layer.PAYLOAD, Layer.FRAME, framing)

    standby = None if held.standby_bps is None else Standby(frame_bps(held.standby_bps), held.standby_bps)
    if planned is not None and planned.payload_bps == held.rate_bps:
        return Entry(flow, planned.frame_bps, held.rate_bps, held.window_segments, standby)
    return Entry(flow, frame_bps(held.rate_bps), held.rate_bps, held.window_segments, standby)


def _plain(entry: Entry) -> Entry:
    """Return an entry as an agent that knows nothing of coded tails is told of it."""
    if entry.flow.tail is Tail.PLAIN:
        return entry
    return replace(entry, flow=replace(entry.flow, tail=Tail.PLAIN))


def _sources(site: Site, flow: Flow) -> tuple[Prefix, ...]:
    """Return the addresses of the interface that a flow is sent by, if its host has several."""
    sender = site.network.host(flow.host)
    return sender.prefixes if sender.interface else ()


def _allocation(site: Site, entry: Entry, led: tuple[str, ...]) -> Allocation:
    flow = entry.flow
    names = site.network.circuits_along(flow.path)
    if led and led != flow.path:
        names += site.network.circuits_along(led)
    dscp = site.policy.classes[flow.flow_class].dscp if flow.mark is None and site.hosts_mark else flow.mark
    return Allocation(
        name=entry.flow.name,
        flow_class=entry.flow.flow_class,
        dest=entry.flow.dest,
        also=entry.flow.also,
        sources=_sources(site, flow),
        lanes=flow.lanes_of,
        rate_bps=entry.payload_bps,
        window_segments=entry.window_segments,
        dest_port=flow.selector.dest_port,
        local_port=flow.selector.local_port,
        dscp=dscp,
        own_dscp=flow.selector.own_dscp,
        standby_bps=entry.standby.payload_bps if entry.standby else None,
        size_bytes=entry.flow.size_bytes,
        circuits=tuple(dict.fromkeys(names)),
        tail=flow.tail,
    )
