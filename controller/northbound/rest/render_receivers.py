"""Receivers as JSON has them. Pure."""

from controller.northbound.rest.receiver_shapes import ChangedFlowOut, ReceiverOut, ReceiversOut
from controller.state.receiver_view import ChangedFlow, ReceiversView, ReceiverView
from controller.state.receivers import why_slow
from topology.units import shown_time


def receivers(value: ReceiversView) -> ReceiversOut:
    """Return what receivers take, and who has what the flows that they hold do not use."""
    return {
        "receivers": [_receiver(one) for one in value.receivers],
        "gained": [_changed(one) for one in value.gained],
    }


def _receiver(one: ReceiverView) -> ReceiverOut:
    return {
        "host": one.intake.host,
        "store": one.store or None,
        "flow": one.flow or None,
        "drains_bps": one.intake.drain_bps,
        "room_bytes": None if one.told is None else one.told.room_bytes,
        "unread_bytes": None if one.told is None else one.told.unread_bytes,
        "waiting": None if one.told is None else one.told.is_waiting,
        "why": why_slow(one.intake, one.told),
        "since": shown_time(one.since_us),
        "holds": [_changed(flow) for flow in one.holds],
    }


def _changed(one: ChangedFlow) -> ChangedFlowOut:
    return {"flow": one.name, "planned_bps": one.planned_bps, "without_bps": one.without_bps}
