"""A reservation whose only path is worked on is not carried until the work is over, and goes on then."""

import pytest

from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.maintenance import Maintenance
from controller.plan.reservations import Constraints
from controller.plan.tests.factories import flow
from controller.promise_watch import PromiseWatch
from controller.state.carried import reservation_obstacles
from controller.state.moment import Moment
from controller.tests.fakes import START_US, FakeSite
from mininet_tests.testing.networks import chile_illinois, chile_illinois_2
from topology.protocol import FlowClass
from topology.units import shown_time

S = 1_000_000
HOUR_US = 3600 * S
BEGINS_US, ENDS_US = START_US + HOUR_US, START_US + 3 * HOUR_US
SHRINKS_US = BEGINS_US - 5 * S
RATE_BPS = 200_000_000
ACTIVE, FAILED, PROVISIONING = ReservationState.ACTIVE, ReservationState.FAILED, ReservationState.PROVISIONING
UNTIL = f"chile-illinois: it is to carry nothing until {shown_time(ENDS_US)}"


def site_of(network=None, **more):
    """A site whose plan is in force."""
    network = network or chile_illinois()
    site = FakeSite(network, (flow(FlowClass.BACKGROUND, "base23", network=network),), **more)
    site.attach_all()
    site.wire()
    return site


@pytest.fixture
def site():
    """A site with one circuit."""
    return site_of()


def reserve(
    site,
    start_us=START_US + S,
    end_us=ENDS_US + HOUR_US,
    ends=("base20", "arch"),
    name="r",
    rate_bps=RATE_BPS,
    **constraints,
):
    """Reserve urgent bandwidth."""
    asked = Request(*ends, FlowClass.URGENT, rate_bps, start_us, end_us, Constraints(**constraints))
    site.use_cases.hold(lambda _: asked, lambda now_us: Created(name, now_us)).saved.result()
    site.use_cases.commit(name).saved.result()


def works_on(site, circuit="chile-illinois", begins_us=BEGINS_US, ends_us=ENDS_US):
    """Plan work on a circuit; return what it breaks."""
    one = Maintenance(f"{circuit}-{begins_us}", circuit, begins_us, ends_us)
    planned = site.use_cases.maintaining.plan(lambda _: one, only_look=False, force=True)
    planned.saved.result()
    return planned.value.breaks


def goes_on_until(site, at_us):
    """Let the time come, and the site be at rest."""
    site.clock.now_us = at_us
    for _ in range(2):
        site.converge()


def state_of(site, name="r"):
    """How a reservation is."""
    return site.reservation(name).state


def told(site, name):
    """The fields of each event of a name."""
    return [dict(e.fields) for e in site.state.events.since(0).events if e.name == name]


def sent(site):
    """Who has a part in the plan in force."""
    return {entry.flow.host for entry in site.value.installed.meters.entries}


@pytest.mark.parametrize("ends", [("base20", "arch"), ("la-serena", "champaign")])
def test_what_lasts_longer_is_not_carried_until_the_work_is_over_and_is_carried_afterwards(site, ends):
    reserve(site, ends=ends)
    works_on(site)
    seen = []
    for at_us in (SHRINKS_US - 1, SHRINKS_US + 1, BEGINS_US, ENDS_US - 1, ENDS_US):
        goes_on_until(site, at_us)
        seen.append(state_of(site))
        if seen[-1] is PROVISIONING:
            assert site.reservation("r").reason == UNTIL
            assert "base20" not in sent(site)
    assert seen == [ACTIVE, PROVISIONING, PROVISIONING, PROVISIONING, ACTIVE]
    assert site.reservation("r").reason == ""
    assert ("base20" in sent(site)) == (ends[0] == "base20")
    goes_on_until(site, ENDS_US + HOUR_US)
    assert state_of(site) is ReservationState.EXPIRED


def test_what_ends_in_its_midst_fails_as_it_begins(site):
    reserve(site, end_us=ENDS_US)
    (broken,) = works_on(site)
    assert (broken.goes_on_us, broken.reason.split(":")[0]) == (None, "cannot be kept")
    goes_on_until(site, SHRINKS_US - 1)
    assert state_of(site) is ACTIVE
    goes_on_until(site, SHRINKS_US + 1)
    assert state_of(site) is FAILED


def test_what_begins_in_its_midst_is_carried_once_it_is_over(site):
    reserve(site, start_us=BEGINS_US + HOUR_US)
    works_on(site)
    goes_on_until(site, BEGINS_US + HOUR_US)
    assert (state_of(site), site.reservation("r").reason) == (PROVISIONING, UNTIL)
    goes_on_until(site, ENDS_US)
    assert state_of(site) is ACTIVE


