"""What a backup keeps to, whatever database is behind the database: a class of tests for each kind to inherit."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import sqlalchemy as sa

from controller.database import Changes, Database, DatabaseBusy, DatabaseFailed, DatabaseNewer, PurchaseRow
from controller.database.backup import backed_up, restore
from controller.database.clock import SavedTime
from controller.database.errors import NotRestorable
from controller.database.rows import purchase_row
from controller.database.tables import METADATA
from controller.plan.lifecycle import ReservationState
from controller.tests.database_child import reservation
from controller.tests.past_contract import done, of


class BackupContract:
    """Needs a fixture ``url``: an empty database."""

    def test_a_backup_of_a_database_in_use_is_restored_into_another_and_back(self, url, tmp_path):
        first = replace(reservation(1), description="\x00 \ud800 \\ é")
        bought = PurchaseRow("c", "p", 1, 2, 2**62, "active")
        time, other = SavedTime("boot", 1, 2), f"sqlite:///{tmp_path}/other.db"
        with opened(url) as database:
            done(database, Changes((first, reservation(2)), (("a", '{"x": 1}'),), (bought,), time=time))
            saved = database.load()
            lines = backed_up(url, {})  # while the database is open
            head = next(lines), next(lines)
            done(database, of(reservation(3)))  # after the moment that the backup is of
            assert restore(other, (*head, *lines)).rows["reservations"] == 2
        with opened(other) as there:
            assert (there.load(), there.time()) == (saved, time)
            with pytest.raises(DatabaseBusy):
                restore(other, ())
        again = list(backed_up(other, {}))
        with pytest.raises(NotRestorable, match="not empty"):
            restore(other, again)
        emptied(url)
        restore(url, again)
        with opened(url) as back:
            assert back.load() == saved

    def test_a_backup_that_is_cut_short_restores_nothing(self, url):
        with opened(url) as database:
            done(database, of(reservation(1), reservation(2)))
        lines = list(backed_up(url, {}))
        emptied(url)
        for wrong in (lines[:-1], lines[:2], [], ["x\n"], [lines[0], '{"table": "passwd", "row": {}}', lines[-1]]):
            with pytest.raises(NotRestorable):
                restore(url, wrong)
            with opened(url) as after:
                assert after.load().reservations == ()
        with pytest.raises(DatabaseNewer):
            restore(url, [lines[0].replace('"schema":"', '"schema":"9')])

    @pytest.mark.parametrize(
        "row",
        [
            '{"table":"meta"}',
            '{"table":["meta"],"row":{}}',
            '{"table":"meta","row":7}',
            '{"table":"meta","row":{"key":"k","value":{}}}',
            '{"table":"meta","row":{"key":"k","value":"v","more":1}}',
            '{"table":"meta","row":{"key":"k"}}',
            '{"table":"meta","row":{"key":"k","value":"\\ud800"}}',
            json.dumps({"table": "purchases", "row": purchase_row(PurchaseRow("c", "p", 1, 10**23, 1, "active"))}),
        ],
    )
    def test_what_is_no_row_of_ours_is_refused_in_a_sentence(self, url, row):
        with opened(url) as database:
            done(database, of(reservation(1)))
        head, *rows, _ = backed_up(url, {})
        emptied(url)
        with pytest.raises((NotRestorable, DatabaseFailed)):
            restore(url, [head, *rows, row, json.dumps({"rows": len(rows) + 1})])
        with opened(url) as after:
            assert after.load().reservations == ()

    def test_what_ends_after_a_restore_comes_behind_all_that_ended_before_it(self, url):
        with opened(url) as database:
            done(database, of(ended(1), ended(2)))
            lines = list(backed_up(url, {}))
            done(database, of(ended(3), ended(4)))
            last = database.history(0, 10)[-1].number  # that an export has
        emptied(url)
        restore(url, lines)
        with opened(url) as back:
            done(back, of(ended(5)))
            assert [one.ended.reservation_id for one in back.history(last, 10)] == ["r5"]

    def test_a_backup_of_the_first_schema_is_brought_up_to_date(self, url):
        row = {"id": "a", "body": "{}"}
        lines = [{"headway_backup": 1, "schema": "0001"}, {"table": "announcements", "row": row}, {"rows": 1}]
        restore(url, map(json.dumps, lines))
        with opened(url) as there:
            assert there.load().announcements == {"a": "{}"}

    def test_nothing_is_no_database(self, tmp_path):
        with pytest.raises(DatabaseFailed, match="no such file"):
            list(backed_up(f"sqlite:///{tmp_path}/none.db", {}))


def ended(number):
    """A reservation that has ended."""
    return replace(reservation(number), state=ReservationState.EXPIRED)


@contextmanager
def opened(url: str) -> Iterator[Database]:
    """A database, open."""
    one = Database(url)
    try:
        one.open()
        yield one
    finally:
        one.close()


def emptied(url: str) -> None:
    """Leave the tables of a database, without rows."""
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for table in METADATA.sorted_tables:
            connection.execute(table.delete())
    engine.dispose()
