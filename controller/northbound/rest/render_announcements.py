"""Announcements as JSON: the promise, and what was delivered of it."""

from collections.abc import Mapping

from controller.announced import Known, state_at
from controller.northbound.rest.announcement_shapes import AnnouncementOut, DeliveredOut, LaneOut
from controller.northbound.rest.render_promises import Obstacles, connections, rate_step
from controller.plan.announcements import Announcement
from controller.plan.deliveries import total_bytes
from controller.plan.ended import EndedAnnouncement
from controller.plan.keys import FlowId
from controller.state.progress import EntryProgress
from topology.units import shown_time


def announcement(
    value: Known, progress: Mapping[FlowId, EntryProgress], obstacles: Obstacles, now_us: int
) -> AnnouncementOut:
    """Return an announcement with its promise, and what was delivered.

    Args:
        value: it.
        progress: by flow, what is delivered now, and what is in the way of more.
        obstacles: what keeps it from being carried at this moment.
        now_us: Unix time.
    """
    ended = isinstance(value, EndedAnnouncement)
    known = value.announcement if isinstance(value, EndedAnnouncement) else value
    return {
        "id": known.announcement_id,
        "class": known.flows[0].flow_class,
        "bytes": known.size_bytes,
        "from": [f.host for f in (known.flows[:1] if known.lanes else known.flows)],
        "to": known.flows[0].target,
        "connections": connections(known.flows[0].selector),
        "tail": known.flows[0].tail,
        "announced": shown_time(known.announced_us),
        "promised": shown_time(known.promised_us),
        "promised_in_s": (known.promised_us - known.announced_us) / 1e6,
        "store": None if known.store is None else known.store.name,
        "stored": None if known.stored_us is None else shown_time(known.stored_us),
        "stored_in_s": None if known.stored_us is None else (known.stored_us - known.announced_us) / 1e6,
        "rates": [rate_step(rate) for rate in known.rates],
        "lanes": _lanes(known),
        "drawn_on": known.pool or None,
        "state": state_at(value, now_us),
        "delivered_bytes": total_bytes(known.delivered),
        "exact": not any(one.is_least or (ended and not one.is_last) for one in known.delivered),
        "senders": _senders(known, {} if ended else progress),
        "finished": None if known.finished_us is None else shown_time(known.finished_us),
        "late_s": None if known.finished_us is None else (known.finished_us - known.promised_us) / 1e6,
        "ended": shown_time(value.ended_us) if isinstance(value, EndedAnnouncement) else None,
        "lapses": shown_time(known.lapses_us),
        "owner": known.owner or None,
        "creator": known.creator or None,
        "carried": None if obstacles is None else not obstacles,
        "reasons": list(obstacles or ()),
    }


def _lanes(known: Announcement) -> list[LaneOut]:
    return [
        {
            "host": flow.host,
            "path": list(flow.path),
            "bytes": lane.size_bytes,
            "rates": [rate_step(rate) for rate in lane.rates],
        }
        for flow, lane in zip(known.flows, known.lanes, strict=False)  # none, or one a flow
    ]


def _senders(known: Announcement, progress: Mapping[FlowId, EntryProgress]) -> list[DeliveredOut]:
    counts = {one.flow: one.payload_bytes for one in known.delivered}
    return [_sender(flow.host, counts.get(flow.name, 0), progress.get(flow.name)) for flow in known.flows]


def _sender(host: str, delivered_bytes: int, progress: EntryProgress | None) -> DeliveredOut:
    return {
        "host": host,
        "delivered_bytes": delivered_bytes,
        "hindrance": None if progress is None else progress.hindrance,
        "since": None if progress is None else shown_time(progress.since_us),
    }
