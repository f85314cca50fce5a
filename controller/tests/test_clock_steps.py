"""Somebody sets the controller's wall clock: nothing ends, nothing is given away, nothing is kept, and it is said."""

import pytest

from controller.checks import AnnouncementRequest
from controller.database import Database
from controller.database.clock import SavedTime
from controller.northbound.rest.render import health
from controller.plan.admission import Refused, Request
from controller.plan.clock import CONFIRMED_US, Instant
from controller.plan.ledger import HOLD_US, Created
from controller.plan.lifecycle import ReservationState
from controller.plan.lines import RETURN_AFTER_US, LineState
from controller.reserved import Reserved
from controller.state.clock import SiteClock, elapsed_us
from controller.tests.fakes import LEASE_MS, START_US, FakeSite, SetClock, image, value_of, watch_of
from controller.use_cases import UseCases
from controller.work.clock_watch import SAVED_EVERY_US, ClockWatch, machine_clock
from controller.work.timekeeper import Timekeeper
from mininet_tests.testing.networks import chile_illinois_2
from topology.protocol import FlowClass

S, HOUR_US = 1_000_000, 3_600_000_000
LEASE_US = LEASE_MS * 1000
BOOKABLE = 938_800_000  # of 1 Gbit/s, after the guarantees of 5, 0.02, 1 and 0.1%
NORTH_PORT = (1, 8)


