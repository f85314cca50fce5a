"""What every database keeps to about what has ended; a part of the whole contract."""

from dataclasses import replace

import sqlalchemy as sa

from controller.database import WINDOW_ROWS, Changes, Database, EndedKind, PastPage, PastQuery
from controller.database.rows import Row, reservation_row
from controller.database.schema import VERSION_TABLE
from controller.database.tables import RESERVATIONS
from controller.plan.lifecycle import ENDED, ReservationState
from controller.plan.reservations import Reservation, ReservationFilter
from controller.tests.database_child import reservation
from topology.protocol import FlowClass

ACK_S = 30.0

_VERSIONS = sa.table(VERSION_TABLE, sa.column("version_num"))


def done(database: Database, changes: Changes) -> None:
    """Save and wait."""
    database.save(changes).result(ACK_S)


def of(*some: Reservation) -> Changes:
    """Changes of reservations alone."""
    return Changes(reservations=some)


def downgrade(connection: sa.Connection) -> None:
    """Make an empty database of today one of schema 0003, in which what had ended was among the others."""
    for table in ("ended_reservations", "changes"):
        connection.execute(sa.DDL(f"DROP TABLE {table}"))
    for name in ("number", "key", "owner"):
        connection.execute(sa.DDL(f"DROP INDEX ended_announcements_{name}"))
    newer = (("ended_announcements", "number"), ("ended_announcements", "owner"))
    for table, column in (*newer, ("reservations", "owner"), ("reservations", "creator")):
        connection.execute(sa.text(f"ALTER TABLE {table} DROP COLUMN {column}"))
    connection.execute(sa.update(_VERSIONS).values(version_num="0003"))


def ownerless_row(known: Reservation) -> Row:
    """Return a reservation as its row was when nothing had an owner."""
    return {name: value for name, value in reservation_row(known).items() if name not in {"owner", "creator"}}


