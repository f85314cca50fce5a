"""What has ended just before a controller's start: its last counts come, and are not those of the next of its name."""

import pytest

from controller.database import EndedQuery
from controller.errors import NotKnown
from controller.plan.announcement_states import PromiseOutcome
from controller.plan.deliveries import LAST_COUNT_US, total_bytes
from controller.tests.fakes import FakeSite, ready_site
from controller.tests.test_delivered import S_US, announced, entry, passed, read, tell


def released(site, *, delivered):
    """Let an image end, of which its host has told so much."""
    known = announced(site)
    site.converge()
    tell(site, "base20", entry("image/base20", delivered))
    site.use_cases.tick()
    site.use_cases.forget("image").saved.result()
    return known


def after_a_start(site):
    """The site, whose controller was started again."""
    site.database.close()
    again = FakeSite(database=site.database._url, clock=site.clock)
    again.attach_all()
    return again


@pytest.fixture
def before(tmp_path):
    """A site whose plan is in force, and whose database outlives its controller."""
    return ready_site(database=f"sqlite:///{tmp_path}/headway.db")


def test_the_count_of_one_that_was_released_before_a_start_is_not_the_next_ones_of_its_name(before):
    released(before, delivered=2_000)
    site = after_a_start(before)
    passed(site, S_US)
    announced(site)
    tell(site, "base20", entry("image/base20", 2_000))  # no plan has taken the entry away
    assert total_bytes(read(site).one("image").delivered) == 0
    tell(site, "base20", entry("image/base20", 2_007))
    assert total_bytes(read(site).one("image").delivered) == 7
    site.database.close()


def test_the_last_count_of_one_that_was_released_before_a_start_belongs_to_it(before):
    known = released(before, delivered=5)
    site = after_a_start(before)
    passed(site, S_US)
    tell(site, "base20", ended=(entry("image/base20", known.size_bytes),))
    ended = read(site).one("image")
    assert (ended.state, [one.is_last for one in ended.announcement.delivered]) == ("arrived", [True])
    site.use_cases.tick().result()
    assert site.database.ended(EndedQuery(announcement_id="image")) == (ended,)
    passed(site, LAST_COUNT_US)
    site.use_cases.tick().result()
    assert read(site).outcomes() == {PromiseOutcome.IN_TIME: 1}
    site.database.close()


def test_a_release_that_is_repeated_after_a_start_is_answered_as_long_as_without_one(before):
    released(before, delivered=5)
    site = after_a_start(before)
    (kept,) = site.database.ended(EndedQuery(announcement_id="image"))
    assert site.use_cases.forget("image").value == kept
    passed(site, LAST_COUNT_US)
    site.use_cases.tick()
    with pytest.raises(NotKnown):
        site.use_cases.forget("image")
    site.database.close()


def test_what_ended_so_long_before_a_start_that_no_last_count_comes_is_not_in_memory(before):
    released(before, delivered=5)
    passed(before, LAST_COUNT_US)
    site = after_a_start(before)
    assert site.value.wished.ledger.ended.lately == {}
    assert read(site).outcomes() == {}
    site.database.close()
