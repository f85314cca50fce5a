"""A circuit that is worked on while another one is beside it: its flows go by that one, and come back afterwards."""

import pytest

from controller.plan.admission import Refused, Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.maintenance import Maintenance
from controller.plan.reservations import Constraints
from controller.plan.tests.factories import flow
from controller.state.carried import reservation_obstacles
from controller.state.moment import Moment
from controller.tests.fakes import START_US, FakeSite, image
from mininet_tests.testing.networks import chile_illinois_2
from topology.protocol import FlowClass

S = 1_000_000
TWO = chile_illinois_2()
STANDING = (flow(FlowClass.PREDICTABLE, "base22", network=TWO), flow(FlowClass.BACKGROUND, "base23", network=TWO))
BEGINS_US, ENDS_US = START_US + 3600 * S, START_US + 3 * 3600 * S
SHRINKS_US = BEGINS_US - 5 * S
NORTH_AT_LS1 = (1, 8)


@pytest.fixture
def site():
    """A site with two circuits whose plan is in force."""
    site = FakeSite(TWO, STANDING, return_after_us=S)
    site.attach_all()
    site.converge()
    return site


def works_on(site, circuit="north", begins_us=BEGINS_US, ends_us=ENDS_US):
    """Plan work on a circuit, whatever it breaks; return what it breaks."""
    one = Maintenance(f"{circuit}-{begins_us}", circuit, begins_us, ends_us)
    planned = site.use_cases.maintaining.plan(lambda _: one, only_look=False, force=True)
    planned.saved.result()
    return [each.reservation_id for each in planned.value.breaks]


def goes_on_until(site, at_us):
    """Let the time come, and the site be at rest."""
    site.clock.now_us = at_us
    for _ in range(2):
        site.converge()


def ways(site):
    """The lines that the desired plan's flows take, by sender."""
    return {e.flow.host: e.flow.path[2] for e in site.reports.view().desired.entries}


def reserve(site, name="r", sender="base20", **constraints):
    """Reserve urgent bandwidth from now on, and let it be active."""
    asked = Request(
        sender, "arch", FlowClass.URGENT, 2 * 10**8, START_US + S, ENDS_US + 3600 * S, Constraints(**constraints)
    )
    site.use_cases.hold(lambda _: asked, lambda now_us: Created(name, now_us)).saved.result()
    site.use_cases.commit(name).saved.result()
    goes_on_until(site, START_US + S)
    assert state_of(site, name) is ReservationState.ACTIVE


def state_of(site, name):
    """How a reservation is."""
    return site.reservation(name).state


def test_flows_go_by_the_other_circuit_from_before_the_work_until_it_is_over(site):
    before = ways(site)
    works_on(site)
    seen = []
    for at_us in (SHRINKS_US - 1, SHRINKS_US + 1, BEGINS_US, ENDS_US - 1, ENDS_US):
        goes_on_until(site, at_us)
        seen.append(ways(site))
    south = dict.fromkeys(before, "south")
    assert set(before.values()) == {"north"}
    assert seen == [before, south, south, south, before]
    assert site.value.installed.meters == site.value.desired.plan


def test_no_host_is_told_to_stop_when_its_flow_goes_round_the_work_and_comes_back(site):
    works_on(site)
    goes_on_until(site, SHRINKS_US - 1)
    site.hosts.sent.clear()
    for at_us in (SHRINKS_US + 1, BEGINS_US, ENDS_US):
        goes_on_until(site, at_us)
    told = [told for host, told in site.hosts.sent if host == "base23"]
    assert len(told) >= 2
    assert all(one.entries for one in told)


def test_the_clock_acts_when_the_plan_shrinks_when_the_work_begins_and_when_it_ends(site):
    works_on(site)
    seen = []
    for at_us in (SHRINKS_US, BEGINS_US, ENDS_US):
        site.converge()
        with site.state.changed:
            seen.append(site.state.wished.ledger.due_us())
        site.clock.now_us = at_us + 1
    assert seen == [SHRINKS_US, BEGINS_US, ENDS_US]


