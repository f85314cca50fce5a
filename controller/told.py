"""What is said of promises that have ended."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from controller.events import Events, Value
from controller.plan.deliveries import total_bytes
from controller.plan.ended import EndedAnnouncement
from controller.plan.reservations import Reservation


def told_of_end(ended: EndedAnnouncement) -> dict[str, Value]:
    """Return what is said of an announcement that has ended."""
    known = ended.announcement
    return {
        "announcement": known.announcement_id,
        "state": ended.state.value,
        "bytes": known.size_bytes,
        "delivered_bytes": total_bytes(known.delivered),
    }


def tells_of_gone(events: Events, gone: Iterable[Reservation | EndedAnnouncement]) -> Iterator[Callable[[], None]]:
    """Yield what publishes that promises have ended because the network cannot carry them any more."""
    for one in gone:
        if isinstance(one, Reservation):
            name, why = one.reservation_id, one.reason
            yield partial(events.publish, "reservation.failed", level="error", reservation=name, why=why)
        else:
            yield partial(events.publish, "announcement.lapsed", level="info", **told_of_end(one))
