"""What announcements can draw on: the rate of a reservation, while one of its paths carries something. Pure."""

from collections.abc import Iterator
from contextlib import contextmanager

from controller.plan.calendar import Calendar
from controller.plan.failover import crossed
from controller.plan.keys import Pool
from controller.plan.reservations import Reservation
from controller.plan.schedules import Schedules
from topology.network import Network


def fit(calendar: Calendar, schedules: Schedules, network: Network, known: Reservation) -> None:
    """Let a reservation's pool have its rate while one of its paths is open, and nothing while each is closed.

    What is drawn on it stays drawn.
    """
    pool = Pool(known.reservation_id)
    calendar.close(pool, known.start_us, known.end_us)
    for begin_us, until_us, closed in schedules.closings(known.start_us, known.end_us):
        if not all(crossed(network, path, closed) for path in known.paths):
            calendar.change_capacity(pool, begin_us, until_us, known.rate_bps)


@contextmanager
def opened(calendar: Calendar, schedules: Schedules, network: Network, known: Reservation) -> Iterator[None]:
    """Have a reservation's pool as it was booked, whatever has been closed since."""
    pool = Pool(known.reservation_id)
    calendar.close(pool, known.start_us, known.end_us)
    calendar.change_capacity(pool, known.start_us, known.end_us, known.rate_bps)
    try:
        yield
    finally:
        fit(calendar, schedules, network, known)
