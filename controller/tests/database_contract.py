"""What a database keeps to, of whatever kind it is: a class of tests for each kind to inherit."""

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
import structlog
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.database import (
    Changes,
    Database,
    DatabaseBusy,
    DatabaseFailed,
    DatabaseNewer,
    PurchaseRow,
)
from controller.database.schema import VERSION_TABLE, SchemaChange, known_schemas, migrate
from controller.database.tables import METADATA
from controller.plan.lifecycle import ENDED, ReservationState
from controller.plan.reservations import Constraints, Reservation
from controller.tests.beside_contract import BesideContract
from controller.tests.changes_contract import ChangesContract, tool
from controller.tests.database_child import reservation
from controller.tests.past_contract import ACK_S, PastContract, done, of
from controller.tests.terms_contract import TermsContract
from topology.protocol import FlowClass

ROOT = Path(__file__).parents[2]
_META = sa.text("SELECT key, value FROM meta ORDER BY key")
_VERSIONS = sa.table(VERSION_TABLE, sa.column("version_num"))

Broken = Callable[[], AbstractContextManager[None]]

texts = st.text(st.characters(exclude_categories=()), max_size=20)  # with NUL and halves of surrogate pairs
integers = st.integers(-(2**63), 2**63 - 1)
names = st.lists(texts, max_size=4).map(tuple)
reservations = st.builds(
    Reservation,
    reservation_id=texts,
    sequence=integers,
    version=integers,
    state=st.sampled_from(ReservationState),
    flow_class=st.sampled_from(FlowClass),
    a_end=texts,
    z_end=texts,
    rate_bps=integers,
    start_us=integers,
    end_us=integers,
    path=names,
    backup=names,
    constraints=st.builds(Constraints, names, names, st.none() | st.integers(), st.booleans()),
    hold_until_us=st.none() | integers,
    created_us=integers,
    changed_us=integers,
    description=texts,
    reason=texts,
    key=texts,
    fingerprint=texts,
)
purchases = st.builds(PurchaseRow, texts, texts, integers, integers, integers, texts, texts)
announcements = st.dictionaries(texts, texts, max_size=5)


def started_child(url: str) -> subprocess.Popen[str]:
    """A process that saves for ever and prints what was acknowledged."""
    command = [sys.executable, "-m", "controller.tests.database_child", url]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def acknowledged(child: subprocess.Popen[str], count: int) -> list[str]:
    """The first acknowledgements of a child."""
    assert child.stdout is not None
    return [line.strip() for line in itertools.islice(child.stdout, count)]


def killed(child: subprocess.Popen[str]) -> list[str]:
    """What a child said last, before it was killed."""
    child.kill()
    rest, _ = child.communicate()
    return rest.split()


