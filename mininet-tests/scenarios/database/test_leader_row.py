"""The row of a pair's leader on a real PostgreSQL, and writes that are fenced by its term."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from controller.database import Database, DatabaseFailed, DatabaseTaken
from controller.database.leader_row import LeaderRow, RowNews
from controller.tests.database_child import reservation
from controller.tests.past_contract import ACK_S, done, of
from controller.tests.statements import statements
from mininet_tests.site.needs import NEEDS_POSTGRESQL
from mininet_tests.testing.eventually import eventually

pytestmark = NEEDS_POSTGRESQL
LONG_US = 600_000_000


@pytest.fixture
def rows(url) -> Iterator[tuple[LeaderRow, LeaderRow]]:
    """The row, as two controllers see it."""
    two = LeaderRow(url, "a", "http://a"), LeaderRow(url, "b", "http://b")
    yield two
    for row in two:
        row.close()


def rows_of(url: str) -> list[tuple[object, ...]]:
    """The row, whole."""
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT headway_leader::text FROM headway_leader").fetchall()


def ended(url: str) -> None:
    """Let the time of the row be over."""
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE headway_leader SET until = clock_timestamp()")


def test_the_row_is_taken_once_and_again_when_it_is_over_each_time_under_a_later_term(rows, url):
    a, b = rows
    term = a.take(LONG_US, clock_ms=1).term
    assert b.take(LONG_US, clock_ms=1) is None
    seen = b.look()
    assert (seen.term, seen.holder, seen.address, seen.is_over) == (term, "a", "http://a", False)
    ended(url)
    later = b.take(LONG_US, clock_ms=1).term
    assert later > term
    assert not a.renew(term, LONG_US)
    assert b.renew(later, LONG_US)
    assert a.look().holder == "b"


@pytest.mark.parametrize("first", [0, 1], ids=["a's", "b's"])
def test_a_term_that_a_crash_of_the_server_has_let_it_give_out_twice_is_led_under_by_one_alone(rows, url, first):
    a, b = rows
    term = a.take(LONG_US, clock_ms=1).term
    with psycopg.connect(url) as connection:  # it was not on the disk yet when the server's machine lost its power
        connection.execute("UPDATE headway_leader SET term = 0, holder = '', address = '', until = '-infinity'")
    assert b.take(LONG_US, clock_ms=1).term == term
    assert (a.renew(term, LONG_US), b.renew(term, LONG_US)) == (False, True)
    a.leave(term)
    assert not b.look().is_over
    databases = [Database(url), Database(url)]
    databases[first].open(term)
    with pytest.raises(DatabaseTaken):
        databases[1 - first].open(term)
    for database in databases:
        database.close()


def test_of_many_who_want_it_at_once_one_takes_it(url):
    rows = [LeaderRow(url, str(n), "") for n in range(8)]
    together, took = threading.Barrier(len(rows)), []

    def take(row: LeaderRow) -> None:
        together.wait()
        took.append(row.take(LONG_US, clock_ms=1))

    threads = [threading.Thread(target=take, args=(row,)) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ACK_S)
    assert len([term for term in took if term is not None]) == 1
    for row in rows:
        row.close()


def test_a_term_is_above_those_of_controllers_that_led_alone(rows, url):
    database = Database(url)
    database.open()
    database.close()
    term = rows[0].take(LONG_US, clock_ms=1).term
    assert term > database.term


def test_who_leaves_the_row_is_followed_at_once(rows):
    a, b = rows
    term = a.take(LONG_US, clock_ms=1).term
    a.leave(term)
    assert b.take(LONG_US, clock_ms=1)


def test_who_waits_for_the_row_hears_what_becomes_of_it(rows):
    a, b = rows
    term = a.take(LONG_US, clock_ms=1).term
    b.look()  # it listens from now on
    with ThreadPoolExecutor(1) as thread:
        heard = thread.submit(b.wait, 10 * ACK_S)
        assert a.renew(term, LONG_US)
        assert not heard.done()
        a.leave(term)
        assert heard.result(ACK_S) is RowNews.LEFT
        assert b.look().is_over
        heard = thread.submit(b.wait, 10 * ACK_S)
        assert a.take(LONG_US, clock_ms=1)
        assert heard.result(ACK_S) is RowNews.TAKEN
    a.leave(b.look().term)
    assert b.look().is_over
    assert b.wait(ACK_S) is RowNews.LEFT  # said before it was looked


def test_what_a_hand_over_asks_is_asked_once_before_it_by_nobody_and_changes_nothing(rows, url):
    a, b = rows
    Database(url).open()
    a.leave(a.take(LONG_US, clock_ms=1).term)
    before = rows_of(url)
    with statements() as in_advance:
        b.look()
    b.look()
    assert rows_of(url) == before
    with statements() as asked:
        b.leave(b.take(LONG_US, clock_ms=1).term)
    assert {*asked} <= {*in_advance}


def test_who_is_no_leader_any_more_wakes_nobody(rows, url):
    a, b = rows
    term = a.take(LONG_US, clock_ms=1).term
    ended(url)
    assert b.take(LONG_US, clock_ms=1)
    third = LeaderRow(url, "c", "")
    third.look()
    a.leave(term)
    begun_s = time.monotonic()
    assert third.wait(0.5) is RowNews.NOTHING
    assert time.monotonic() - begun_s > 0.4
    assert not third.look().is_over
    third.close()


def test_a_broken_connection_ends_the_wait_with_its_reason(rows, url):
    _, b = rows
    b.look()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ 'pair, b'")
    with pytest.raises(DatabaseFailed):
        b.wait(10 * ACK_S)
    assert not b.look().term


def test_only_who_would_take_the_row_and_looks_at_it_is_said_to_stand_by(rows):
    a, b = rows
    a.take(LONG_US, clock_ms=1)
    b.look()
    assert a.others() == ()  # it has not begun to stand by
    b.stands_by = True

    def is_seen():
        b.look()
        return a.others() == ("b",)

    eventually(is_seen, within_s=ACK_S, what="it stands by")
    eventually(lambda: a.others() == (), within_s=ACK_S, what="one that looks no more is not counted on")
    eventually(is_seen, within_s=ACK_S, what="it stands by again")
    b.stands_by = False
    b.look()
    assert a.others() == ()


def test_a_leader_whose_session_was_cut_goes_on_under_its_term(rows, url):
    a, _ = rows
    term = a.take(LONG_US, clock_ms=1).term
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ 'pair, a'")
    with pytest.raises(DatabaseFailed):
        a.renew(term, LONG_US)
    assert a.renew(term, LONG_US)


def led(row: LeaderRow, url: str) -> Database:
    """A database of who takes the row."""
    term = row.take(LONG_US, clock_ms=1).term
    database = Database(url, save_within_s=ACK_S)
    database.open(term)
    return database


def test_a_write_of_an_older_term_changes_nothing_and_decides_nothing_more(rows, url):
    a, b = rows
    first = led(a, url)
    done(first, of(reservation(1)))
    ended(url)
    second = led(b, url)  # who throws the first one's session out
    done(second, of(reservation(2)))
    number = second.saves
    with pytest.raises(DatabaseFailed):
        done(first, of(reservation(3)))
    with pytest.raises(DatabaseTaken):
        first.load()
    with pytest.raises(DatabaseFailed, match="another controller has had it"):
        done(first, of(reservation(4)))
    done(second, of(reservation(5)))  # the first has not thrown the second out by trying again
    assert {one.reservation_id for one in second.load().reservations} == {"r1", "r2", "r5"}
    assert second.saves == number + 1 > first.saves
    first.close()
    second.close()


def test_a_write_under_way_in_a_session_that_was_not_cut_is_refused_by_the_term_alone(rows, url):
    a, _ = rows
    database = led(a, url)
    done(database, of(reservation(1)))
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE meta SET value = (value::bigint + 1)::text WHERE key = 'term'")
    with pytest.raises(DatabaseFailed, match="another controller has had it"):
        done(database, of(reservation(2)))
    reading = Database(url)
    reading.open_to_read()
    assert [one.reservation_id for one in reading.load().reservations] == ["r1"]
    reading.close()
    database.close()