class PastContract:
    """For :class:`~controller.tests.database_contract.DatabaseContract`, which has the fixtures."""

    def test_what_has_ended_is_not_loaded_and_is_read_once_it_is_asked_for(self, database, url):
        live, over = reservation(1), replace(reservation(2), state=ReservationState.RELEASED, key="k")
        done(database, of(live, replace(over, state=ReservationState.HELD)))
        done(database, of(over))
        assert database.load().reservations == (live,)
        assert database.load().last_ended == 2
        assert database.past_one("r2") == database.past_with_key("k") == over
        assert database.past_one("r1") is database.past_with_key("key 1") is database.past_with_key("") is None
        assert database.past(PastQuery(limit=5)) == PastPage((over,), None)

    def test_pages_of_what_has_ended_are_in_order_and_by_what_is_asked(self, database):
        states = sorted(ENDED)
        many = [replace(reservation(n), state=states[n % 3], a_end=f"h{n % 2}") for n in range(1, 31)]
        done(database, of(*reversed(many)))
        first = database.past(PastQuery(limit=10))
        assert first == PastPage(tuple(many[:10]), 10)
        assert database.past(PastQuery(after=10, limit=30)) == PastPage(tuple(many[10:]), None)
        two = PastQuery(
            after=4, limit=50, wanted=ReservationFilter(states=tuple(states[:2]), a_end="h1", ends_after_us=90 * 10**6)
        )
        wanted = [r for r in many if r.sequence > 4 and r.state in states[:2] and r.a_end == "h1"]
        assert database.past(two).found == tuple(r for r in wanted if r.end_us > 90 * 10**6)
        early = ReservationFilter(flow_classes=(FlowClass.PREDICTABLE,), starts_before_us=3 * 10**6, z_end="archive")
        assert database.past(PastQuery(limit=50, wanted=early)).found == tuple(many[:2])
        assert database.past(PastQuery(limit=50, wanted=replace(early, flow_classes=(FlowClass.URGENT,)))).found == ()

    def test_a_page_looks_at_no_more_than_a_window_and_says_where_that_ends(self, database):
        states = sorted(ENDED)
        many = [replace(reservation(n), state=states[n % 2], a_end="h") for n in range(1, 2 * WINDOW_ROWS + 11)]
        done(database, of(*many[:-1], replace(many[-1], a_end="other")))
        found = []
        for after, up_to in ((0, WINDOW_ROWS), (WINDOW_ROWS, 2 * WINDOW_ROWS), (2 * WINDOW_ROWS, None)):
            page = database.past(PastQuery(after=after, limit=10, wanted=ReservationFilter(a_end="other")))
            found += page.found
            assert page.up_to == up_to
        assert [r.sequence for r in found] == [2 * WINDOW_ROWS + 10]
        assert (
            database.past(PastQuery(limit=10, wanted=ReservationFilter(states=tuple(states[:2]), a_end="other"))).up_to
            == 2 * WINDOW_ROWS - 1
        )

    def test_what_has_ended_lately_is_the_last_of_it_and_nothing_from_before(self, database):
        many = [replace(reservation(n), state=ReservationState.EXPIRED, changed_us=100 - n) for n in range(1, 8)]
        done(database, of(*many, reservation(9)))
        assert database.lately_ended(94, 10) == tuple(many[:5])
        assert database.lately_ended(94, 2) == tuple(many[:2])
        assert database.lately_ended(99, 10) == ()

    def test_history_has_all_that_has_ended_in_the_order_it_was_saved(self, database, url):
        for n in (3, 1, 2):
            done(database, of(replace(reservation(n), state=ReservationState.EXPIRED)))
        first = database.history(0, 2)
        assert [one.ended.sequence for one in first] == [3, 1]
        assert [one.ended.sequence for one in database.history(first[-1].number, 9)] == [2]
        database.close()
        again = Database(url)
        again.open()
        assert again.forget(EndedKind.RESERVATION, 10, 2) == 2  # the oldest: 1 and 2
        assert again.forget(EndedKind.RESERVATION, 10, 2) == 1
        assert (again.history(0, 9), again.load().last_ended) == ((), 3)
        again.close()
        last = Database(url)
        last.open()
        done(last, of(replace(reservation(9), state=ReservationState.FAILED)))
        assert [one.number for one in last.history(0, 9)] == [4]  # no number is used twice
        last.close()

    def test_only_what_ended_before_a_time_is_forgotten_the_oldest_first(self, database):
        done(database, of(*(replace(reservation(n), state=ReservationState.EXPIRED) for n in range(1, 11))))
        done(database, of(reservation(11)))
        assert database.forget(EndedKind.RESERVATION, 9, 3) == 3
        assert [r.sequence for r in database.past(PastQuery(limit=20)).found] == [4, 5, 6, 7, 8, 9, 10]
        assert database.forget(EndedKind.RESERVATION, 9, 100) == 5
        assert database.forget(EndedKind.RESERVATION, 9, 100) == database.forget(EndedKind.ANNOUNCEMENT, 9, 100) == 0
        assert [r.sequence for r in database.load().reservations] == [11]

    def test_a_database_of_before_is_sorted_into_what_has_ended_and_what_has_not(self, engine, url):
        over = [replace(reservation(n), state=state, changed_us=100 - n) for n, state in enumerate(sorted(ENDED), 1)]
        with engine.begin() as connection:
            downgrade(connection)
            rows = [ownerless_row(r) for r in (*over, reservation(7))]
            connection.execute(sa.insert(RESERVATIONS), rows)
            sql = "INSERT INTO ended_announcements VALUES (8, 'a', 'lapsed', 1, '', '{}')"
            connection.execute(sa.text(sql))
        again = Database(url)
        again.open()
        assert again.load().reservations == (reservation(7),)
        assert again.load().last_ended == 8
        assert again.past(PastQuery(limit=9)).found == tuple(over)
        assert [one.ended for one in again.history(0, 3)] == over[::-1]
        again.close()
