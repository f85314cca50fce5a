"""The database on SQLite, and what only SQLite can get wrong."""

import resource
import sqlite3
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.database import Changes, Database, DatabaseFailed, UrlNotUsable
from controller.database.backends import backend
from controller.database.leader_row import LeaderRow
from controller.database.rows import merged
from controller.tests.database_child import reservation
from controller.tests.database_contract import Broken, DatabaseContract
from controller.tests.past_contract import done, of
from mininet_tests.testing.eventually import eventually


@pytest.fixture
def path(tmp_path) -> Path:
    """Where the database is."""
    return tmp_path / "headway.db"


class TestSqlite(DatabaseContract):
    """The contract, on a file."""

    @pytest.fixture
    def url(self, path) -> str:
        """The file's URL."""
        return f"sqlite:///{path}"

    @pytest.fixture
    def broken(self, database, path) -> Broken:
        """No file may grow, so the kernel refuses what SQLite appends, as on a full disk."""

        @contextmanager
        def full() -> Iterator[None]:
            database.load()  # so that nothing is being written
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            size = path.with_name("headway.db-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)

        return full

    def test_a_commit_is_on_the_disk_when_it_returns(self, url):
        ours = backend(url)
        connection = ours.connect()
        pragmas = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
        assert pragmas == ["wal", 2]  # 2 is FULL, sqlite.org/pragma.html#pragma_synchronous
        ours.drop(connection)
        ours.release()

    def test_saves_that_wait_together_share_a_transaction(self, database, path, monkeypatch):
        monkeypatch.setattr("controller.database.sqlite.BUSY_MS", 30_000)
        database._refuse("connect again, to wait for so long")
        database.load()
        done(database, Changes())
        before = _commits(path)
        other = sqlite3.connect(path)
        other.execute("BEGIN IMMEDIATE")  # a backup, for example
        futures = [database.save(of(reservation(n))) for n in range(200)]
        assert not futures[0].done()
        other.rollback()
        futures[-1].result(30)
        other.close()
        assert 1 <= _commits(path) - before <= 2

    def test_what_came_while_a_write_failed_fails_with_it(self, database, path):
        other = sqlite3.connect(path, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        first = database.save(of(reservation(0)))
        first.add_done_callback(lambda _: other.rollback())  # what follows could be written
        behind = [database.save(of(reservation(1)))]
        while not wait([first], timeout=0.02).done:
            behind.append(database.save(of(reservation(len(behind) + 1))))
        assert "locked" in str(first.exception())
        assert {type(future.exception(30)) for future in behind} == {DatabaseFailed}
        assert database.load().reservations == ()
        other.close()

    def test_a_folder_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(DatabaseFailed, match=r"there is no folder .*nowhere: make it first"):
            Database(f"sqlite:///{tmp_path}/nowhere/headway.db").open()

    def test_a_file_that_is_no_database_is_left_alone(self, url, path):
        path.write_bytes(b"x" * 8192)
        with pytest.raises(DatabaseFailed, match="not a database"):
            Database(url).open()
        assert path.read_bytes() == b"x" * 8192

    def test_a_database_that_could_not_be_opened_does_not_keep_the_lock(self, url, path):
        path.write_bytes(b"x" * 8192)
        with pytest.raises(DatabaseFailed):
            Database(url).open()
        path.unlink()
        database = Database(url)
        database.open()
        database.close()

    def test_two_names_of_one_file_are_one_database(self, database, tmp_path, path):
        (tmp_path / "link.db").symlink_to(path)
        with pytest.raises(Exception, match="in use"):
            Database(f"sqlite:///{tmp_path}/link.db").open()

    def test_a_row_that_is_not_ours_is_reported_and_not_raised_as_it_comes(self, database, path):
        done(database, of(reservation(1)))
        with sqlite3.connect(path) as other:
            other.execute("UPDATE reservations SET state = 'wished for'")
        other.close()
        with pytest.raises(DatabaseFailed, match="wished for"):
            database.load()


def _commits(path: Path) -> int:
    """How many transactions are in the write-ahead log: sqlite.org/fileformat2.html#walformat."""
    log = path.with_name(path.name + "-wal").read_bytes()
    page_bytes = struct.unpack_from(">I", log, 8)[0]
    frames = [struct.unpack_from(">II8s", log, at) for at in range(32, len(log), 24 + page_bytes)]
    return sum(database_pages > 0 for _, database_pages, salt in frames if salt == log[16:24])


def test_memory_is_a_database_too_and_survives_a_failure():
    database = Database("sqlite://")
    database.open()
    done(database, of(reservation(1)))
    with pytest.raises(DatabaseFailed):
        done(database, of(reservation(2), reservation(2), _other_with_the_key_of(2)))
    assert database.load().reservations == (reservation(1),)
    done(database, of(reservation(2)))
    assert database.load().reservations == (reservation(1), reservation(2))
    database.close()


def _other_with_the_key_of(number):
    values = {name: getattr(reservation(number), name) for name in reservation(number).__slots__}
    return type(reservation(number))(**{**values, "reservation_id": "another"})


@pytest.mark.parametrize(
    "url",
    [
        "headway.db",
        "",
        "mysql://root:secret@localhost/headway",
        "postgresql+psycopg2://root:secret@localhost/headway",
        "sqlite:///file:headway.db?uri=true",
        "sqlite://host/headway.db",
        "sqlite:///headway.db?cache=shared",
        "postgresql://root:secret@localhost:port/headway",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_telling_its_password(url):
    with pytest.raises(UrlNotUsable, match="need sqlite:") as error:
        Database(url)
    assert "secret" not in str(error.value)


UNREACHED = "postgresql://root:secret@127.0.0.1:1/headway?password=secret&host=127.0.0.1&sslkey=secret"


def test_no_password_is_told_when_the_server_of_a_pairs_row_does_not_answer():
    row = LeaderRow(UNREACHED, "a", "http://a")
    with pytest.raises(DatabaseFailed, match=r"postgresql://root@127\.0\.0\.1:1/headway.*refused") as error:
        row.look()
    assert "secret" not in str(error.value)


def test_no_password_is_told_when_the_server_does_not_answer():
    database = Database(UNREACHED)
    with pytest.raises(DatabaseFailed, match=r"postgresql://root@127\.0\.0\.1:1/headway.*refused") as error:
        database.open()
    assert "secret" not in str(error.value)
    assert "secret" not in database.url


def test_changes_made_one_after_the_other_are_one():
    first, second = reservation(1), reservation(2)
    batch = merged(
        [of(first, second), Changes(announcements=(("a", "1"),)), Changes(announcements=(("a", None),)), of(first)]
    )
    assert list(batch.reservations.values()) == [first, second]
    assert batch.announcements == {"a": None}
    assert not merged([Changes(), Changes()])


def switches(thread) -> int:
    """How often a thread has gone to sleep."""
    lines = Path(f"/proc/self/task/{thread.native_id}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("voluntary_ctxt_switches")).split()[1])


def test_a_database_in_which_nothing_waits_wakes_for_nothing(path):
    others = set(threading.enumerate())
    database = Database(f"sqlite:///{path}", save_within_s=0.2)
    database.open()
    try:
        began_s = time.monotonic()
        database.save(Changes()).exception(5)  # written in time or not: nothing waits after it
        (watch,) = (one for one in set(threading.enumerate()) - others if one.name == "database watch")
        eventually(lambda: time.monotonic() > began_s + 1, within_s=60, what="it has seen that nothing waits")
        before, began_s = switches(watch), time.monotonic()
        eventually(lambda: time.monotonic() > began_s + 2, within_s=60, what="time passes")
        assert switches(watch) - before <= 3  # looking each tenth of a second it were twenty
    finally:
        database.close()
