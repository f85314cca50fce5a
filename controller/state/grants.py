"""What a host is granted, as the message it is sent. Pure."""

from controller.plan.paths import circuits
from controller.plan.plan import Entry, Plan
from controller.site import Site
from topology.protocol import Allocation, Allocations


def grant(site: Site, desired: Plan, host: str, epoch: int, entries: tuple[Entry, ...]) -> Allocations:
    """Return the message that grants a host some entries.

    Args:
        site: where.
        desired: the plan that is desired; a switch may have led a flow to its path there already.
        host: who.
        epoch: the grant's number.
        entries: what it may do.
    """
    led = {e.flow.name: e.flow.path for e in desired.of_host(host)}
    return Allocations(
        epoch=epoch,
        lease_ms=site.lease_ms,
        entries=tuple(_allocation(site, e, led.get(e.flow.name, ())) for e in entries),
        receive_window_bytes=site.receive_window_bytes,
    )


def _allocation(site: Site, entry: Entry, led: tuple[str, ...]) -> Allocation:
    names = *circuits(site.network, entry.flow.path), *circuits(site.network, led)
    flow = entry.flow
    dscp = site.policy.classes[flow.flow_class].dscp if flow.mark is None and site.hosts_mark else flow.mark
    return Allocation(
        name=entry.flow.name,
        flow_class=entry.flow.flow_class,
        dest=entry.flow.dest,
        rate_bps=entry.payload_bps,
        window_segments=entry.window_segments,
        dest_port=flow.selector.dest_port,
        local_port=flow.selector.local_port,
        dscp=dscp,
        own_dscp=flow.selector.own_dscp,
        standby_bps=entry.standby.payload_bps if entry.standby else None,
        size_bytes=entry.flow.size_bytes,
        circuits=tuple(dict.fromkeys(names)),
    )
