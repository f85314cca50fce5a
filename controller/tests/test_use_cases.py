"""What outlives a crash, what the clock does by itself, and what a broken database does to use_cases."""

import threading
import time

import pytest

from controller.checks import AnnouncementRequest
from controller.database import Database, DatabaseFailed
from controller.database.terms import TERM_STEP
from controller.errors import NotAllowed, Outdated, Taken
from controller.plan.admission import Refused, Request
from controller.plan.clock import Instant
from controller.plan.ledger import Created
from controller.plan.lifecycle import Illegal, ReservationState
from controller.plan.plan import Selector
from controller.plan.purchases import Period
from controller.plan.reservations import MOST_AHEAD_US, Reservation
from controller.reserved import Reserved
from controller.state.guard import GuardedState
from controller.tests.fakes import START_US, Clock, FakeSite, image, ready_site, value_of, watch_of
from controller.use_cases import UseCases
from controller.work.convergence import Convergence
from controller.work.timekeeper import Timekeeper
from mininet_tests.testing.eventually import eventually
from topology.network import Hop
from topology.protocol import FlowClass

S = 1_000_000


def request(**changes):
    """600 Mbit/s from site to site, for a hundred seconds, in ten."""
    fields = {
        "a_end": "la-serena",
        "z_end": "champaign",
        "flow_class": FlowClass.URGENT,
        "rate_bps": 600_000_000,
        "start_us": START_US + 10 * S,
        "end_us": START_US + 110 * S,
    }
    return Request(**(fields | changes))


def held(use_cases, name="r", key="", fingerprint="", **changes):
    """Hold, and return the answer."""
    asked = request(**changes)
    kept = use_cases.hold(lambda _: asked, lambda now_us: Created(name, now_us, key, fingerprint))
    kept.saved.result()
    return kept.value


