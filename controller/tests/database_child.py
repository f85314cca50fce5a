"""A process that saves reservations from several threads for ever, and prints those that were acknowledged."""

import itertools
import os
import sys
import threading

import structlog

from controller.database import Changes, Database
from controller.plan.lifecycle import ReservationState
from controller.plan.reservations import NO_CONSTRAINTS, Reservation
from topology.protocol import FlowClass

THREADS = 8


def reservation(number: int) -> Reservation:
    """The reservation of a number."""
    return Reservation(
        reservation_id=f"r{number}",
        sequence=number,
        version=0,
        state=ReservationState.COMMITTED,
        flow_class=FlowClass.PREDICTABLE,
        a_end="base20",
        z_end="archive",
        rate_bps=10**9,
        start_us=number * 10**6,
        end_us=number * 10**6 + 60 * 10**6,
        path=("base20", "s1", "s2", "archive"),
        backup=(),
        constraints=NO_CONSTRAINTS,
        hold_until_us=None,
        created_us=number,
        changed_us=number,
        key=f"key {number}",
    )


def save_for_ever(database: Database, numbers: itertools.count) -> None:
    """Print a name only once it is safe; one write a line, so that lines of threads do not mix."""
    for number in numbers:
        new = reservation(number)
        database.save(Changes(reservations=(new,))).result()
        os.write(1, f"{new.reservation_id}\n".encode())


def main(url: str) -> None:
    """Run until killed; standard output is for what was acknowledged alone."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    database = Database(url, save_within_s=30)  # it is killed, and does not give up
    database.open()
    for first in range(THREADS):
        threading.Thread(target=save_for_ever, args=(database, itertools.count(first, THREADS))).start()


if __name__ == "__main__":
    main(sys.argv[1])
