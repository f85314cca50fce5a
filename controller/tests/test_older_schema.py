"""One of a pair whose leader is of an older Headway stands by, and brings the database up to date once it leads."""

import threading
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from controller.database import Database, DatabaseFailed
from controller.database.backends import backend, connected
from controller.database.leader_row import SAVES, SeenLeader
from controller.database.schema import migrate
from controller.database.tables import ANNOUNCEMENTS, META
from controller.plan.leading import PairStanding
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import GIGABIT
from controller.site import Site
from controller.state.guard import GuardedState
from controller.tests.fakes import START_US, Clock
from controller.work.pair import Pair


@pytest.fixture
def older(tmp_path):
    """The URL of a database that an older Headway has written."""
    url = f"sqlite:///{tmp_path}/headway.db"
    database = backend(url)
    with connected(database, database.connect) as connection:
        migrate(connection, url, to="0005")
        with connection.begin():
            connection.execute(sa.insert(ANNOUNCEMENTS), {"id": "a", "body": "{}"})
            connection.execute(sa.insert(META), {"key": SAVES, "value": "7"})
    return url


@pytest.fixture
def standby(older):
    """Who stands by meanwhile."""
    database = Database(older)
    database.open_to_read()
    yield database
    database.close()


def test_who_stands_by_beside_an_older_one_reads_nothing_until_it_leads(standby):
    assert standby.load().announcements == {}
    with pytest.raises(DatabaseFailed):
        standby.past_one("r1")
    standby.open()
    assert standby.load().announcements == {"a": "{}"}


def test_who_stands_by_reads_on_once_another_one_has_brought_the_database_up_to_date(older, standby):
    assert standby.load().announcements == {}
    database = backend(older)
    with connected(database, database.connect) as connection:
        migrate(connection, older)
    assert standby.load().announcements == {"a": "{}"}


def test_who_has_not_read_what_its_leader_has_written_says_that_it_is_behind():
    clock = Clock()
    seen, seen_us = SeenLeader(7, "a", "http://a", 0, is_over=False, saves=7), clock.instant().elapsed_us + 5_000_000
    leadership = SimpleNamespace(
        led=threading.Event(), seen=seen, seen_us=seen_us, term=0, others=(), standing=PairStanding.STANDBY
    )
    leadership.led.set()  # it looks once
    state = GuardedState(Site(GIGABIT, DEFAULT_POLICY, (), 300), clock.instant, 0, stands_by=True)
    ages_us = []
    for read in (7, 0):
        clock.now_us = START_US
        pair = Pair(leadership, state, None, SimpleNamespace(follow=lambda read=read: read), None)
        pair.follow()
        clock.now_us += 6_000_000
        ages_us.append(pair.view().age_us)
    assert ages_us == [1_000_000, 6_000_000]
