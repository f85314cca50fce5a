"""What a database that fails does to announcements: decisions are withdrawn, what was counted and has lapsed stays."""

import threading
from dataclasses import replace

import pytest

from controller.announced import Announced
from controller.database import DatabaseFailed, EndedQuery
from controller.plan.announcement_states import AnnouncementState
from controller.plan.deliveries import LAST_COUNT_US, total_bytes
from controller.plan.ended import EndedAnnouncement
from controller.promise_watch import PromiseWatch
from controller.tests.fakes import image
from controller.tests.test_saves import HangingSite, recovered
from mininet_tests.testing.eventually import eventually
from topology.telemetry import EntryTelemetry, Telemetry

KEYED = replace(image(), senders=("base20",), key="night-1", is_named=False)


@pytest.fixture
def site(tmp_path):
    """A site whose plan is in force."""
    site = HangingSite(tmp_path)
    yield site
    site.close()


def announced(site, asked=KEYED):
    """Announce something; return the promise once it is saved."""
    done = site.use_cases.announce(asked)
    done.saved.result(5)
    return done.value


def tell(site, delivered, since_ns=1, *, is_last=False):
    """Let the image's sender tell what it has counted."""
    seen = EntryTelemetry("image/base20", 1, 1, delivered, delivered // 1448, 0, 180_000, counted_since_ns=since_ns)
    counts = ((), (seen,)) if is_last else ((seen,), ())
    site.reports.host_telemetry("base20", Telemetry(site.value.reported.hosts["base20"].sent_epoch, 1000, *counts))


def known(site, name="image"):
    """The image as anybody reads it."""
    return Announced(site.state, site.database).one(name)


def fails(site, decide):
    """Decide something while the database hangs, and let it go on once that was given up."""
    site.hangs()
    done = decide()
    with pytest.raises(DatabaseFailed):
        done.saved.result(5)


def goes_on(site):
    """Let the database answer again, and the controller go on from it."""
    site.answers()
    recovered(site)
    site.use_cases.tick()


def test_an_announcement_that_was_not_saved_leaves_nothing_behind(site):
    site.hangs()
    site.use_cases.announce(KEYED)
    eventually(lambda: site.database._writing, within_s=5, what="the announcement is being written")
    with pytest.raises(DatabaseFailed):
        site.use_cases.forget("image").saved.result(5)
    assert site.use_cases.announcements() == ()
    with site.state.changed:
        ledger = site.state.wished.ledger
        assert not ledger.ended.lately
        assert ledger.ended.repeated("", "night-1", "") is None
    tell(site, 5)  # nobody's any more
    site.answers()
    recovered(site)
    assert {one.announcement_id for one in site.use_cases.announcements()} == {"image"}  # it was written, late


def test_an_announcement_that_is_being_saved_is_not_late(site):
    site.hangs()
    site.use_cases.announce(KEYED)
    site.clock.now_us += 1_000_000  # its rate has begun
    with site.state.changed:
        site.state.replan()
    PromiseWatch(site.state).look()
    assert "announcement.late" not in {event.name for event in site.state.events.since(0).events}
    site.answers()


def test_a_release_that_was_not_saved_is_neither_shown_nor_kept_and_its_counts_go_on(site):
    promised = announced(site)
    tell(site, 1_000)
    site.hangs()
    done = site.use_cases.forget("image")
    tell(site, 2_000)
    assert known(site) == promised.with_delivered(known(site).delivered)
    assert not isinstance(known(site), EndedAnnouncement)
    with pytest.raises(DatabaseFailed):
        done.saved.result(5)
    assert total_bytes(known(site).delivered) == 2_000
    tell(site, 3_000)
    assert total_bytes(known(site).delivered) == 3_000


def test_a_release_that_is_repeated_while_it_is_being_saved_is_answered_once_it_is(site):
    announced(site)
    site.hangs()
    site.database._save_within_s = 30
    both = [site.use_cases.forget("image"), site.use_cases.forget("image")]
    assert [one.saved.done() for one in both] == [False, False]
    site.answers()
    for one in both:
        one.saved.result(5)
    assert both[0].value == both[1].value == known(site)


def test_a_release_that_is_repeated_and_not_saved_is_answered_to_nobody(site):
    announced(site)
    site.hangs()
    for one in [site.use_cases.forget("image"), site.use_cases.forget("image")]:
        with pytest.raises(DatabaseFailed):
            one.saved.result(5)
    assert not isinstance(known(site), EndedAnnouncement)


def test_a_release_that_went_through_unheard_has_ended_with_all_that_was_counted(site):
    announced(site)
    tell(site, 1_000)
    site.use_cases.tick()
    site.hangs_after = True
    fails(site, lambda: site.use_cases.forget("image"))
    tell(site, 2_000)
    goes_on(site)
    ended = known(site)
    assert isinstance(ended, EndedAnnouncement)
    assert (ended.state, total_bytes(ended.announcement.delivered)) == ("released", 2_000)
    (stored,) = site.database.ended(EndedQuery())
    assert stored == ended
    assert site.use_cases.announce(replace(KEYED, announcement_id="made-up")).value == ended


def test_the_name_of_one_that_has_ended_can_be_announced_again_after_that_was_not_saved(site):
    announced(site)
    tell(site, 1_000)
    site.use_cases.forget("image").saved.result(5)
    before = known(site)
    fails(site, lambda: site.use_cases.announce(replace(KEYED, key="night-2")))
    assert known(site) == before
    tell(site, 1_500)  # it is still counted for the one that has ended
    assert total_bytes(known(site).announcement.delivered) == 1_500


def test_one_whose_release_and_whose_next_of_its_name_were_not_saved_is_counted_as_if_they_had_not_been(site):
    first = announced(site)
    tell(site, 1_000)
    site.hangs()
    site.use_cases.forget("image")
    fails(site, lambda: site.use_cases.announce(replace(KEYED, key="night-2")))
    tell(site, 1_500)
    (count,) = known(site).delivered
    assert known(site).sequence == first.sequence
    assert (count.payload_bytes, count.is_last, count.is_least) == (1_500, False, False)


def test_what_was_counted_before_the_next_of_its_name_that_was_not_saved_stays(site):
    announced(site)
    site.use_cases.forget("image").saved.result(5)
    site.hangs()
    tell(site, 1_000)
    fails(site, lambda: site.use_cases.announce(replace(KEYED, key="night-2")))
    (count,) = known(site).announcement.delivered
    assert (count.payload_bytes, count.is_last, count.is_least) == (1_000, False, False)


def test_a_last_count_stays_though_the_next_of_its_name_was_not_saved(site):
    announced(site)
    tell(site, 1_000)
    site.use_cases.forget("image").saved.result(5)
    site.hangs()
    tell(site, 1_500, is_last=True)
    fails(site, lambda: site.use_cases.announce(replace(KEYED, key="night-2")))
    (count,) = known(site).announcement.delivered
    assert (count.payload_bytes, count.is_last, count.is_least) == (1_500, True, False)
    with site.state.changed:
        ended = site.state.wished.ledger.ended
        assert ended.unsaved.of_clock().keys() == ended.lately.keys(), "it is saved when that can be"


def test_what_was_counted_and_what_has_lapsed_while_the_database_hung_is_saved_later(site):
    announced(site)
    other = announced(site, replace(KEYED, announcement_id="other", key="night-2", size_bytes=10**12))
    tell(site, 1_000)
    fails(site, lambda: site.use_cases.forget("other"))
    tell(site, 500, since_ns=2)  # its agent was started again
    lapses_us = known(site).lapses_us
    assert lapses_us < other.lapses_us
    for later_us in (0, LAST_COUNT_US):
        site.clock.now_us = lapses_us + later_us
        site.use_cases.tick()
    assert (known(site).state, total_bytes(known(site).announcement.delivered)) == ("lapsed", 1_500)
    goes_on(site)
    ended = {one.announcement.announcement_id: one for one in site.database.ended(EndedQuery(limit=9))}
    assert (ended["image"].state, total_bytes(ended["image"].announcement.delivered)) == ("lapsed", 1_500)
    assert ended["image"].ended_us == lapses_us
    assert set(site.database.load().announcements) == {one.announcement_id for one in site.use_cases.announcements()}


def test_counts_in_memory_are_not_lost_when_the_ledger_is_read_anew(site):
    announced(site)
    tell(site, 1_000)
    fails(site, lambda: site.use_cases.announce(replace(KEYED, announcement_id="next", key="")))
    tell(site, 500, since_ns=2)
    tell(site, 700, since_ns=3)
    goes_on(site)
    assert total_bytes(known(site).delivered) == 2_200
    tell(site, 800, since_ns=3)
    assert total_bytes(known(site).delivered) == 2_300


def test_who_reads_what_has_ended_is_told_in_time_that_the_database_hangs(site, monkeypatch):
    monkeypatch.setattr("controller.database.reader.READ_WITHIN_S", 0.2)
    announced(site)
    hanging = threading.Event()
    found = site.database._session.ask

    def slow(query):
        hanging.wait(30)
        return found(query)

    site.database._session.ask = slow
    for _ in range(2):
        with pytest.raises(DatabaseFailed, match="has not answered"):
            known(site, "other")
    assert sum(thread.name == "database reader" for thread in threading.enumerate()) == 1
    hanging.set()
    eventually(lambda: not site.database._reader.late, within_s=5, what="the database has answered")
    monkeypatch.setattr("controller.database.reader.READ_WITHIN_S", 30.0)
    assert site.database.ended(EndedQuery()) == ()


def test_a_list_goes_on_without_the_database_and_says_what_it_lacks(site):
    announced(site)
    announced(site, replace(KEYED, announcement_id="other", key="night-2"))
    site.use_cases.forget("other").saved.result(5)

    def gone(_):
        raise OSError("no route to host")

    site.database._session.ask = gone
    found, lacks = Announced(site.state, site.database).page(0, 10, ())
    assert [getattr(one, "announcement", one).announcement_id for one in found] == ["image", "other"]
    assert lacks == "no route to host"


def test_a_list_of_what_cannot_have_ended_lacks_nothing_without_the_database(site):
    announced(site)

    def gone(_):
        raise OSError("no route to host")

    site.database._session.ask = gone
    page = Announced(site.state, site.database).page
    in_plan = [AnnouncementState.PROMISED, AnnouncementState.UNDER_WAY, AnnouncementState.LATE]
    found, lacks = page(0, 10, in_plan)
    assert ([one.announcement_id for one in found], lacks) == (["image"], "")
    assert page(0, 10, [*in_plan, AnnouncementState.LAPSED]) == (found, "no route to host")


def test_a_read_that_fails_makes_the_controller_connect_again(site):
    announced(site)
    ask = site.database._session.ask
    opened = []

    def gone(_):
        raise OSError("server closed the connection unexpectedly")

    site.database._session.ask = gone
    with pytest.raises(DatabaseFailed):
        known(site, "other")
    site.use_cases.tick()
    assert site.value.reported.database_error == "server closed the connection unexpectedly"
    assert site.use_cases.saves.unsaved_us > 0
    connect = site.database._session.open
    site.database._session.open = lambda: opened.append(connect())
    site.database._session.ask = ask
    recovered(site)
    assert opened
    assert site.database.ended(EndedQuery()) == ()
