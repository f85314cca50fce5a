"""What a host's page and an announcement's say of where data is put. Pure."""

from controller.plan.announcements import Announcement
from controller.state.receivers import why_slow
from controller.state.reported import HostState
from topology.units import shown_rate, shown_size, shown_time

HEADS = ("store", "drains", "room", "unread", "waits", "why it is slow")


def store_rows(host: HostState) -> tuple[tuple[str, ...], ...]:
    """Return, for each store of a host, the cells under :data:`HEADS`, as ``headway receivers`` has them."""
    rows = []
    for name, store in sorted(host.stores.items()):
        drain_bps = store.intake.drain_bps
        drains = "what it is sent" if drain_bps is None else shown_rate(drain_bps)
        sizes = shown_size(store.told.room_bytes), shown_size(store.told.unread_bytes)
        waits = "yes" if store.told.is_waiting else "no"
        rows.append((name, drains, *sizes, waits, why_slow(store.intake, store.told) or "-"))
    return tuple(rows)


def stored_by(made: Announcement) -> str:
    """Return in words where an announcement is put, and by when all of it is there."""
    if made.store is None or made.stored_us is None:
        return "not promised: nobody knows what its receiver takes"
    return f"{shown_time(made.stored_us)}, on the store {made.store.name} of {made.store.host}"