def test_it_goes_on_when_the_last_of_two_that_share_some_time_is_over(site):
    reserve(site)
    works_on(site)
    works_on(site, begins_us=ENDS_US - S, ends_us=ENDS_US + S)
    goes_on_until(site, BEGINS_US)
    assert site.reservation("r").reason.endswith(shown_time(ENDS_US + S))
    goes_on_until(site, ENDS_US)
    assert state_of(site) is PROVISIONING
    goes_on_until(site, ENDS_US + S)
    assert state_of(site) is ACTIVE


def test_it_goes_on_at_once_when_the_work_is_taken_back(site):
    reserve(site)
    works_on(site)
    goes_on_until(site, BEGINS_US)
    assert state_of(site) is PROVISIONING
    site.use_cases.maintaining.cancel(f"chile-illinois-{BEGINS_US}").saved.result()
    goes_on_until(site, BEGINS_US + S)
    assert state_of(site) is ACTIVE


def test_it_is_not_said_to_be_carried_again_before_the_plan_with_it_is_in_force(site):
    reserve(site)
    works_on(site)
    goes_on_until(site, BEGINS_US)
    site.clock.now_us = ENDS_US
    for _ in range(2):
        site.use_cases.tick()
        assert state_of(site) is PROVISIONING
    assert site.reservation("r").reason == "the plan with it is not in force yet"
    site.converge()
    assert state_of(site) is ACTIVE


def test_it_goes_on_after_a_start_in_the_midst_of_the_work(tmp_path):
    database = f"sqlite:///{tmp_path}/headway.db"
    before = site_of(database=database)
    reserve(before)
    works_on(before)
    goes_on_until(before, BEGINS_US)
    before.database.close()
    site = site_of(database=database)
    goes_on_until(site, BEGINS_US + 60 * S)
    assert (state_of(site), site.reservation("r").reason) == (PROVISIONING, UNTIL)
    goes_on_until(site, ENDS_US)
    assert state_of(site) is ACTIVE
    site.database.close()


def test_what_is_led_by_another_circuit_meanwhile_is_carried_all_the_time():
    site = site_of(chile_illinois_2())
    reserve(site)
    works_on(site, "north")
    for at_us in (SHRINKS_US - 1, SHRINKS_US + 1, BEGINS_US, ENDS_US):
        goes_on_until(site, at_us)
        assert state_of(site) is ACTIVE
        with site.state.changed:
            moment = Moment(site.state.site, site.state.value, site.state.now())
            assert reservation_obstacles(moment, site.state.wished.ledger.reservations["r"]) == ()
    assert told(site, "reservation.lost") == []


def test_others_have_what_there_is_of_them_while_one_waits_and_are_not_failed_for_it(site):
    reserve(site, name="stays")
    reserve(site, end_us=ENDS_US, name="over")
    works_on(site)
    goes_on_until(site, BEGINS_US)
    assert [state_of(site, name) for name in ("stays", "over")] == [PROVISIONING, FAILED]


def test_it_is_said_beforehand_when_it_begins_and_when_it_goes_on(site):
    reserve(site)
    goes_on_until(site, START_US + S)
    (broken,) = works_on(site)
    assert broken.goes_on_us == ENDS_US
    assert f"from {shown_time(SHRINKS_US)} until {shown_time(ENDS_US)}" in broken.why
    PromiseWatch(site.state).look()
    (event,) = told(site, "reservation.unkeepable")
    assert (event["why"], event["until"]) == (broken.why, shown_time(ENDS_US))
    assert site.reservation("r").reason == broken.reason == f"is interrupted: {broken.why}; instead: {broken.instead}"
    goes_on_until(site, BEGINS_US)
    (lost,) = told(site, "reservation.lost")
    assert (lost["why"], lost["until"]) == (UNTIL, shown_time(ENDS_US))
    goes_on_until(site, ENDS_US)
    assert len(told(site, "reservation.active")) == 2


def test_other_work_that_interrupts_it_once_more_or_ends_it_is_said_too(site):
    reserve(site)
    watch = PromiseWatch(site.state)
    works_on(site)
    watch.look()
    (again,) = works_on(site, begins_us=ENDS_US + 600 * S, ends_us=ENDS_US + 1200 * S)
    assert (again.until_us, again.why.count("until")) == ((ENDS_US, ENDS_US + 1200 * S), 2)
    watch.look()
    (for_good,) = works_on(site, begins_us=ENDS_US + 1800 * S, ends_us=ENDS_US + HOUR_US)
    assert for_good.goes_on_us is None
    watch.look()
    until = [event["until"] for event in told(site, "reservation.unkeepable")]
    assert until == [shown_time(ENDS_US), shown_time(ENDS_US + 1200 * S), ""]
