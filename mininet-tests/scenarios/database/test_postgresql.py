"""The database on a real PostgreSQL, and what only a server can do to it."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from controller.database import Database, DatabaseError, DatabaseFailed, DatabaseTaken
from controller.database.backends import backend
from controller.database.backup import backed_up
from controller.database.postgresql import LOCK
from controller.tests.backup_contract import BackupContract
from controller.tests.database_child import reservation
from controller.tests.database_contract import Broken, DatabaseContract
from controller.tests.past_contract import ACK_S, done, of
from mininet_tests.site.needs import NEEDS_POSTGRESQL
from mininet_tests.site.postgresql import PrivatePostgres

pytestmark = NEEDS_POSTGRESQL

THREADS = 16
DISK_BYTES = 2 << 30  # in memory: how long others keep this machine's disk busy is not the question


@pytest.fixture(scope="module")
def postgres() -> Iterator[PrivatePostgres]:
    """A server."""
    with PrivatePostgres(disk_bytes=DISK_BYTES) as server:
        yield server


@pytest.fixture
def address(postgres) -> str:
    """The URL of an empty database."""
    return postgres.new_database()


@contextmanager
def cut_off(postgres: PrivatePostgres, url: str) -> Iterator[None]:
    """Let nobody into a database, and throw out who is in it."""
    name = sa.make_url(url).database
    postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    thrown_out(postgres, url)
    try:
        yield
    finally:
        postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def thrown_out(postgres: PrivatePostgres, url: str) -> int:
    """Cut the connections to a database, once; return how many there were."""
    name = sa.make_url(url).database
    cut = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s"
    return len(postgres.execute(cut, name))


class TestPostgresql(DatabaseContract):
    """The contract, on a server."""

    @pytest.fixture
    def url(self, address) -> str:
        """The URL as people write it; what SQLAlchemy calls the driver is understood as well."""
        return address.replace("postgresql://", "postgresql+psycopg://")

    @pytest.fixture
    def broken(self, database, postgres, address) -> Broken:
        """Nobody can reach the database."""

        def gone():
            database.load()  # so that nothing is being written
            return cut_off(postgres, address)

        return gone


def opened(url: str) -> Database:
    """A database on it."""
    database = Database(url)
    database.open()
    return database


@pytest.fixture
def mortal() -> Iterator[PrivatePostgres]:
    """A server to be killed; a fresh one, for at its next start it looks after each of its files."""
    with PrivatePostgres(disk_bytes=DISK_BYTES) as server:
        yield server


def test_nothing_acknowledged_is_lost_when_the_server_is_killed_amid_saves(mortal):
    database, safe, enough = opened(mortal.url), [], threading.Event()
    errors = []

    def work(number):
        while True:
            error = database.save(of(reservation(number))).exception(ACK_S)
            if error is not None:
                errors.append(error)
                return
            safe.append(number)
            number += THREADS
            if len(safe) > 500:
                enough.set()

    threads = [threading.Thread(target=work, args=(first,)) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    assert enough.wait(ACK_S)
    mortal.kill()
    for thread in threads:
        thread.join(ACK_S)
    assert [type(error) for error in errors] == [DatabaseFailed] * THREADS
    with pytest.raises(DatabaseFailed):
        database.load()
    mortal.start()
    with pytest.raises(DatabaseFailed):
        done(database, of(reservation(10**6)))
    kept = {r.sequence for r in database.load().reservations}
    assert set(safe) - kept == set()
    assert len(kept) <= len(safe) + THREADS  # no more than one each whose acknowledgement was lost
    done(database, of(reservation(10**6)))
    assert database.load().reservations[-1] == reservation(10**6)
    database.close()


def test_a_connection_that_was_cut_while_idle_fails_one_save_and_comes_back_with_load(postgres, address):
    database = opened(address)
    assert thrown_out(postgres, address) == 1
    with pytest.raises(DatabaseFailed, match="terminating connection"):
        done(database, of(reservation(1)))
    assert database.load().reservations == ()
    done(database, of(reservation(1)))
    database.close()


def test_who_has_lost_the_connection_cannot_write_beside_the_one_who_took_over(postgres, address):
    first = opened(address)
    thrown_out(postgres, address)
    second = opened(address)
    with pytest.raises(DatabaseFailed):
        done(first, of(reservation(1)))
    with pytest.raises(DatabaseFailed, match="meanwhile it is in use by headway, process"):
        first.load()
    second.close()
    with pytest.raises(DatabaseTaken, match=f"term {second.term}, ours was {first.term}"):
        first.load()
    first.close()


def test_whoever_comes_while_the_last_one_is_still_ending_waits_a_moment(address):
    engine = sa.create_engine(address, poolclass=sa.NullPool)
    last = engine.connect()
    last.execute(sa.select(sa.func.pg_advisory_lock(*LOCK)))
    timer = threading.Timer(0.3, last.close)
    timer.start()
    opened(address).close()
    timer.join()
    engine.dispose()


def test_a_table_that_somebody_has_locked_makes_saves_fail_and_not_wait_for_ever(address):
    database = opened(address)
    engine = sa.create_engine(address, poolclass=sa.NullPool)
    with engine.begin() as other:
        other.execute(sa.text("LOCK TABLE reservations"))
        with pytest.raises(DatabaseFailed, match="lock timeout"):
            done(database, of(reservation(1)))
    engine.dispose()
    assert database.load().reservations == ()
    database.close()


def test_controllers_of_two_databases_do_not_know_of_each_other(postgres, address):
    first, second = opened(address), opened(postgres.new_database())
    done(first, of(reservation(1)))
    assert second.load().reservations == ()
    first.close()
    second.close()


def test_a_commit_is_on_the_disk_when_it_returns_even_if_the_server_was_told_otherwise(postgres, address):
    postgres.execute(f"ALTER DATABASE {sa.make_url(address).database} SET synchronous_commit = off")
    ours = backend(address)
    connection = ours.connect()
    assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    ours.drop(connection)
    ours.release()


def test_a_database_that_is_not_there_is_named(address):
    with pytest.raises(DatabaseError, match='database "nowhere" does not exist'):
        opened(str(sa.make_url(address).set(database="nowhere")))


class TestPostgresqlBackup(BackupContract):
    """The contract, on a server."""

    @pytest.fixture
    def url(self, address) -> str:
        """The URL of an empty database."""
        return address

    def test_a_backup_takes_no_more_memory_however_much_there_is(self, url):
        opened(url).close()
        many = "SELECT n, 0, '', '', '', '', '', NULL, repeat('x', 1000), '', '' FROM generate_series(1, 100000) AS n"
        engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.execute(sa.text(f"INSERT INTO changes {many}"))
        engine.dispose()
        lines = backed_up(url, {})
        next(lines)
        before_bytes = resident_bytes()
        next(line for line in lines if '"table":"changes"' in line)
        assert resident_bytes() - before_bytes < 50_000_000
        assert sum(1 for _ in lines) >= 99_999


def resident_bytes():
    """What this process has of the machine's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
