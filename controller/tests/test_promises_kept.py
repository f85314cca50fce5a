"""How many promises were kept, and how many are not now: counted as it becomes known, for who asks for metrics."""

import pytest

from controller.plan.announcement_states import PromiseOutcome
from controller.plan.deliveries import LAST_COUNT_US
from controller.plan.maintenance import Maintenance
from controller.tests.fakes import START_US, image, ready_site
from controller.tests.test_delivered import S_US, announced, entry, passed, read, tell
from controller.tests.test_following import HOSTS, NAMES, Played
from controller.tests.test_promise_watch import HOUR_US, absent, image_of, reserved, site_of
from mininet_tests.testing.networks import chile_illinois


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


def outcomes(site):
    """How many announcements were counted, by how their promises were kept."""
    return {outcome: count for outcome, count in read(site).outcomes().items() if count}


def last_counts_come(site):
    """So much time passes that no last count can come any more."""
    passed(site, LAST_COUNT_US)
    for _ in range(2):  # what has come last is saved
        site.use_cases.tick()


def released(site, delivered, **more):
    """The image is released, and then its sender tells its last count."""
    site.use_cases.forget("image").saved.result()
    tell(site, "base20", ended=(entry("image/base20", delivered, **more),))
    last_counts_come(site)


@pytest.mark.parametrize(
    ("before_us", "lacks_bytes", "outcome"),
    [
        (S_US, 0, PromiseOutcome.IN_TIME),
        (0, 0, PromiseOutcome.IN_TIME),
        (-1, 0, PromiseOutcome.LATE),
        (S_US, 1, PromiseOutcome.RELEASED),
        (-S_US, 1, PromiseOutcome.LATE),
    ],
    ids=["arrived before it", "at it", "just after it", "released before it", "released after it"],
)
def test_what_was_released_is_counted_by_what_had_arrived_by_the_promised_moment(site, before_us, lacks_bytes, outcome):
    known = announced(site)
    site.clock.now_us = known.promised_us - before_us
    released(site, known.size_bytes - lacks_bytes, delivered_ago_ms=0)
    assert outcomes(site) == {outcome: 1}


def test_what_arrived_in_time_and_is_told_after_its_release_is_counted_once_as_in_time(site):
    known = announced(site)
    site.clock.now_us = known.promised_us
    site.use_cases.forget("image").saved.result()
    passed(site, S_US)
    site.use_cases.tick()
    assert outcomes(site) == {}  # its last count may still say that all has arrived
    tell(site, "base20", ended=(entry("image/base20", known.size_bytes, delivered_ago_ms=1_000),))
    for _ in range(2):
        last_counts_come(site)
    assert outcomes(site) == {PromiseOutcome.IN_TIME: 1}


@pytest.mark.parametrize(("lacks_bytes", "outcome"), [(1, PromiseOutcome.LAPSED), (0, PromiseOutcome.IN_TIME)])
def test_what_nobody_released_has_lapsed_unless_all_of_it_had_arrived(site, lacks_bytes, outcome):
    known = announced(site)
    counted = entry("image/base20", known.size_bytes - lacks_bytes)
    tell(site, "base20", counted)
    site.clock.now_us = known.lapses_us
    site.use_cases.tick()
    tell(site, "base20", ended=(counted,))
    last_counts_come(site)
    assert outcomes(site) == {outcome: 1}


def test_of_what_was_not_all_counted_nobody_knows_how_its_promise_was_kept(site):
    announced(site)
    released(site, 5_000, is_least=True)
    announced(site)
    site.use_cases.forget("image").saved.result()  # and its host never tells
    last_counts_come(site)
    assert outcomes(site) == {PromiseOutcome.UNCOUNTED: 2}


def test_what_was_counted_stays_so_when_the_database_is_read_anew(site):
    released(site, announced(site).size_bytes)
    site.use_cases.saves.read_anew()
    assert outcomes(site) == {PromiseOutcome.IN_TIME: 1}


def test_promises_are_counted_by_who_leads_and_not_again_by_who_stands_by(tmp_path):
    played = Played(tmp_path / "pair.db", 0)
    site, follows = played.site, played.follows
    for name in NAMES[:3]:
        site.use_cases.announce(image(name, size_bytes=10**6, senders=HOSTS[:1])).saved.result(30)
        site.use_cases.forget(name).saved.result(30)
        follows.saves.follow()
        last_counts_come(site)
    with site.state.changed, follows.state.changed:
        led, stood_by = (one.state.wished.ledger.ended for one in (site, follows))
        assert (led.outcomes.total(), stood_by.outcomes.total()) == (3, 0)
        assert (len(led.lately), len(stood_by.lately)) == (0, 1)
    played.close()


def unkept(site):
    """How many announcements are said to be late now, and how many reservations to have no room."""
    return site.reports.unkept().late, site.reports.unkept().unkeepable


@pytest.mark.parametrize("is_over", [False, True], ids=["will be late", "is late"])
def test_what_is_said_to_be_late_counts_as_that_until_it_has_ended(is_over):
    site = site_of(chile_illinois())
    site.announce(image())
    site.converge()
    site.keeper.step()
    assert unkept(site) == (0, 0)
    if is_over:
        site.clock.now_us = image_of(site).promised_us + 3 * S_US
        site.keeper.step()
    else:
        absent(site, "base20")
    assert unkept(site) == (1, 0)
    site.use_cases.forget("image").saved.result(5)
    site.keeper.step()
    assert unkept(site) == (0, 0)


def test_what_has_no_room_counts_as_unkeepable_until_it_has():
    site = site_of(chile_illinois())
    reserved(site, "hit", START_US + 2 * HOUR_US, START_US + 4 * HOUR_US)
    one = Maintenance("work", "chile-illinois", START_US + 2 * HOUR_US, START_US + 3 * HOUR_US)
    site.use_cases.maintaining.plan(lambda _: one, only_look=False, force=True).saved.result()
    site.keeper.step()
    assert unkept(site) == (0, 1)
    site.use_cases.release("hit").saved.result()
    site.keeper.step()
    assert unkept(site) == (0, 0)
