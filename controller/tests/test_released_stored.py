"""A disk that still writes what was released is nobody else's until that is written: at once, and after a restart."""

import pytest

from controller.plan.keys import StorePlace
from controller.tests.fakes import Clock, FakeSite, image, ready_site
from controller.tests.test_following import StandsBy, leading
from controller.tests.test_known_stores import store, tells
from controller.tests.test_stored import MB, S, delivers

SIZE = 4_000 * MB  # stored four minutes after it is across
DISK = store(3, waits=False, rate_bps=100 * MB, room_bytes=5_000 * MB)
PLACE = StorePlace("arch", "data")


def announced(site, name="one", sender="base20"):
    answer = site.use_cases.announce(image(name, size_bytes=SIZE, senders=(sender,)))
    answer.saved.result(30)
    return answer.value


def across(site, name="one"):
    """An announcement that is across, and has just been told to be so."""
    promise = announced(site, name)
    site.converge()
    site.clock.now_us = promise.promised_us
    delivers(site, f"{name}/base20", SIZE)
    return promise


def released(site, name="one"):
    site.use_cases.forget(name).saved.result(30)


def booked_until_us(state):
    with state.changed:
        calendar = state.wished.ledger.calendar
        return calendar.booked_until_us(PLACE, state.now_us()) if calendar.has_resource(PLACE) else None


@pytest.fixture
def site():
    found = ready_site()
    tells(found, DISK)
    return found


def test_what_is_released_before_its_disk_has_written_it_stays_booked_until_then(site):
    first = across(site)
    released(site)
    assert booked_until_us(site.state) == first.stored_us
    second = announced(site, "two", "base21")
    assert second.drains[0].start_us >= first.stored_us
    released(site, "two")
    site.clock.now_us = first.stored_us + S
    site.use_cases.tick()
    with site.state.changed:
        assert len(site.state.wished.ledger.calendar) == 0, "what is written is not kept"


def test_what_never_came_frees_its_disk_at_once(site):
    promise = announced(site)
    site.converge()
    site.clock.now_us = promise.promised_us
    delivers(site, "one/base20", 0)
    released(site)
    assert booked_until_us(site.state) == site.clock.now_us


def test_what_is_counted_after_it_was_released_is_written_too(site):
    promise = announced(site)
    site.converge()
    site.clock.now_us = promise.promised_us
    delivers(site, "one/base20", SIZE // 2)
    released(site)
    half_us = booked_until_us(site.state)
    delivers(site, "one/base20", SIZE)
    assert half_us < booked_until_us(site.state) == promise.stored_us


def test_the_same_name_again_is_another_announcement_and_both_can_be_released(site):
    first = across(site)
    released(site)
    second = announced(site)
    assert second.drains[0].start_us >= first.stored_us
    released(site)
    assert booked_until_us(site.state) == first.stored_us


def at(url, clock):
    found = FakeSite(database=url, clock=clock)
    found.attach_all()
    found.converge()
    return found


def test_it_stays_booked_across_a_restart(tmp_path):
    url = f"sqlite:///{tmp_path}/headway.db"
    before = at(url, Clock())
    tells(before, DISK)
    first = across(before)
    released(before)
    before.database.close()
    after = at(url, before.clock)
    assert booked_until_us(after.state) == first.stored_us
    tells(after, DISK)
    second = announced(after, "two", "base21")
    assert second.drains[0].start_us >= first.stored_us
    after.database.close()
    after.clock.now_us = first.stored_us + S
    later = at(url, after.clock)
    with later.state.changed:
        names = later.state.wished.ledger.calendar._booked
        assert not [name for name in names if name.startswith("/")], "it is written"
    later.database.close()


def test_who_stands_by_has_it_booked_whether_it_reads_all_or_what_has_changed(tmp_path):
    path = tmp_path / "pair.db"
    leads = at(leading(path), Clock())
    tells(leads, DISK)
    follows = StandsBy(leads, path)
    first = across(leads)
    follows.saves.follow()
    released(leads)
    follows.saves.follow()
    reads_all = StandsBy(leads, path)
    assert [booked_until_us(one.state) for one in (follows, reads_all)] == [first.stored_us] * 2
    assert follows.books()["calendar"] == reads_all.books()["calendar"]
    for one in (follows.database, reads_all.database, leads.database):
        one.close()
