"""What every database keeps to about terms; a part of the whole contract."""

import itertools

import pytest
import sqlalchemy as sa

from controller.database import Database, DatabaseFailed, DatabaseTaken
from controller.database.tables import META
from controller.database.terms import TERM, TERM_STEP
from controller.tests.changes_contract import tool
from controller.tests.database_child import reservation
from controller.tests.past_contract import ACK_S, done, of

AHEAD = 1 << 50  # milliseconds: in the year 37648


def led_since(url: str, term: int) -> None:
    """Let another controller have led under a term."""
    with tool(url) as connection:
        connection.execute(sa.update(META).where(META.c.key == TERM).values(value=str(term)))


class TermsContract:
    """For :class:`~controller.tests.database_contract.DatabaseContract`, which has the fixtures."""

    def test_each_controller_leads_under_a_term_above_those_before_it(self, database, url):
        terms = [database.term]
        database.close()
        for _ in range(3):
            following = Database(url)
            following.open()
            terms.append(following.term)
            following.close()
        assert all(later >= earlier + TERM_STEP for earlier, later in itertools.pairwise(terms))

    def test_a_controller_whose_clock_is_behind_leads_under_a_later_term(self, database, url):
        database.close()
        led_since(url, AHEAD)
        following = Database(url)
        following.open()
        assert following.term == AHEAD + TERM_STEP
        following.close()

    def test_a_database_that_has_failed_goes_on_under_its_term(self, database, broken):
        term = database.term
        with broken():
            for future in [database.save(of(reservation(n))) for n in range(400)]:
                assert future.exception(ACK_S)
        database.load()
        done(database, of(reservation(1)))
        assert database.term == term

    def test_a_controller_that_was_not_alone_all_the_time_decides_nothing_any_more(self, database, url, broken):
        term = database.term
        with broken():
            for future in [database.save(of(reservation(n))) for n in range(400)]:
                assert future.exception(ACK_S)
        led_since(url, term + 1)
        for _ in range(2):
            with pytest.raises(DatabaseTaken, match=rf"term {term + 1}, ours was {term}\).*must be started again"):
                database.load()
        with pytest.raises(DatabaseFailed, match="another controller has had it meanwhile"):
            done(database, of(reservation(1)))
