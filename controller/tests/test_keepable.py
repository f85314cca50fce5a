"""That a reservation cannot be kept is said for as long as that is so, and taken back once it is not."""

import pytest

from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.maintenance import Maintenance
from controller.tests.fakes import START_US
from controller.tests.test_promise_watch import site_of
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass

S = 1_000_000
HOUR_US = 3600 * S
BEGINS_US = START_US + HOUR_US
CIRCUIT_AT_LS1 = (1, 9)
WORK = Maintenance("work", "chile-illinois", BEGINS_US + HOUR_US, BEGINS_US + 2 * HOUR_US)


@pytest.fixture
def site():
    """A site that has found its switches and agents."""
    return site_of(chile_illinois())


def hold(site):
    """Hold what goes on until the work is over."""
    asked = Request("base20", "arch", FlowClass.URGENT, 600_000_000, BEGINS_US, BEGINS_US + 3 * HOUR_US)
    site.use_cases.hold(lambda _: asked, lambda now_us: Created("hit", now_us)).saved.result()


def works(site):
    """Plan the work."""
    site.use_cases.maintaining.plan(lambda _: WORK, only_look=False, force=True).saved.result()
    site.keeper.step()


def called_off(site):
    """Take the work back."""
    site.use_cases.maintaining.cancel("work").saved.result()
    looked(site)


def looked(site):
    """Let the site come to rest, and the watch look."""
    site.keeper.step()
    site.converge()
    site.keeper.step()


def told(site):
    """What was told of whether it can be kept."""
    names = [event.name for event in site.state.events.since(0).events]
    return [name.removeprefix("reservation.") for name in names if name.endswith("keepable")]


def reason(site):
    """Why it is where it is."""
    return site.reservation("hit").reason


def test_it_says_so_after_its_start_too_and_is_told_to_have_room_when_the_work_is_called_off(site):
    hold(site)
    site.use_cases.commit("hit").saved.result()
    works(site)
    said = reason(site)
    assert "600 Mbit/s promised" in said
    site.clock.now_us = BEGINS_US + S
    looked(site)
    assert (site.reservation("hit").state, reason(site)) == (ReservationState.ACTIVE, said)
    called_off(site)
    looked(site)
    assert (told(site), reason(site)) == (["unkeepable", "keepable"], "")


def test_a_hold_says_so_when_it_is_committed_too(site):
    hold(site)
    works(site)
    said = reason(site)
    site.use_cases.commit("hit").saved.result()
    looked(site)
    assert (site.reservation("hit").state, reason(site)) == (ReservationState.COMMITTED, said)
    version = site.reservation("hit").version
    looked(site)
    assert site.reservation("hit").version == version


def test_why_it_is_not_carried_meanwhile_is_not_overwritten_nor_taken_for_that(site):
    hold(site)
    site.use_cases.commit("hit").saved.result()
    works(site)
    site.clock.now_us = BEGINS_US + S
    looked(site)
    site.port_said(*CIRCUIT_AT_LS1, is_live=False)
    looked(site)
    assert (site.reservation("hit").state, reason(site)) == (
        ReservationState.PROVISIONING,
        "chile-illinois: the line is down",
    )
    called_off(site)
    assert reason(site) == "chile-illinois: the line is down"
    assert told(site) == ["unkeepable", "keepable"]


@pytest.mark.parametrize("ending", ["release", "lapse"])
def test_what_has_ended_is_not_told_to_have_room(site, ending):
    hold(site)
    works(site)
    if ending == "release":
        site.use_cases.release("hit").saved.result()
    else:
        site.clock.now_us += 61 * S
    looked(site)
    called_off(site)
    assert told(site) == ["unkeepable"]
