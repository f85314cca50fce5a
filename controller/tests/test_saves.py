"""What a database that hangs, fails and comes back does to promises: nothing unsaved is answered, shown or acted on."""

import threading
import time
from concurrent.futures import wait

import pytest

from controller.database import ChangeQuery, Database, DatabaseFailed, DatabaseTaken, PastQuery
from controller.database.verify import verified
from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.state.guard import GuardedState
from controller.tests.fakes import START_US, FakeSite, image, value_of
from controller.tests.terms_contract import led_since
from controller.use_cases import UseCases
from controller.work.recovery import Recovery
from mininet_tests.testing.eventually import eventually
from topology.protocol import FlowClass

S = 1_000_000
WITHIN_S = 1.5  # as in use: a busy machine saves in less


class HangingSite(FakeSite):
    """A site on a database that can be made to hang, before it writes or after it has written."""

    def __init__(self, path):
        super().__init__(database=f"sqlite:///{path}/headway.db", standing=())
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.hangs_after = False
        write = self.database._session.write

        def writing(batch):
            if not self.hangs_after:
                self.goes_on.wait(30)
            write(batch)
            self.goes_on.wait(30)

        self.database._session.write = writing
        self.attach_all()
        self.converge()

    def hangs(self):
        """Let the database not answer any more; who waits for it gives up soon."""
        self.database._save_within_s = WITHIN_S
        self.goes_on.clear()

    def answers(self):
        """Let the database answer again."""
        self.database._save_within_s = 30
        self.goes_on.set()

    def close(self):
        """End."""
        self.answers()
        self.database.close()


@pytest.fixture
def site(tmp_path):
    """A site whose plan is in force."""
    site = HangingSite(tmp_path)
    yield site
    site.close()


def hold(site, name="r", start_s=10, rate_bps=300_000_000, a_end="base20"):
    """Hold 100 s between two hosts."""
    asked = Request(
        "base20", "arch", FlowClass.URGENT, rate_bps, START_US + start_s * S, START_US + (start_s + 100) * S
    )
    return site.use_cases.hold(lambda _: asked, lambda now_us: Created(name, now_us))


def committed(site, name="r", **more):
    """A promise, saved."""
    hold(site, name, **more).saved.result(5)
    return site.use_cases.commit(name).saved.result(5)


def recovered(site):
    """Bring memory and database together."""
    Recovery(site.state, site.use_cases.saves).step()
    assert not site.value.reported.database_error


def flows(site):
    """What the plan has, by flow."""
    return {str(entry.flow.name): entry.flow.floor_bps for entry in site.value.desired.plan.entries}


def stored(site):
    """What another process would find."""
    past = site.database.past(PastQuery(limit=100)).found
    return {r.reservation_id: r for r in (*site.database.load().reservations, *past)}


def test_a_save_that_hangs_fails_in_time_and_the_next_one_at_once(site):
    site.hangs()
    began_s = time.monotonic()
    with pytest.raises(DatabaseFailed, match="has not answered for"):
        hold(site).saved.result(5)
    assert WITHIN_S - 0.2 <= time.monotonic() - began_s < 5
    assert site.use_cases.saves.unsaved_us >= (WITHIN_S - 0.2) * S
    with pytest.raises(DatabaseFailed, match="has not answered for"):
        hold(site, "next")  # not even decided
    assert site.use_cases.reservations() == ()


def told(site):
    """The names of all events about promises, in order."""
    names = [event.name for event in site.state.events.since(0).events]
    return [name for name in names if name.startswith(("reservation.", "announcement."))]


def test_what_was_decided_is_told_once_it_is_saved_and_in_its_order(site):
    site.hangs_after = True
    site.goes_on.clear()
    saves = [hold(site, start_s=0), site.use_cases.commit("r"), site.use_cases.release("r")]
    assert told(site) == []
    site.goes_on.set()
    for one in saves:
        one.saved.result(5)
    begun = ["reservation.held", "reservation.committed", "reservation.provisioning"]
    assert told(site) == [*begun, "reservation.released"]


def test_what_was_decided_and_could_not_be_saved_is_not_told(site):
    site.announce(image("before"))
    site.hangs()
    saved = site.use_cases.forget("before").saved
    with pytest.raises(DatabaseFailed):
        saved.result(5)
    site.answers()
    recovered(site)
    assert "announcement.released" not in told(site)


