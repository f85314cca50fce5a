"""Who stands by, on a real PostgreSQL: what it reads, and what it has ready for when it leads."""

import threading
from functools import partial

import psycopg
import pytest
from sqlalchemy import text

from controller.database import Database, DatabaseFailed, changed_since
from controller.database.leader_row import LeaderRow
from controller.tests.database_child import reservation
from controller.tests.past_contract import ACK_S, done, of
from mininet_tests.scenarios.database.test_leader_row import LONG_US, led
from mininet_tests.site.needs import NEEDS_POSTGRESQL
from mininet_tests.testing.eventually import eventually

pytestmark = NEEDS_POSTGRESQL
OURS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'headway, process%'"


@pytest.fixture
def row(url):
    """The row of the leader."""
    one = LeaderRow(url, "a", "http://a")
    yield one
    one.close()


@pytest.fixture
def reading(url):
    """Who stands by."""
    database = Database(url)
    database.open_to_read()
    yield database
    database.close()


def sessions(url) -> set[int]:
    """The server's processes for what this one has connected."""
    with psycopg.connect(url) as connection:
        return {pid for (pid,) in connection.execute("SELECT pid " + OURS)}


def cut(url) -> None:
    """End all of them."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) " + OURS)
    eventually(lambda: not sessions(url), within_s=ACK_S, what="no session is left")


def test_it_reads_what_the_leader_writes_and_saves_nothing(row, reading, url):
    assert reading.time() is None
    assert reading.load().reservations == ()  # there is no table yet
    leading = led(row, url)
    done(leading, of(reservation(1)))
    assert [one.reservation_id for one in reading.load().reservations] == ["r1"]
    assert row.look().saves == leading.saves
    point = reading.load().until
    done(leading, of(reservation(2)))
    found = reading.asked(partial(changed_since, since=point))
    assert ([one.reservation_id for one in found.reservations], found.until.saves) == (["r2"], leading.saves)
    with pytest.raises(DatabaseFailed, match="stands by"):
        done(reading, of(reservation(3)))
    cut(url)
    assert [one.reservation_id for one in reading.load().reservations] == ["r1", "r2"]  # by a new connection
    leading.close()


@pytest.mark.parametrize("is_cut", [False, True], ids=["", "after its sessions were cut"])
def test_the_session_that_it_will_write_over_is_there_before_it_leads(row, url, is_cut):
    led(row, url).close()
    row.leave(row.look().term)
    database = Database(url)
    database.open_to_read()
    if is_cut:
        cut(url)
        database.load()
    eventually(lambda: len(sessions(url)) == 2, within_s=ACK_S, what="one session reads, one is ready")
    before = sessions(url)
    database.open(row.take(LONG_US, clock_ms=1).term)
    assert sessions(url) <= before
    done(database, of(reservation(1)))
    database.close()


def test_it_begins_to_lead_while_it_still_reads(row, reading, url):
    led(row, url).close()
    row.leave(row.look().term)
    waits = text("SELECT pg_advisory_xact_lock(1)")  # for a lock that nobody else has to do with
    with psycopg.connect(url, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(1)")
        asked = threading.Thread(target=reading.asked, args=(lambda connection: connection.execute(waits),))
        asked.start()
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        eventually(lambda: holder.execute(waiting).fetchone(), within_s=ACK_S, what="it reads")
        reading.open(row.take(LONG_US, clock_ms=1).term)
        done(reading, of(reservation(1)))
        assert asked.is_alive()
    asked.join(ACK_S)
    eventually(lambda: len(sessions(url)) == 1, within_s=ACK_S, what="the connection that read is let go")


def test_who_has_finished_has_written_all_and_saves_no_more(row, reading, url):
    leading = led(row, url)
    waits = [leading.save(of(reservation(number))) for number in (1, 2)]
    leading.finish()
    assert all(one.result(ACK_S) is None for one in waits)
    with pytest.raises(DatabaseFailed, match="closed"):
        done(leading, of(reservation(3)))
    assert {one.reservation_id for one in reading.load().reservations} == {"r1", "r2"}
    leading.close()