class RealClock(Clock):
    """This machine's."""

    def __call__(self):
        """Return the time."""
        return time.time_ns() // 1000

    def instant(self):
        """Return the time in both kinds."""
        return Instant(time.time_ns() // 1000, time.monotonic_ns() // 1000)


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


def after_restart(site):
    """The same database read by a new process, at this moment."""
    state = GuardedState(site.state.site, site.clock.instant, site.database.term + TERM_STEP)
    return state, UseCases(state, site.database)


def test_after_a_restart_reservations_announcements_calendar_timers_and_plan_are_the_same(site):
    held(site.use_cases)
    site.use_cases.commit("r")
    held(site.use_cases, "brief", rate_bps=1_000_000)
    site.announce(AnnouncementRequest("image", FlowClass.URGENT, 10**8, ("base20", "base21"), "arch"))
    for host in site.value.reported.hosts:
        site.reports.host_down(host)  # as the new process sees them
    site.use_cases.tick()
    after, use_cases = after_restart(site)
    assert value_of(after).wished.ledger.reservations == site.value.wished.ledger.reservations
    assert value_of(after).wished.ledger.announcements == site.value.wished.ledger.announcements
    assert value_of(after).wished.ledger.calendar == site.value.wished.ledger.calendar
    assert value_of(after).desired.plan.links == site.value.desired.plan.links
    assert value_of(after).desired.plan.entries == site.value.desired.plan.entries
    while site.value.wished.ledger.due_us() is not None:
        site.clock.now_us = site.value.wished.ledger.due_us()
        site.use_cases.tick().result(5)
        use_cases.tick().result(5)
        assert value_of(after).wished.ledger.reservations == site.value.wished.ledger.reservations


def test_a_start_that_passed_while_no_controller_ran_is_acted_on_at_once(site):
    held(site.use_cases)
    site.use_cases.commit("r")
    held(site.use_cases, "missed", rate_bps=64_000, end_us=START_US + 20 * S)
    site.use_cases.commit("missed")
    site.clock.now_us = START_US + 60 * S
    _, use_cases = after_restart(site)
    use_cases.tick()
    assert use_cases.reservation("r").state is ReservationState.PROVISIONING
    missed = Reserved(use_cases, site.database).one("missed")
    assert missed.state is ReservationState.EXPIRED
    assert "no controller" in missed.reason


def test_a_reservation_between_hosts_enters_the_plan_at_its_start_and_leaves_it_at_its_end(site):
    held(site.use_cases, a_end="base20", z_end="arch", rate_bps=300_000_000)
    site.use_cases.commit("r")

    def sent_to_base20():
        site.converge()
        return [(e.flow.flow_class, e.frame_bps) for e in site.value.reported.hosts["base20"].acts_as_granted]

    assert sent_to_base20() == []
    site.clock.now_us = START_US + 10 * S
    assert sent_to_base20() == [(FlowClass.URGENT, 295_318_000)]  # 300 Mbit/s of wire, less the gaps between frames
    assert site.use_cases.reservation("r").state is ReservationState.ACTIVE
    site.clock.now_us = START_US + 110 * S
    assert sent_to_base20() == []


def test_a_controller_that_starts_again_does_not_call_lost_what_goes_on_as_it_was(site):
    held(site.use_cases, a_end="base20", z_end="arch")
    site.use_cases.commit("r")
    site.clock.now_us = START_US + 10 * S
    site.converge()
    _, use_cases = after_restart(site)
    use_cases.tick()
    assert use_cases.reservation("r").state is ReservationState.ACTIVE
    site.clock.now_us += 31 * S  # and no switch has called
    use_cases.tick()
    assert use_cases.reservation("r").state is ReservationState.PROVISIONING


# Faults of others, by name (docs/reservations.md).


def test_atlanticwave_fault_a_schedule_is_not_only_echoed_but_acted_on(site):
    held(site.use_cases)
    site.use_cases.commit("r")
    states = []
    for at_us in (START_US + 9 * S, START_US + 10 * S, START_US + 110 * S):
        site.clock.now_us = at_us
        site.converge()
        states.append(site.reservation("r").state)
    assert states == [ReservationState.COMMITTED, ReservationState.ACTIVE, ReservationState.EXPIRED]


def test_nsi_proxy_fault_start_and_end_are_those_asked_for(site):
    one = held(site.use_cases)
    assert (one.start_us, one.end_us) == (START_US + 10 * S, START_US + 110 * S)


def test_oscars_fault_a_refused_change_is_not_called_a_success(site):
    one = held(site.use_cases)
    answer = site.use_cases.change("r", lambda _: request(rate_bps=2 * 10**9), one.version).value
    assert isinstance(answer, Refused)
    assert site.use_cases.reservation("r") == one


def test_the_same_key_is_answered_the_same_and_another_request_under_it_is_refused(site):
    first = held(site.use_cases, key="k", fingerprint="one")
    assert held(site.use_cases, "other", key="k", fingerprint="one") == first
    with pytest.raises(NotAllowed, match="was used for another reservation"):
        held(site.use_cases, "other", key="k", fingerprint="two")
    _, use_cases = after_restart(site)
    assert held(use_cases, "other", key="k", fingerprint="one") == first


def test_a_change_of_what_has_changed_meanwhile_is_refused(site):
    held(site.use_cases)
    with pytest.raises(Outdated) as outdated:
        site.use_cases.change("r", lambda _: request(), 7)
    assert (outdated.value.seen_version, outdated.value.version) == (7, 1)


def test_a_change_to_a_start_that_has_just_passed_starts_it_now(site):
    one = held(site.use_cases)
    site.clock.now_us = START_US + 5 * S
    just_passed = request(start_us=START_US + 5 * S - 20_000)
    assert site.use_cases.change("r", lambda _: just_passed, one.version).value.start_us == START_US + 5 * S


def test_a_change_to_a_start_that_is_long_past_is_not_advised_to_leave_it_out(site):
    one = held(site.use_cases)
    site.clock.now_us = START_US + 9 * S
    with pytest.raises(NotAllowed, match=r"lies 70.000 s in the past$"):
        site.use_cases.change("r", lambda _: request(start_us=START_US - 61 * S), one.version)


def test_a_hold_that_lapsed_a_moment_ago_cannot_be_committed_even_before_the_clock_has_acted(site):
    held(site.use_cases, start_us=START_US + 500 * S, end_us=START_US + 600 * S)
    site.clock.now_us = START_US + 60 * S
    with pytest.raises(Illegal):
        site.use_cases.commit("r")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"end_us": START_US + 10 * S}, "end"),
        ({"end_us": START_US + 9 * S}, "end"),
        ({"start_us": START_US - 61 * S}, "start"),
        ({"start_us": START_US - 9 * S, "end_us": START_US - 8 * S}, "end"),
        ({"end_us": 253_402_300_800_000_000}, "end"),
        ({"rate_bps": 0}, "rate_bps"),
        ({"rate_bps": 63_999}, "rate_bps"),
        ({"flow_class": FlowClass.UNPLANNED}, "class"),
        ({"z_end": "la-serena"}, "to"),
        ({"selector": Selector(dest_port=873)}, "connections"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_its_field(site, changes, field):
    with pytest.raises(NotAllowed) as refusal:
        held(site.use_cases, **changes)
    assert refusal.value.field == field


def test_a_pair_of_hosts_may_have_two_classes_at_a_time(site):
    held(site.use_cases, a_end="base20", z_end="arch", rate_bps=64_000)
    second = held(site.use_cases, "s", a_end="base20", z_end="arch", rate_bps=64_000, flow_class=FlowClass.BACKGROUND)
    assert isinstance(second, Reservation)


def test_an_announcement_may_not_have_the_name_of_a_reservation(site):
    held(site.use_cases, a_end="base20", z_end="arch", rate_bps=300_000_000, start_us=START_US)
    for _ in range(2):  # held, and in the plan
        with pytest.raises(Taken, match='id: "r" was used for a reservation'):
            site.use_cases.announce(image("r", flow_class=FlowClass.BACKGROUND))
        site.use_cases.commit("r")
        site.converge()
    assert site.reservation("r").state is ReservationState.ACTIVE


def test_an_announcement_by_the_name_of_a_reservation_that_has_ended_lapses_like_others(site):
    held(site.use_cases)
    site.use_cases.release("r").saved.result()
    promised = site.announce(image("r"))
    site.clock.now_us = promised.lapses_us
    site.use_cases.tick()
    assert site.use_cases.announcements() == ()


def test_a_start_that_passed_while_an_offer_was_read_is_now(site):
    known = held(site.use_cases, start_us=START_US - 3 * S)
    assert known.start_us == START_US


@pytest.mark.parametrize(
    ("start_us", "end_us"),
    [
        (START_US + 1, START_US + 2),  # a microsecond
        (1_835_395_200 * S, 1_835_481_600 * S),  # 2028-02-29, the whole of it
        (START_US, START_US + MOST_AHEAD_US),  # as far ahead as anything goes
    ],
)
def test_times_at_the_edges_are_kept_to_the_microsecond(site, start_us, end_us):
    held(site.use_cases, start_us=start_us, end_us=end_us)
    _, use_cases = after_restart(site)
    known = use_cases.reservation("r")
    assert (known.start_us, known.end_us) == (start_us, end_us)
    assert isinstance(held(use_cases, "s", start_us=start_us, end_us=end_us), Refused)


def test_nobody_sells_the_calendar_out_for_longer_than_ten_years(site):
    with pytest.raises(NotAllowed, match="more than ten years ahead"):
        held(site.use_cases, start_us=START_US, end_us=START_US + MOST_AHEAD_US + 1)
    with pytest.raises(NotAllowed, match="more than ten years ahead"):
        held(site.use_cases, start_us=250_000_000_000 * S, end_us=250_000_000_001 * S)  # in the year 9892


def test_nothing_is_offered_that_lies_more_than_ten_years_ahead(site):
    end_us = START_US + MOST_AHEAD_US
    held(site.use_cases, start_us=end_us - 2 * S, end_us=end_us - S, rate_bps=600_000_000)
    refused = held(site.use_cases, "late", start_us=end_us - 2 * S, end_us=end_us, rate_bps=600_000_000)
    assert isinstance(refused, Refused)
    assert refused.offers  # less rate, but not a start a second later, by which it would end too late
    assert {offer.end_us for offer in refused.offers} == {end_us}


def test_nothing_is_offered_to_an_announcement_that_lies_more_than_ten_years_ahead(site):
    with pytest.raises(NotAllowed, match="deadline_s: lies more than ten years ahead"):
        site.announce(image(deadline_us=MOST_AHEAD_US + 1))
    refused = site.announce(image(size_bytes=10**18, deadline_us=MOST_AHEAD_US))
    assert isinstance(refused, Refused)
    assert [offer for offer in refused.offers if offer.end_us > START_US + MOST_AHEAD_US] == []
    nearer = site.announce(image("nearer", size_bytes=10**18, deadline_us=MOST_AHEAD_US // 2))
    assert nearer.offers, "what lies nearer is offered"


def test_reservations_that_touch_both_fit_and_two_that_start_in_the_same_second_add_up(site):
    held(site.use_cases, rate_bps=900_000_000)
    after = held(site.use_cases, "after", rate_bps=900_000_000, start_us=START_US + 110 * S, end_us=START_US + 111 * S)
    assert after.state is ReservationState.HELD
    assert isinstance(held(site.use_cases, "beside", start_us=START_US + 110 * S - 1), Refused)


def test_when_a_provider_takes_capacity_away_the_plan_shrinks_first_and_the_newest_reservation_fails():
    half = Period(START_US + 50 * S, START_US + 60 * S, 500_000_000)
    site = FakeSite(standing=(), schedules={"chile-illinois": (half,)})
    site.attach_all()
    answer = held(site.use_cases)
    assert isinstance(answer, Refused)  # not over that time: the calendar knows of it
    held(site.use_cases, rate_bps=400_000_000)
    site.use_cases.commit("r")
    site.clock.now_us = START_US + 46 * S
    site.converge()
    assert site.value.desired.plan.links[Hop("ls1", "ch1")].wire_bps == 500_000_000
    site.clock.now_us = START_US + 61 * S
    site.converge()
    assert site.value.desired.plan.links[Hop("ls1", "ch1")].wire_bps == 10**9


def test_what_the_database_did_not_take_is_forgotten_and_the_next_thing_is_kept(tmp_path):
    site = FakeSite(database=f"sqlite:///{tmp_path}/headway.db")
    held(site.use_cases)
    site.database._refuse("the disk is full")  # as the writer does when a commit has failed
    kept = site.use_cases.hold(lambda _: request(rate_bps=64_000), lambda now_us: Created("lost", now_us))
    with pytest.raises(DatabaseFailed, match="the disk is full"):
        kept.saved.result()
    with pytest.raises(DatabaseFailed, match="the disk is full"):
        held(site.use_cases, "later", rate_bps=64_000)  # not even decided
    site.use_cases.saves.recover()  # brings memory to what is on disk
    assert [r.reservation_id for r in site.use_cases.reservations()] == ["r"]
    assert held(site.use_cases, "next", rate_bps=64_000).state is ReservationState.HELD
    assert {r.reservation_id for r in site.database.load().reservations} == {"r", "next"}


def test_the_clock_and_the_convergence_do_all_of_it_by_themselves(tmp_path):
    """On real threads and the real time: active within a moment of its start, expired within one of its end."""
    site = FakeSite(standing=(), clock=RealClock())
    database = Database(f"sqlite:///{tmp_path}/headway.db")
    database.open()
    use_cases = UseCases(site.state, database)
    site.attach_all()
    workers = [
        threading.Thread(target=work, daemon=True)
        for work in (
            Timekeeper(site.state, use_cases, watch_of(site)).run,
            Convergence(site.state, site.switches, site.hosts, threading.Lock()).run,
        )
    ]
    for worker in workers:
        worker.start()
    now_us = time.time_ns() // 1000
    held(use_cases, a_end="base20", z_end="arch", start_us=now_us + 3_000_000, end_us=now_us + 7_000_000)
    use_cases.commit("r").saved.result()
    seen = {}

    def expired():
        state = Reserved(use_cases, database).one("r").state
        seen.setdefault(state, time.time_ns() // 1000 - now_us)
        return state is ReservationState.EXPIRED

    eventually(expired, within_s=20, what="the reservation is over")
    site.state.stop()
    for worker in workers:
        worker.join(5)
    database.close()
    assert list(seen)[:1] == [ReservationState.COMMITTED]
    assert ReservationState.ACTIVE in seen
    assert seen[ReservationState.ACTIVE] >= 3_000_000


def told(site):
    """The names of all events about use_cases, in order."""
    happened = site.state.events.since(0).events
    return [event.name for event in happened if event.name.startswith(("reservation.", "announcement."))]


def test_what_the_clock_does_to_a_promise_is_told_once_like_what_its_owner_does(site):
    held(site.use_cases, name="lapsing", rate_bps=64_000)
    held(site.use_cases, name="carried", start_us=START_US)
    site.use_cases.commit("carried")
    site.announce(image())
    for after_s in (1, 70, 70, 120, 300):
        site.clock.now_us += after_s * S
        site.converge()
    assert told(site) == [
        "reservation.held",
        "reservation.held",
        "reservation.committed",
        "reservation.provisioning",
        "announcement.promised",
        "reservation.active",
        "reservation.expired",
        "announcement.lapsed",
        "reservation.expired",
    ]