def test_what_is_not_saved_yet_is_neither_shown_nor_planned(site):
    site.hangs()
    held, announced = hold(site, start_s=0), site.use_cases.announce(image())
    started = site.use_cases.commit("r")
    with site.state.changed:
        site.state.demand_changed()
    assert (flows(site), site.use_cases.reservations(), site.use_cases.announcements()) == ({}, (), ())
    site.answers()
    wait([held.saved, announced.saved, started.saved], 5)
    with site.state.changed:
        site.state.replan()
    assert len(flows(site)) == 2
    assert site.use_cases.reservation("r").state is ReservationState.PROVISIONING


def test_an_unsaved_change_leaves_a_running_reservation_as_it_was(site):
    committed(site, start_s=0)
    site.converge()
    before, known = flows(site), site.use_cases.reservation("r")
    assert list(before.values()) == [300_000_000]
    site.hangs()
    less = Request("base20", "arch", FlowClass.URGENT, 1_000_000, known.start_us, known.end_us)
    changed = site.use_cases.change("r", lambda _: less, known.version)
    with site.state.changed:
        site.state.demand_changed()
    assert (flows(site), site.use_cases.reservation("r")) == (before, known)
    site.answers()
    changed.saved.result(5)
    with site.state.changed:
        site.state.replan()
    assert list(flows(site).values()) == [1_000_000]


def test_the_clock_goes_on_while_the_database_hangs_and_is_saved_later(site):
    committed(site)
    committed(site, "later", start_s=20, rate_bps=1_000_000, a_end="base21")
    site.hangs()
    with pytest.raises(DatabaseFailed):
        site.use_cases.release("r").saved.result(5)
    for after_s, state in ((10, "active"), (111, "expired")):
        site.clock.now_us = START_US + after_s * S
        site.converge()
        site.converge()
        assert site.use_cases.reservation("r").state == state
    known = site.use_cases.reservation("later")
    assert (known.state, known.reason) == ("active", "")
    site.answers()
    eventually(lambda: not site.database._using.locked(), within_s=5, what="the writer is back")
    assert site.use_cases.saves.unsaved_us > 0
    recovered(site)
    assert site.use_cases.saves.unsaved_us == 0
    site.use_cases.tick()
    now = stored(site)
    assert now == {name: site.reservation(name) for name in ("r", "later")}
    assert now["later"].state is ReservationState.ACTIVE


@pytest.mark.parametrize("hangs_after", [False, True], ids=["before it writes", "after it has written"])
def test_a_commit_whose_outcome_is_unknown_is_resolved_against_the_database(site, hangs_after):
    committed(site)
    hold(site, "held", rate_bps=100_000_000).saved.result(5)
    site.hangs_after = hangs_after
    site.hangs()
    with pytest.raises(DatabaseFailed):
        site.use_cases.commit("held").saved.result(5)
    assert site.use_cases.reservation("held").state is ReservationState.HELD
    plan = site.value.desired.plan
    site.answers()
    recovered(site)
    there = stored(site)["held"]
    assert site.use_cases.reservation("held") == there
    assert there.state is ReservationState.COMMITTED  # the write went through, late
    assert site.value.desired.plan is plan
    assert site.use_cases.commit("held").saved.result(5) is None


def test_a_release_that_is_repeated_while_it_is_being_saved_is_answered_once_it_is(site):
    committed(site)
    site.hangs()
    site.database._save_within_s = 30
    both = [site.use_cases.release("r"), site.use_cases.release("r")]
    assert [one.saved.done() for one in both] == [False, False]
    site.answers()
    for one in both:
        one.saved.result(5)
    assert both[0].value == both[1].value


def test_a_release_that_went_through_unheard_is_so_even_if_the_clock_has_acted_meanwhile(site):
    committed(site)
    site.hangs_after = True
    site.hangs()
    with pytest.raises(DatabaseFailed):
        site.use_cases.release("r").saved.result(5)
    site.clock.now_us = START_US + 10 * S
    site.converge()
    seen = site.use_cases.reservation("r")
    assert seen.state is ReservationState.ACTIVE
    site.answers()
    recovered(site)
    site.use_cases.tick()
    known = site.reservation("r")
    assert known.state is ReservationState.RELEASED
    assert known.version > seen.version
    assert stored(site)["r"] == known
    assert flows(site) == {}