class DatabaseContract(PastContract, ChangesContract, TermsContract, BesideContract):
    """Inherit, give the fixtures ``url`` and ``broken``, and call it Test...."""

    @pytest.fixture
    def url(self) -> str:
        """The URL of an empty database."""
        raise NotImplementedError

    @pytest.fixture
    def broken(self, database: Database) -> Broken:
        """What makes it impossible to write the database, as long as its context lasts."""
        raise NotImplementedError

    @pytest.fixture
    def database(self, url: str) -> Iterator[Database]:
        """A database on it."""
        database = Database(url, save_within_s=ACK_S)
        database.open()
        yield database
        database.close()

    @pytest.fixture
    def engine(self, database: Database, url: str) -> Iterator[sa.Engine]:
        """Another way into the database of the database, which is closed: somebody with a database tool."""
        database.close()
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        yield engine
        engine.dispose()

    # What is saved is loaded.

    def test_what_was_saved_is_loaded_equal(self, database):
        numbers = itertools.count()

        @settings(max_examples=60, deadline=None)
        @given(st.lists(reservations, max_size=5), announcements, st.lists(purchases, max_size=3))
        def round_trip(some, announced, bought):
            number = next(numbers)  # tells this example's names and keys from those of others
            mine = [
                replace(r, reservation_id=f"{number}.{i}{r.reservation_id}", key=r.key and f"{number}.{i}{r.key}")
                for i, r in enumerate(some)
            ]
            by_name = {p.name: p for p in bought}
            done(database, Changes(tuple(mine), tuple(announced.items()), tuple(by_name.values())))
            saved = database.load()
            live = {r.reservation_id: r for r in saved.reservations}
            for r in mine:
                assert live.get(r.reservation_id) == (None if r.state in ENDED else r)
                assert database.past_one(r.reservation_id) == (r if r.state in ENDED else None)
            assert saved.announcements.items() >= announced.items()
            assert {p.name: p for p in saved.purchases}.items() >= by_name.items()

        round_trip()

    def test_it_outlives_the_database(self, database, url):
        done(database, Changes((reservation(1),), (("a", "{}"),), (PurchaseRow("c", "p", 0, 1, 2, "up"),)))
        saved = database.load()
        database.close()
        again = Database(url)
        again.open()
        assert again.load() == saved
        assert (len(saved.reservations), saved.announcements, len(saved.purchases)) == (1, {"a": "{}"}, 1)
        again.close()

    def test_reservations_come_in_the_order_of_their_creation(self, database):
        done(database, of(*(reservation(n) for n in (10, 9, 2, 100))))
        assert [r.sequence for r in database.load().reservations] == [2, 9, 10, 100]

    def test_of_two_versions_saved_together_the_later_one_wins(self, database):
        done(database, of(reservation(1), replace(reservation(1), version=2)))
        assert [r.version for r in database.load().reservations] == [2]

    def test_of_many_versions_the_last_one_saved_wins(self, database):
        for version in range(500):
            last = database.save(of(replace(reservation(1), version=version)))
        last.result(ACK_S)
        assert [r.version for r in database.load().reservations] == [499]

    def test_what_is_gone_is_gone(self, database):
        purchase = PurchaseRow("chile-illinois", "p", 0, 1, 2, "up")
        done(
            database, Changes(announcements=(("a", "1"), ("b", "2")), purchases=(purchase, replace(purchase, name="q")))
        )
        done(database, Changes(announcements=(("a", None),), purchases_gone=("p",)))
        saved = database.load()
        assert (saved.announcements, [p.name for p in saved.purchases]) == ({"b": "2"}, ["q"])

    def test_what_comes_back_after_it_was_gone_is_there(self, database):
        purchase = PurchaseRow("chile-illinois", "p", 0, 1, 2, "up")
        database.save(Changes(announcements=(("a", None),), purchases_gone=("p",)))
        done(database, Changes(announcements=(("a", "1"),), purchases=(purchase,)))
        saved = database.load()
        assert (saved.announcements, saved.purchases) == ({"a": "1"}, (purchase,))

    def test_many_can_go_at_once(self, database):
        done(database, Changes(announcements=tuple((str(n), "{}") for n in range(70_000))))
        done(database, Changes(announcements=tuple((str(n), None) for n in range(70_000))))
        assert database.load().announcements == {}

    # Who waits for what.

    def test_whoever_saves_nothing_waits_for_what_was_saved_before(self, database):
        before = [database.save(of(reservation(n))) for n in range(300)]
        done(database, Changes())
        assert all(future.done() for future in before)

    def test_load_has_all_that_was_saved_before_even_if_nobody_can_be_told_yet(self, database):
        lock, told = threading.RLock(), []
        with lock:
            for n in range(200):
                database.save(of(reservation(n))).add_done_callback(
                    lambda _: (lock.acquire(), told.append(1), lock.release())
                )
            assert len(database.load().reservations) == 200
        done(database, Changes())
        assert len(told) == 200

    def test_many_threads_find_all_they_saved(self, database):
        def work(first):
            for n in range(first, first + 50):
                done(database, of(reservation(n)))

        threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 800, 50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [r.sequence for r in database.load().reservations] == list(range(800))

    def test_a_save_cannot_be_cancelled(self, database):
        future = database.save(of(reservation(1)))
        assert not future.cancel()
        future.result(ACK_S)

    def test_close_writes_what_waits_and_refuses_what_comes_after(self, database, url):
        waiting = [database.save(of(reservation(n))) for n in range(300)]
        database.close()
        assert all(future.exception(0) is None for future in waiting)
        with pytest.raises(DatabaseFailed, match="it is closed"):
            done(database, of(reservation(999)))
        with pytest.raises(DatabaseFailed, match="it is closed"):
            database.load()
        again = Database(url)
        again.open()
        assert len(again.load().reservations) == 300
        again.close()

    def test_nothing_is_saved_or_loaded_before_it_is_open(self, url):
        database = Database(url)
        with pytest.raises(DatabaseFailed, match="it is not open"):
            done(database, of(reservation(1)))
        with pytest.raises(DatabaseFailed, match="it is not open"):
            database.load()

    # Failures.

    def test_a_batch_is_written_whole_or_not_at_all(self, database):
        with pytest.raises(DatabaseFailed):
            done(database, of(reservation(1), replace(reservation(2), key=reservation(1).key)))
        assert database.load().reservations == ()

    def test_any_number_of_reservations_has_no_key(self, database):
        done(database, of(*(replace(reservation(n), key="") for n in range(3))))
        assert len(database.load().reservations) == 3

    def test_a_number_that_no_column_holds_fails_the_save_and_not_the_database(self, database):
        with pytest.raises(DatabaseFailed):
            done(database, of(replace(reservation(1), rate_bps=2**63)))
        database.load()
        done(database, of(reservation(1)))

    def test_after_a_failure_saves_are_refused_until_it_is_loaded(self, database, broken):
        done(database, of(reservation(1)))
        with broken():
            futures = [database.save(of(reservation(n))) for n in range(2, 400)]
            assert all(isinstance(future.exception(ACK_S), DatabaseFailed) for future in futures)
        with pytest.raises(DatabaseFailed):
            done(database, of(reservation(2)))
        assert database.load().reservations == (reservation(1),)
        done(database, of(reservation(2)))
        assert database.load().reservations == (reservation(1), reservation(2))

    def test_each_who_waits_gets_an_error_of_its_own(self, database, broken):
        with broken():
            errors = [future.exception(ACK_S) for future in [database.save(of(reservation(n))) for n in range(20)]]
        assert len({id(error) for error in errors}) == 20

    def test_what_waits_is_refused_by_a_load_that_cannot_write_it(self, database, broken):
        lock = threading.RLock()
        with lock:
            blocked = database.save(of(reservation(1)))
            blocked.add_done_callback(lambda _: (lock.acquire(), lock.release()))
            blocked.result(ACK_S)
            with broken():
                waiting = [database.save(of(reservation(n))) for n in range(2, 9)]
                with suppress(DatabaseFailed):  # a disk that is full can be read, a server that is gone cannot
                    database.load()
        assert all(isinstance(future.exception(ACK_S), DatabaseFailed) for future in waiting)
        assert database.load().reservations == (reservation(1),)

    def test_whoever_waits_for_a_writer_that_dies_hears_of_it(self, database):
        def full(_logger, _method, event):
            if event["event"] == "store.failed":
                raise BrokenPipeError("nobody reads the log")
            raise structlog.DropEvent

        before = structlog.get_config()
        structlog.configure(processors=[full])
        try:
            assert isinstance(
                database.save(of(replace(reservation(1), rate_bps=2**63))).exception(ACK_S), DatabaseFailed
            )
            with pytest.raises(DatabaseFailed, match="writer has stopped"):
                self._refused_at_last(database)
        finally:
            structlog.configure(**before)
        with pytest.raises(DatabaseFailed, match="writer has stopped: nobody reads the log"):
            database.load()

    @staticmethod
    def _refused_at_last(database):
        """Save until the writer is dead: it says what failed before it logs that, and dies of the latter."""
        while True:
            error = database.save(Changes()).exception(ACK_S)
            if error is not None and "writer" in str(error):
                raise error

    @pytest.mark.parametrize("count", [1, 60, 900])
    def test_what_was_acknowledged_is_there_after_the_process_was_killed(self, url, count):
        child = started_child(url)
        said = [*acknowledged(child, count), *killed(child)]
        database = Database(url)
        database.open()
        assert len(said) >= count
        assert set(said) - {r.reservation_id for r in database.load().reservations} == set()
        database.close()

    # Alone, and with a schema that is known.

    def test_a_second_database_is_refused_until_the_first_is_closed(self, database, url):
        second = Database(url)
        with pytest.raises(DatabaseBusy, match=r"in use by .*process \d+.*stop that one first"):
            second.open()
        done(database, of(reservation(1)))
        database.close()
        second.open()
        assert len(second.load().reservations) == 1
        second.close()

    def test_a_database_is_refused_while_another_process_has_the_database(self, url):
        child = started_child(url)
        try:
            acknowledged(child, 1)
            with pytest.raises(DatabaseBusy, match=rf"process {child.pid}\b"):
                Database(url).open()
        finally:
            killed(child)

    def test_the_schema_is_the_one_that_the_code_knows(self, engine):
        with engine.connect() as connection:
            mine = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
            assert compare_metadata(mine, METADATA) == []

    def test_a_database_of_the_first_schema_gets_by_steps_what_the_code_knows(self, url):
        with tool(url) as connection:
            migrate(connection, url, to="0001")
            assert migrate(connection, url) == SchemaChange("0001", known_schemas()[0])
            mine = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
            assert compare_metadata(mine, METADATA) == []

    def test_what_a_newer_headway_has_written_is_refused(self, engine, url):
        with engine.begin() as connection:
            connection.execute(sa.update(_VERSIONS).values(version_num="9999"))
            connection.execute(sa.text("UPDATE meta SET value = '7.5.0' WHERE key = 'written_by'"))
            before = connection.execute(_META).all()
        with pytest.raises(
            DatabaseNewer, match=r"written by Headway 7\.5\.0 \(schema 9999\).*install 7\.5\.0 or newer"
        ):
            Database(url).open()
        with engine.connect() as connection:
            assert connection.execute(_META).all() == before

    def test_a_database_with_somebody_elses_tables_stays_as_it_is(self, engine, url):
        with engine.begin() as connection:  # what is left stands in the way only after the first tables are made
            for name in {VERSION_TABLE, *METADATA.tables} - {"purchases", "meta"}:
                connection.execute(sa.DDL(f"DROP TABLE {name}"))
        with pytest.raises(DatabaseFailed, match=r"purchases.* already exists"):
            Database(url).open()
        with engine.connect() as connection:
            assert set(sa.inspect(connection).get_table_names()) == {"purchases", "meta"}
