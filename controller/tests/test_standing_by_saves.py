"""What changes in the books of who stands by is handed to nobody there, and is saved once it leads."""

from dataclasses import replace

import pytest

from controller.database import Changes, Database, DatabaseFailed, past_named
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.reservations import Constraints
from controller.plan.tests.asking import asked
from controller.state.guard import GuardedState
from controller.tests.fakes import START_US, FakeSite, image
from controller.tests.test_following import Played, leading
from controller.use_cases import UseCases
from mininet_tests.testing.networks import FILES, loaded
from topology.telemetry import EntryTelemetry, Telemetry

S = 1_000_000
NORTH, BOTH = loaded(FILES["chile-illinois-north"]), loaded(FILES["chile-illinois-2"])
LATER = asked(start_us=START_US + 100 * S, end_us=START_US + 900 * S, rate_bps=300 * S)
SOUTH = replace(LATER, constraints=Constraints(include=("south",)))


@pytest.fixture
def counting(tmp_path):
    """A pair, and the use cases of who stands by, whom a host has told first that a count has begun."""
    played = Played(tmp_path / "pair.db", 0)
    played.site.use_cases.announce(image("a", senders=("base20",), size_bytes=10**9)).saved.result(30)
    follows = played.follows
    stands_by = UseCases(follows.state, follows.database)
    seen = EntryTelemetry("a/base20", 1, 1, 5 * S, 9, 0, 180_000, counted_since_ns=1)
    follows.reports.host_telemetry("base20", Telemetry(0, 1_000, entries=(seen,)))
    yield played, stands_by
    played.close()


def look(use_cases):
    """Ask for the promises, as a page of who stands by does."""
    use_cases.reservations(), use_cases.announcements(), use_cases.tally()


def take_over(leads, use_cases, state, database):
    """Lead in place of another, as one of a pair does."""
    leads.close()
    database.open()
    use_cases.saves.follow()
    state.lead(database.term)


def all_saved(use_cases):
    """Wait until all that the clock does is saved."""
    use_cases.tick().result(30)
    use_cases.tick().result(30)


def names(state):
    """The events of a controller, in order."""
    return [event.name for event in state.events.since(0).events]


def test_who_stands_by_says_no_failure_of_its_database_when_it_is_looked_at(counting):
    played, stands_by = counting
    look(stands_by)
    assert played.follows.database.save(Changes()).exception(30), "so what was handed over before is heard of"
    with played.follows.state.changed:
        assert played.follows.state.reported.database_error == ""
        assert played.follows.state.wished.ledger.has_changed
    assert names(played.follows.state) == []


def test_who_was_looked_at_while_it_stood_by_decides_as_soon_as_it_leads(counting):
    played, stands_by = counting
    look(stands_by)
    played.site.database.close()
    played.follows.database.open()  # it has read all
    played.follows.state.lead(played.follows.database.term)
    stands_by.announce(image("b", senders=("base21",), size_bytes=10**6)).saved.result(30)


def test_what_was_counted_while_another_led_is_saved_by_who_leads_then(counting):
    played, stands_by = counting
    look(stands_by)
    take_over(played.site.database, stands_by, played.follows.state, played.follows.database)
    all_saved(stands_by)
    with played.follows.state.changed:
        ledger = played.follows.state.wished.ledger
        assert not ledger.has_changed
        assert ledger._unsaved_announcements.of_clock() == {}


def test_nothing_is_decided_by_who_stands_by(counting):
    played, stands_by = counting
    with pytest.raises(DatabaseFailed, match="another controller leads"):
        stands_by.announce(image("b", senders=("base21",), size_bytes=10**6))
    assert names(played.follows.state) == []


@pytest.mark.parametrize(
    ("before", "after", "request_", "state", "told"),
    [
        (BOTH, NORTH, SOUTH, ReservationState.FAILED, ["promises.gone", "reservation.failed"]),
        (NORTH, BOTH, LATER, ReservationState.COMMITTED, []),
    ],
    ids=["its circuit is gone", "its circuit has another name"],
)
def test_promises_taken_into_another_network_are_saved_so_though_who_stood_by_was_looked_at(
    tmp_path, before, after, request_, state, told
):
    site = FakeSite(before, database=leading(tmp_path / "pair.db"), standing=())
    site.attach_all()
    site.converge()
    site.use_cases.hold(lambda _: request_, lambda now_us: Created("r1", now_us)).saved.result(30)
    site.use_cases.commit("r1").saved.result(30)
    database = Database(f"sqlite:///{tmp_path / 'pair.db'}", save_within_s=30)
    database.open_to_read()
    present = replace(site.state.site, network=after)
    standby = GuardedState(present, site.clock.instant, 0, stands_by=True)
    use_cases = UseCases(standby, database)
    look(use_cases)
    site.use_cases.announce(image("x", size_bytes=10**6)).saved.result(30)
    use_cases.saves.follow()
    take_over(site.database, use_cases, standby, database)
    all_saved(use_cases)
    with standby.changed:
        assert not standby.wished.ledger._unsaved.of_clock()
    assert names(standby) == told
    rows = database.load()
    saved = {known.reservation_id: known.state for known in rows.reservations}
    ended = {known.reservation_id: known.state for known in database.asked(lambda asked: past_named(asked, {"r1"}))}
    assert saved | ended == {"r1": state}
    database.close()