@pytest.mark.parametrize("at_us", [SHRINKS_US + 1, BEGINS_US + 60 * S])
def test_what_is_announced_meanwhile_is_promised_by_the_other_circuit(site, at_us):
    works_on(site)
    goes_on_until(site, at_us)
    promise = site.announce(image(size_bytes=50_000_000, deadline_us=30 * S))
    assert not isinstance(promise, Refused), promise
    assert {f.path[2] for f in promise.flows} == {"south"}
    assert promise.promised_us < at_us + 30 * S


def test_what_is_announced_just_before_the_end_is_promised_by_the_circuit_that_does_it_sooner(site):
    reserve(site, exclude=("north",))
    works_on(site)
    goes_on_until(site, ENDS_US - S // 10)
    promise = site.announce(image(senders=("base21",)))
    assert {f.path[2] for f in promise.flows} == {"north"}
    assert ways(site)["base21"] == "south"
    goes_on_until(site, ENDS_US)
    assert ways(site)["base21"] == "north"


def test_what_is_announced_while_both_are_worked_on_is_promised_for_afterwards(site):
    works_on(site)
    works_on(site, "south")
    goes_on_until(site, BEGINS_US + S)
    promise = site.announce(image())
    assert not isinstance(promise, Refused), promise
    assert ENDS_US < promise.promised_us < ENDS_US + 60 * S


def test_a_line_that_is_cut_by_the_work_is_used_again_when_both_are_over(site):
    before = ways(site)
    works_on(site)
    goes_on_until(site, BEGINS_US + S)
    site.port_said(*NORTH_AT_LS1, is_live=False)
    goes_on_until(site, ENDS_US - 60 * S)
    site.port_said(*NORTH_AT_LS1, is_live=True)
    goes_on_until(site, ENDS_US - 30 * S)
    assert set(ways(site).values()) == {"south"}
    goes_on_until(site, ENDS_US)
    assert ways(site) == before


def test_a_plan_is_ready_for_the_death_of_the_circuit_that_is_left(site):
    works_on(site)
    goes_on_until(site, BEGINS_US)
    assert site.value.desired.prepared.keys() == {"south"}
    assert site.value.desired.prepared["south"].entries == ()


@pytest.mark.parametrize("circuit", ["north", "south"])
def test_work_on_either_circuit_of_a_reservation_with_a_backup_breaks_nothing(site, circuit):
    reserve(site, backup=True)
    assert works_on(site, circuit) == []
    for at_us in (SHRINKS_US + 1, BEGINS_US, ENDS_US - 1, ENDS_US):
        goes_on_until(site, at_us)
        assert state_of(site, "r") is ReservationState.ACTIVE
        with site.state.changed:
            moment = Moment(site.state.site, site.state.value, site.state.now())
            assert reservation_obstacles(moment, site.state.wished.ledger.reservations["r"]) == ()


def test_work_on_both_circuits_of_a_reservation_at_once_interrupts_it_until_one_is_over(site):
    reserve(site, backup=True)
    works_on(site, "south", ENDS_US - S, ENDS_US + S)
    assert works_on(site) == ["r"]
    goes_on_until(site, BEGINS_US)
    assert state_of(site, "r") is ReservationState.ACTIVE
    goes_on_until(site, ENDS_US - S)
    assert state_of(site, "r") is ReservationState.PROVISIONING
    goes_on_until(site, ENDS_US)
    assert state_of(site, "r") is ReservationState.ACTIVE


def test_work_breaks_a_reservation_that_has_no_other_path_and_not_one_with_a_backup_beside_it(site):
    reserve(site, exclude=("south",))
    reserve(site, "both", "base21", backup=True)
    assert works_on(site) == ["r"]
    goes_on_until(site, BEGINS_US)
    assert [state_of(site, name) for name in ("r", "both")] == [ReservationState.PROVISIONING, ReservationState.ACTIVE]


def test_a_circuit_that_dies_while_its_way_round_is_worked_on_is_not_well(site):
    site.wire()
    works_on(site, "south")
    goes_on_until(site, BEGINS_US)
    assert site.reports.troubles(frozenset({1, 2})) == ()
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    cut = ["north: the line is down, and there is no way round it"]
    assert [str(one) for one in site.reports.troubles(frozenset({1, 2}))] == cut
