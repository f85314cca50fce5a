"""What is announced on a reservation is promised nothing for the time in which that is interrupted."""

import pytest

from controller.plan.admission import Refused
from controller.plan.maintenance import Maintenance
from controller.tests.fakes import START_US, FakeSite, image
from controller.tests.test_interrupted import BEGINS_US, ENDS_US, SHRINKS_US, S, goes_on_until, reserve, works_on
from mininet_tests.testing.networks import chile_illinois, chile_illinois_2

SITES = ("la-serena", "champaign")


@pytest.fixture
def site():
    """A site of one circuit, with a reservation of 200 Mbit/s between its ends."""
    site = FakeSite(chile_illinois(), standing=())
    site.attach_all()
    site.wire()
    reserve(site, ends=SITES)
    goes_on_until(site, START_US + S)
    return site


def announced(site, name="image", size_bytes=250_000_000, **more):
    """Announce what takes ten seconds of the reservation; return its promise."""
    promise = site.announce(image(name, size_bytes=size_bytes, senders=("base20",), **more))
    assert not isinstance(promise, Refused), promise
    return promise


def drawn(site):
    """The promise that the ledger has, and what it draws on."""
    with site.state.changed:
        known = site.state.wished.ledger.announcements["image"]
        return known.promised_us, known.rates, known.pool


def closes_the_rest(site):
    """Reserve all else, so that what is announced draws on the first."""
    reserve(site, ends=SITES, name="rest", rate_bps=700_000_000)


@pytest.mark.parametrize("asked_us", [SHRINKS_US - 2 * S, SHRINKS_US + S, BEGINS_US])
def test_it_is_promised_for_the_time_before_and_after(site, asked_us):
    closes_the_rest(site)
    works_on(site)
    goes_on_until(site, asked_us)
    assert ENDS_US < announced(site).promised_us < ENDS_US + 15 * S


def test_it_is_promised_for_at_once_when_the_work_is_taken_back(site):
    works_on(site)
    site.use_cases.maintaining.cancel(f"chile-illinois-{BEGINS_US}").saved.result()
    goes_on_until(site, BEGINS_US)
    assert announced(site).promised_us < BEGINS_US + 15 * S


def test_only_to_look_what_work_would_break_changes_no_promise(site):
    work = Maintenance("m", "chile-illinois", BEGINS_US, ENDS_US)
    looked = site.use_cases.maintaining.plan(lambda _: work, only_look=True, force=False)
    assert [one.reservation_id for one in looked.value.breaks] == ["r"]
    goes_on_until(site, BEGINS_US)
    assert announced(site).promised_us < BEGINS_US + 15 * S


def test_a_reservation_with_a_path_left_has_all_of_its_rate_for_what_draws_on_it():
    site = FakeSite(chile_illinois_2(), standing=())
    site.attach_all()
    site.wire()
    reserve(site, ends=SITES, backup=True)
    works_on(site, "north")
    goes_on_until(site, BEGINS_US)
    assert announced(site).promised_us < BEGINS_US + 15 * S


def test_a_promise_of_before_the_work_was_planned_stays_after_a_start(tmp_path):
    database = f"sqlite:///{tmp_path}/headway.db"
    before = FakeSite(chile_illinois(), standing=(), database=database)
    before.attach_all()
    before.wire()
    reserve(before, ends=SITES)
    closes_the_rest(before)
    goes_on_until(before, SHRINKS_US - 2 * S)
    announced(before)
    promise = drawn(before)
    assert promise[2] in {"r", "rest"}
    works_on(before)
    before.database.close()
    site = FakeSite(chile_illinois(), standing=(), database=database)
    site.clock.now_us = SHRINKS_US - S
    site.use_cases.tick()
    assert drawn(site) == promise
    site.database.close()
