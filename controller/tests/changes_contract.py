"""What every database keeps to about what is remembered of changes; a part of the whole contract."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import sqlalchemy as sa

from controller.asker import CONTROLLER, Asker
from controller.database import ChainEnd, ChangeQuery, Changes, Database, DatabaseFailed, EndedKind, SaveRecord
from controller.database.chain import BEGINNING
from controller.database.schema import migrate
from controller.database.tables import RESERVATIONS
from controller.database.verify import verified
from controller.plan.lifecycle import ReservationState
from controller.plan.reservations import Reservation
from controller.tests.database_child import reservation
from controller.tests.past_contract import ACK_S, done, ownerless_row

ANA = Asker("token:ana", "192.0.2.7", "\x00 \ud800 \\ é")
ALL = ChangeQuery(limit=10_000)


def recorded(now: Reservation, before: Reservation | None = None, asker: Asker = ANA) -> Changes:
    """A change of a reservation, and by whom."""
    return Changes((now,), record=SaveRecord(asker, now.changed_us, ((before, now),)))


def verdict(url: str, noted: ChainEnd | None = None) -> int | None:
    """The number of the first row that is wrong; None if none is."""
    found = verified(url, noted)
    return found.fault and found.fault.number


@contextmanager
def tool(url: str) -> Iterator[sa.Connection]:
    """A transaction of somebody with a database tool."""
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def alteration_is_refused(url: str) -> None:
    """Try to alter what is remembered."""
    with pytest.raises(sa.exc.DBAPIError, match="appended only"), tool(url) as connection:
        connection.execute(sa.text("UPDATE changes SET who = 'nobody'"))


class ChangesContract:
    """For :class:`~controller.tests.database_contract.DatabaseContract`, which has the fixtures."""

    def test_a_change_is_remembered_with_who_has_asked_for_it_and_what_was_before(self, database, url):
        held = replace(reservation(1), state=ReservationState.HELD, description="\ud800 \\ \x00")
        done(database, recorded(held))
        done(database, recorded(replace(held, state=ReservationState.COMMITTED, version=1), held))
        first, second = database.changes(ALL)
        assert (first.number, first.change.kind, first.change.old) == (1, "reservation.held", None)
        assert (second.number, second.change.kind, second.change.id) == (2, "reservation.committed", "r1")
        assert (second.change.who, second.change.address, second.change.at_us) == ("token:ana", "192.0.2.7", 1)
        assert (second.change.old, second.change.new) == (
            '{"version":0,"state":"held"}',
            '{"version":1,"state":"committed"}',
        )
        assert verdict(url) is None  # while a controller has it

    def test_saves_written_together_are_all_remembered_in_their_order(self, database, url):
        versions = [replace(reservation(1), version=version) for version in range(300)]
        before = [None, *versions]
        waiting = [database.save(recorded(now, was)) for was, now in zip(before, versions, strict=False)]
        waiting[-1].result(ACK_S)
        assert [row.change.new.startswith(f'{{"version":{n}') for n, row in enumerate(database.changes(ALL))] == [
            True
        ] * 300
        assert verdict(url) is None

    def test_a_save_that_fails_leaves_no_row_and_the_chain_goes_on(self, database, url):
        done(database, recorded(reservation(1)))
        with pytest.raises(DatabaseFailed):
            done(database, recorded(replace(reservation(2), rate_bps=2**63)))
        database.load()
        assert [row.change.id for row in database.changes(ALL)] == ["r1"]
        done(database, recorded(reservation(3)))
        assert [(row.number, row.change.id) for row in database.changes(ALL)] == [(1, "r1"), (2, "r3")]
        assert verdict(url) is None

    def test_what_is_remembered_and_cannot_be_written_takes_the_change_with_it(self, database):
        with pytest.raises(DatabaseFailed):
            done(database, replace(recorded(reservation(1)), record=SaveRecord(ANA, 0, ((None, too_late()),))))
        assert database.load().reservations == ()
        assert database.changes(ALL) == ()

    def test_what_a_broken_database_refuses_is_neither_there_nor_remembered(self, database, url, broken):
        done(database, recorded(reservation(1)))
        with broken():
            futures = [database.save(recorded(reservation(n))) for n in range(2, 200)]
            assert all(isinstance(future.exception(ACK_S), DatabaseFailed) for future in futures)
        assert [r.reservation_id for r in database.load().reservations] == ["r1"]
        assert [row.change.id for row in database.changes(ALL)] == ["r1"]
        done(database, recorded(reservation(2)))
        assert verdict(url) is None

    def test_changes_are_asked_for_by_id_by_whom_since_when_and_in_pages(self, database):
        for n in range(1, 11):
            done(database, recorded(reservation(n), asker=ANA if n % 2 else CONTROLLER))
        assert [row.number for row in database.changes(ChangeQuery(after=3, limit=4))] == [4, 5, 6, 7]
        assert [row.number for row in database.changes(replace(ALL, who="controller", after=5))] == [6, 8, 10]
        assert [row.number for row in database.changes(replace(ALL, id="r7"))] == [7]
        assert [row.number for row in database.changes(replace(ALL, since_us=9))] == [9, 10]
        assert [row.number for row in database.changes(replace(ALL, since_us=3, who="token:ana", after=5))] == [7, 9]
        assert database.changes(replace(ALL, since_us=11)) == database.changes(replace(ALL, id="r11")) == ()

    def test_what_was_made_since_then_is_there_though_what_was_made_before_it_was_saved_later(self, database):
        for number, at_us in ((1, 30), (2, 10), (3, 40)):
            done(database, recorded(replace(reservation(number), changed_us=at_us)))
        assert [row.number for row in database.changes(replace(ALL, since_us=5))] == [1, 2, 3]
        assert [row.number for row in database.changes(replace(ALL, since_us=20))] == [1, 2, 3]
        assert [row.number for row in database.changes(replace(ALL, since_us=35))] == [3]

    def test_the_oldest_are_forgotten_and_the_rest_can_be_verified(self, database, url):
        for n in range(1, 11):
            done(database, recorded(reservation(n)))
        rows = database.changes(ALL)
        assert database.forget_changes(6, 3) == 3
        assert database.forget_changes(6, 100) == 2
        assert database.forget_changes(6, 100) == 0
        assert database.forget(EndedKind.RESERVATION, 100, 100) == 0
        assert [row.number for row in database.changes(ALL)] == [6, 7, 8, 9, 10]
        assert verdict(url) is verdict(url, rows[4].end) is None
        assert verdict(url, rows[3].end) == 4  # it is forgotten
        assert database.forget_changes(100, 100) == 5
        assert (verdict(url), verified(url).rows, verified(url).end) == (None, 0, rows[9].end)
        database.close()
        again = Database(url)
        again.open()
        done(again, recorded(reservation(11)))
        assert [row.number for row in again.changes(ALL)] == [11]  # no number is used twice
        assert verdict(url) is None
        again.close()

    def test_a_row_that_is_there_cannot_be_altered(self, database, url):
        done(database, recorded(reservation(1)))
        alteration_is_refused(url)
        assert [row.change.who for row in database.changes(ALL)] == ["token:ana"]

    @pytest.mark.parametrize(
        ("tampered", "wrong"),
        [
            ("DELETE FROM changes WHERE number = 1", 1),
            ("DELETE FROM changes WHERE number = 3", 3),
            ("DELETE FROM changes WHERE number = 5", 5),
            ("DELETE FROM changes", 1),
            ("DELETE FROM meta WHERE key = 'changes last'", 5),
            (
                "INSERT INTO changes SELECT 6, 1, who, '', '', kind, id, old, new, outcome, hash FROM changes LIMIT 1",
                6,
            ),
            ("UPDATE changes SET who = 'token:bob' WHERE number = 2", 2),
            ("UPDATE changes SET old = '{}' WHERE number = 2", 2),
            ("UPDATE changes SET hash = '0' WHERE number = 4", 4),
        ],
    )
    def test_what_somebody_does_to_the_table_is_found_and_where(self, database, url, tampered, wrong):
        for n in range(1, 6):
            done(database, recorded(reservation(n)))
        assert verdict(url) is None
        with tool(url) as connection:
            connection.execute(sa.text(f"DROP TRIGGER changes_appended_only{_on(connection)}"))
            connection.execute(sa.text(tampered))
        assert verdict(url) == wrong

    def test_a_chain_that_was_made_anew_is_found_by_who_has_noted_a_row(self, database, url, tmp_path):
        for n in range(1, 6):
            done(database, recorded(reservation(n)))
        noted = database.changes(ALL)[2].end
        assert database.last_change() == database.changes(ALL)[4].end
        other = f"sqlite:///{tmp_path}/anew.db"
        anew = Database(other)
        anew.open()
        for n in range(1, 6):
            done(anew, recorded(reservation(n), asker=CONTROLLER if n == 2 else ANA))
        anew.close()
        assert verdict(other) is None
        assert (verdict(url, noted), verdict(other, noted)) == (None, 3)
        assert verdict(url, ChainEnd(6, noted.hash)) == 6

    def test_a_database_of_the_version_before_goes_on_with_nothing_remembered(self, url):
        with tool(url) as connection:
            migrate(connection, url, to="0004")
            connection.execute(sa.insert(RESERVATIONS), [ownerless_row(reservation(n)) for n in (1, 2)])
        database = Database(url)
        database.open()
        assert database.load().reservations == (reservation(1), reservation(2))
        assert (database.changes(ALL), database.last_change(), verdict(url)) == ((), BEGINNING, None)
        done(database, recorded(replace(reservation(1), version=1), reservation(1)))
        assert [row.number for row in database.changes(ALL)] == [1]
        assert verdict(url) is None
        alteration_is_refused(url)
        database.close()


def too_late() -> Reservation:
    """A reservation that was changed at a time that no column holds."""
    return replace(reservation(1), changed_us=2**63)


def _on(connection: sa.Connection) -> str:
    return " ON changes" if connection.dialect.name == "postgresql" else ""