class SteppedSite(FakeSite):
    """A site by the clocks of a machine; it looks at them each second."""

    def __init__(self, **more):
        super().__init__(clock=SetClock(), **more)
        self.timekeeper = Timekeeper(self.state, self.use_cases, watch_of(self))
        self.attach_all()
        self.passes(0)

    def passes(self, us):
        """Time passes."""
        for part_us in (*([S] * (us // S)), us % S):
            self.clock.passes(part_us)
            self.timekeeper.step()
            self.convergence.step()

    def is_set(self, by_us):
        """Somebody sets the wall clock."""
        self.clock.wall_us += by_us
        self.passes(S)

    def held(self, name, rate_bps=BOOKABLE, lasts_us=HOUR_US // 2):
        """Reserve from now on."""
        now_us = self.clock()
        asked = Request("la-serena", "champaign", FlowClass.URGENT, rate_bps, now_us, now_us + lasts_us)
        return self.use_cases.hold(lambda _: asked, lambda at_us: Created(name, at_us)).value

    def told(self, name):
        """The fields of all events of a name."""
        return [dict(e.fields) for e in self.state.events.since(0).events if e.name == name]

    def hosts_bps(self):
        """What hosts may be sending out of Chile, all together."""
        (out,) = (layers for hop, layers in self.reports.view().layers.items() if str(hop) == "ls1->ch1")
        return sum(out.hosts_bps.values())


@pytest.fixture
def site():
    """One whose plan is in force."""
    return SteppedSite()


@pytest.mark.parametrize("step_us", [HOUR_US, -HOUR_US])
def test_neither_a_hold_nor_a_reservation_that_runs_ends_nor_is_it_sold_again(site, step_us):
    site.held("runs", BOOKABLE // 2)
    site.use_cases.commit("runs")
    site.held("hold", BOOKABLE // 2)
    site.passes(S)
    for by_us in (step_us, -step_us):
        site.is_set(by_us)
        assert site.use_cases.reservation("runs").state is ReservationState.ACTIVE
        assert site.use_cases.reservation("hold").state is ReservationState.HELD
        assert isinstance(site.held("again", 10_000_000), Refused)
    site.passes(HOLD_US)
    assert site.reservation("hold").state is ReservationState.EXPIRED
    site.passes(HOUR_US // 2 - HOLD_US)
    assert site.reservation("runs").state is ReservationState.EXPIRED


def test_a_dead_agents_share_is_not_given_away_before_its_kernel_has_given_it_up(site):
    """190.8 Mbit/s of sockets on a circuit of 98.4."""
    before_bps = site.hosts_bps()
    site.reports.host_down("base23")
    site.clock.wall_us += HOUR_US
    site.timekeeper.step()
    assert site.hosts_bps() == before_bps
    site.clock.passes(LEASE_US)
    assert site.hosts_bps() < before_bps


def test_a_step_back_keeps_no_lease_for_an_hour(site):
    """88.4 Mbit/s stayed booked for a deleted image."""
    site.announce(image())
    site.converge()
    site.demand("base20", "base21")
    site.converge()
    for host in ("base20", "base21"):
        site.reports.host_down(host)
    site.use_cases.forget("image")
    site.is_set(-HOUR_US)
    site.passes(LEASE_US)
    hosts = site.value.reported.hosts
    assert not hosts["base20"].leases.acting(site.state.elapsed_us())
    assert site.value.installed.is_at_rest(site.value.desired.plan.epoch)
    assert health(site.reports.view(), (), 0, None)["ok"]


def test_a_line_that_has_come_back_proves_itself_by_time_that_has_passed():
    site = SteppedSite(network=chile_illinois_2())
    for is_live in (False, True):
        site.port_said(*NORTH_PORT, is_live=is_live)
    site.is_set(HOUR_US)
    assert site.reports.view().lines["north"] is LineState.RETURNING
    site.passes(RETURN_AFTER_US)
    assert site.reports.view().lines["north"] is LineState.UP


def test_a_step_is_said_once_and_shown_until_the_clock_is_right_again(site):
    site.is_set(HOUR_US)
    site.passes(5 * S)
    (said,) = site.told("clock.stepped")
    assert (said["by_s"], said["calendar_off_s"]) == (3600.0, 3600.0)
    shown = health(site.reports.view(), (), 0, None)
    assert shown["ok"]
    assert shown["calendar_off_us"] == HOUR_US
    site.is_set(-HOUR_US)
    assert health(site.reports.view(), (), 0, None)["calendar_off_us"] == 0
    assert len(site.told("clock.right")) == 1


def test_a_clock_that_was_wrong_at_boot_is_right_ten_minutes_after_it_was_set_if_nothing_is_under_way(site):
    site.is_set(HOUR_US)
    site.passes(CONFIRMED_US + S)
    assert site.clock() == site.clock.wall_us
    assert site.told("clock.right")


def test_a_controllers_machine_that_slept_acts_on_what_became_due_meanwhile(site):
    site.held("brief", lasts_us=300 * S)
    site.use_cases.commit("brief")
    site.reports.host_down("base23")
    site.clock.passes(600 * S)
    site.passes(S)
    assert site.reservation("brief").state is ReservationState.EXPIRED
    assert not site.value.reported.hosts["base23"].leases.acting(site.state.elapsed_us())
    assert not site.told("clock.stepped")


def test_a_promise_of_bytes_is_kept_through_a_step(site):
    promised = site.announce(AnnouncementRequest("image", FlowClass.URGENT, 10**8, ("base20",), "arch"))
    site.is_set(HOUR_US)
    assert site.value.wished.ledger.announcements["image"] == promised
    site.passes(promised.lapses_us - START_US)
    assert not site.value.wished.ledger.announcements


def test_the_time_is_written_down_at_once_and_then_each_minute(tmp_path):
    site = SteppedSite(database=f"sqlite:///{tmp_path}/headway.db")

    def written():
        site.database.load()
        return site.database.time()

    first = written()
    assert first.instant == (START_US, site.clock.elapsed_us)
    site.passes(SAVED_EVERY_US - S)
    assert written() == first
    site.passes(S)
    assert written().calendar_us == START_US + SAVED_EVERY_US
    assert written().boot_id == first.boot_id


@pytest.mark.parametrize("ahead_us", [2 * HOUR_US, 0], ids=["its wall clock was ahead", "it was right"])
@pytest.mark.parametrize("paused_us", [0, HOUR_US // 6], ids=["", "its elapsed time stood still"])
@pytest.mark.parametrize("written_us", [-S, HOUR_US], ids=["the wall clock is later", "what is written is later"])
def test_who_begins_to_lead_goes_by_the_wall_clock_of_then_and_not_below_what_is_written(
    ahead_us, paused_us, written_us
):
    clocks = SetClock()
    clocks.wall_us += ahead_us
    clock = SiteClock(lambda: clocks.elapsed_us, lambda: clocks.wall_us)  # as of who starts to stand by
    clocks.passes(24 * HOUR_US)
    clocks.wall_us += paused_us - ahead_us  # as NTP sets it
    clock.begin_anew(Instant(clocks.wall_us + written_us, 0), is_same_boot=False)
    assert clock.now() == (clocks.wall_us + max(0, written_us), clocks.elapsed_us)


def test_a_controller_that_starts_while_the_clock_is_an_hour_off_ends_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/headway.db"
    site = SteppedSite(database=url)
    site.held("runs")
    site.use_cases.commit("runs")
    site.passes(SAVED_EVERY_US)
    saved = site.database.time()
    site.database.close()
    ours = SavedTime(saved.boot_id, saved.calendar_us, elapsed_us())  # this machine's clock is far from START_US
    for trusts_wall, state in ((False, ReservationState.ACTIVE), (True, ReservationState.EXPIRED)):
        clock = machine_clock(ours, trusts_wall=trusts_wall)
        database = Database(url)
        database.open()
        next_one = FakeSite(database="sqlite://")
        next_one.state.now = clock.now
        use_cases = UseCases(next_one.state, database)
        ClockWatch(next_one.state, database, clock).look()
        use_cases.tick()
        assert Reserved(use_cases, database).one("runs").state is state
        assert bool(value_of(next_one.state).reported.calendar_off_us) is not trusts_wall
        database.close()