def test_a_database_that_can_only_be_read_is_not_taken_for_whole(site):
    database = site.database
    whole = database._session.prove

    def refused():
        raise OSError("attempt to write a readonly database")

    database._session.prove = refused
    database._refuse("attempt to write a readonly database")
    with pytest.raises(DatabaseFailed):
        hold(site).saved.result(5)
    assert not Recovery(site.state, site.use_cases.saves).step()
    with pytest.raises(DatabaseFailed, match="readonly"):
        hold(site)
    database._session.prove = whole
    recovered(site)
    hold(site).saved.result(5)


def test_a_controller_that_another_one_has_followed_says_so_and_ends(site):
    seen = site.state.events.last
    site.database._refuse("gone")
    with pytest.raises(DatabaseFailed):
        hold(site).saved.result(5)
    led_since(site.database.url, site.database.term + 1)
    with pytest.raises(DatabaseTaken) as taken:
        Recovery(site.state, site.use_cases.saves).run()
    (said,) = (event for event in site.state.events.since(seen).events if event.name == "store.taken")
    assert said.fields == {"error": str(taken.value)}


def test_one_of_a_pair_that_another_one_has_followed_begins_anew_whoever_notices_it_first(site):
    site.database._refuse("gone")
    with pytest.raises(DatabaseFailed):
        hold(site).saved.result(5)
    led_since(site.database.url, site.database.term + 1)
    begun = []
    assert not Recovery(site.state, site.use_cases.saves, lambda: begun.append("anew")).step()
    assert begun == ["anew"]


def test_who_stands_by_shows_a_hold_that_has_lapsed_and_leaves_its_end_to_who_leads(site):
    hold(site).saved.result(5)
    database = Database(site.database.url)
    database.open_to_read()
    state = GuardedState(site.state.site, site.clock.instant, 0, stands_by=True)
    reads = UseCases(state, database)
    reads.saves.read_anew()
    site.clock.now_us += 3600 * S
    assert reads.reservation("r").state is ReservationState.HELD
    assert not value_of(state).reported.database_error
    assert site.use_cases.reservation("r").state is ReservationState.EXPIRED
    database.close()


def test_the_lock_is_free_while_the_database_is_read_again(site):
    site.database._refuse("gone")
    with pytest.raises(DatabaseFailed):
        hold(site).saved.result(5)
    opening, goes_on = threading.Event(), threading.Event()
    connect = site.database._session.open

    def slow():
        opening.set()
        goes_on.wait(30)
        connect()

    site.database._session.open = slow
    reading = threading.Thread(target=lambda: recovered(site))
    reading.start()
    assert opening.wait(5)
    assert site.state.changed.acquire(timeout=1)
    site.state.changed.release()
    site.converge()
    goes_on.set()
    reading.join(5)
    assert not site.value.reported.database_error


def test_a_database_that_hangs_does_not_keep_the_process_from_ending(tmp_path, monkeypatch):
    monkeypatch.setattr("controller.database.database.CLOSE_WITHIN_S", 0.2)
    site = HangingSite(tmp_path)
    site.hangs()
    waiting = hold(site).saved
    began_s = time.monotonic()
    site.database.close()
    assert time.monotonic() - began_s < 10
    assert isinstance(waiting.exception(5), DatabaseFailed)
    site.answers()


def remembered(site):
    """What is remembered of changes, and whether the chain is whole."""
    assert verified(site.database.url).fault is None
    return [(row.change.kind, row.change.id) for row in site.database.changes(ChangeQuery(limit=100))]


def test_who_asks_as_the_controller_ends_is_refused_and_that_is_no_failure_of_the_database(site):
    site.state.stop()
    site.database.finish()
    with pytest.raises(DatabaseFailed):
        hold(site).saved.result(5)
    assert site.use_cases.reservations() == ()
    assert "store.failed" not in {event.name for event in site.state.events.since(0).events}


def test_what_could_not_be_saved_is_not_remembered_and_what_comes_later_is(site):
    site.hangs()
    waiting = [hold(site).saved, site.use_cases.commit("r").saved]
    for saved in waiting:
        with pytest.raises(DatabaseFailed):
            saved.result(5)
    site.answers()
    recovered(site)
    kept = stored(site)
    assert [name for kind, name in remembered(site) if kind == "reservation.held"] == list(kept)
    committed(site, "next")
    assert remembered(site)[-2:] == [("reservation.held", "next"), ("reservation.committed", "next")]


def test_what_was_saved_unheard_is_remembered_once(site):
    site.hangs_after = True
    site.hangs()
    with pytest.raises(DatabaseFailed):
        hold(site).saved.result(5)
    site.answers()
    recovered(site)
    assert (list(stored(site)), remembered(site)) == (["r"], [("reservation.held", "r")])
