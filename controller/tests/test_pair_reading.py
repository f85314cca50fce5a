"""What one of a pair reads of the books, when, and how old it says that is."""

import sqlite3
import threading
from contextlib import closing

import pytest

from controller.database import Changes, Database
from controller.database.clock import SavedTime
from controller.tests.pair_parts import empty_database
from controller.tests.pair_world import PairWorld
from controller.work.leadership import Leadership

ACK_S = 10.0
S, HOUR_US = 1_000_000, 3_600_000_000
LATER_US = 20_000  # before a leader's row is over


class QuietWorld(PairWorld):
    """Nothing happens in it by itself."""

    def moment(self, _one):
        """Let nothing happen."""


@pytest.fixture
def pair(tmp_path):
    """The controllers of such a world, of which the first one leads."""
    world = QuietWorld(0, empty_database(tmp_path / "pair.db"))
    for each in (*world.controllers, *world.controllers):
        each.looks()
    assert [one.leads for one in world.controllers] == [True, False]
    yield world.controllers
    for each in world.controllers:
        each.ends()


@pytest.fixture
def reads(pair, monkeypatch):
    """How often the second one has read its books."""
    saves, found = pair[1].use_cases.saves, []
    real = saves.follow
    monkeypatch.setattr(saves, "follow", lambda: (found.append("read"), real())[1])
    return found


def promised(one):
    """The keys of the reservations that a controller knows."""
    return [known.key for known in one.use_cases.reservations()]


@pytest.mark.parametrize("follows", [True, False], ids=["its other thread has", "none has"])
def test_who_takes_over_reads_once_what_was_not_read(pair, reads, follows):
    one, other = pair
    assert one.answers("k")
    one.leadership.leave()
    one.leadership.step()
    other.leadership.step()
    if follows:
        other.pair.follow()  # which ends, for it leads
        assert reads == ["read"]
    other.pair.lead((), lambda: None)
    assert reads == ["read"]
    assert promised(other) == ["k"]
    other.pair.follow()
    assert reads == ["read"]


@pytest.mark.parametrize("written_us", [-S, HOUR_US])
def test_who_takes_over_has_the_time_of_its_clocks_then_and_not_an_earlier_one_than_is_written(pair, written_us):
    one, other = pair
    other.skew_us = 2 * HOUR_US
    other.ends()
    other.begins()
    other.skew_us = 0
    now_us = one.world.now_us
    one.database.save(Changes(time=SavedTime("another machine", now_us + written_us, 5))).result(ACK_S)
    one.leadership.leave()
    one.leadership.step()
    other.leadership.step()
    other.pair.lead((), lambda: None)
    assert other.state.now_us() == now_us + max(0, written_us)


def test_what_the_one_before_writes_after_that_is_read_too(pair, reads):
    one, other = pair
    one.world.now_us += 600_000  # it has stood still for so long, and wakes up
    other.leadership.step()
    assert other.leadership.term > one.leadership.term
    other.pair.follow()
    assert one.answers("late") is None  # it knows that its time is over; not so one that is stopped after that look
    one.leadership._leading = one.leadership._leading.renewed(one.elapsed_us(), 10**9)
    assert one.answers("late")
    other.pair.lead((), lambda: None)
    assert promised(other) == ["late"]


def test_who_begins_to_lead_goes_on_reading_while_its_session_is_opened(tmp_path, monkeypatch):
    database = Database(f"sqlite:///{empty_database(tmp_path / 'one.db')}")
    database.open_to_read()
    begun, ends, really = threading.Event(), threading.Event(), database._session.open

    def slowly(claimed):
        begun.set()
        assert ends.wait(ACK_S)
        really(claimed)

    monkeypatch.setattr(database._session, "open", slowly)
    opening = threading.Thread(target=database.open)
    opening.start()
    try:
        assert begun.wait(ACK_S)
        assert database.load().reservations == ()
        assert not database.term
    finally:
        ends.set()
        opening.join(ACK_S)
    assert database.term
    assert database.load().reservations == ()
    database.close()


@pytest.fixture
def lost(pair, tmp_path):
    """Both know of a reservation, and the server comes back without the transactions that have made it."""
    one, other = pair
    before = sqlite3.connect(tmp_path / "before.db")
    with closing(before), closing(sqlite3.connect(one.world.shared.path)) as now:
        now.backup(before)
        assert one.answers("k")
        other.leadership.look()
        other.pair._look()
        assert promised(other) == ["k"]
        before.backup(now)


@pytest.mark.usefixtures("lost")
def test_what_a_server_has_lost_is_not_shown_any_more_once_its_leader_has_found_out(pair):
    one, other = pair
    one.database._session.open()
    for _ in range(2):  # as many transactions as are lost
        one.database._session.prove()
    other.leadership.look()
    other.pair._look()
    assert promised(other) == []


class LooksBetween(Leadership):
    """One of which another look at the row ends whenever it was asked for something of the last one."""

    def __getattribute__(self, name):
        """Return an attribute; then a look ends."""
        found = super().__getattribute__(name)
        if name in {"seen", "seen_us"}:
            super().__getattribute__("happens")()
        return found


def test_what_was_read_is_never_said_to_be_younger_than_it_is(pair):
    one, other = pair
    led = other.leadership
    assert one.answers("before")
    led.look()
    other.pair._look()

    def leader_writes():
        led.happens = lambda: None
        one.world.now_us += LATER_US
        assert one.answers("k")
        one.world.now_us += LATER_US
        led.look()

    led.happens = leader_writes
    led.__class__ = LooksBetween
    other.pair._look()
    assert "k" in promised(other) or other.pair.view().age_us >= LATER_US
