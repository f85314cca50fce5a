"""What is planned of an announcement at an instant: of thousands a few change, the others are the very same values."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from controller.plan.announcements import Announcement
from controller.plan.paths import Path
from controller.plan.plan import Flow
from controller.plan.policy import Policy
from controller.plan.routes import joins
from topology.network import Network
from topology.wire import PPM

AWAKE_BPS = 500_000  # two full segments in 50 ms: a connection that stood still would be late to go on


@dataclass(frozen=True, slots=True)
class AnnouncedFlows:
    """The flows of an announcement at an instant, and what they were made of: its floors, and the path it draws on."""

    announcement: Announcement
    made_of: tuple[tuple[int, ...], Path]
    flows: tuple[Flow, ...]


def announced_flows(
    announcement: Announcement,
    now_us: int,
    network: Network,
    policy: Policy,
    drawn_on: Path = (),
    before: AnnouncedFlows | None = None,
) -> AnnouncedFlows:
    """Return an announcement's flows.

    Args:
        announcement: it.
        now_us: Unix time.
        network: where.
        policy: what classes have.
        drawn_on: the path that the reservation takes now which it draws on; empty to go by the path it is promised by.
        before: those of an earlier instant on the same network, which are returned where they are the same.
    """
    floors_bps = announcement.floors_bps(now_us)
    made_of = floors_bps, drawn_on
    if before is not None and before.announcement is announcement and before.made_of == made_of:
        return before
    return AnnouncedFlows(announcement, made_of, tuple(_flows_of(announcement, *made_of, network, policy)))


def _flows_of(
    announcement: Announcement, floors_bps: tuple[int, ...], drawn_on: Path, network: Network, policy: Policy
) -> Iterator[Flow]:
    """Yield each sender's flow, or each lane's: what it is promised now, and what it keeps while it sends nothing.

    One that has delivered all that was announced has lost nothing that is to be sent again: it is only kept awake.
    """
    unfinished = announcement.unfinished
    senders = 1 if announcement.lanes else len(announcement.flows)
    for flow, size_bytes, floor_bps in zip(announcement.flows, announcement.sizes_bytes, floors_bps, strict=True):
        led = drawn_on and joins(network, flow.host, drawn_on, flow.target)
        path = (flow.host, *drawn_on, flow.target) if led else flow.path
        standby_bps = network.narrowest_bps(path) * policy.standby_ppm // (PPM * senders)
        yield replace(
            flow,
            path=path,
            floor_bps=floor_bps,
            standby_bps=standby_bps if flow.name in unfinished else min(standby_bps, AWAKE_BPS),
            size_bytes=size_bytes,
            lanes_of=announcement.announcement_id if announcement.lanes else "",
            called_by=network.machine(flow.target) if announcement.lanes and announcement.is_called else "",
        )
