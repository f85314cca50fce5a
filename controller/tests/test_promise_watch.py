"""What can no longer be kept is said as soon as it is known, with what is offered instead."""

import pytest

from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ReservationState
from controller.plan.maintenance import Maintenance
from controller.plan.purchases import Period
from controller.plan.schedules import GUARD_US
from controller.plan.wiring import SeenPort
from controller.promise_watch import PromiseWatch
from controller.state.moment import STARTING_US
from controller.tests.fakes import LEASE_MS, START_US, FakeSite, image, watch_of
from controller.work.timekeeper import Timekeeper
from mininet_tests.testing.networks import chile_illinois, chile_illinois_2, described
from topology.network_text import section_of
from topology.protocol import FlowClass
from topology.telemetry import EntryTelemetry, Telemetry

HOUR_US = 3_600_000_000
MAINTENANCE = Period(START_US + 2 * HOUR_US, START_US + 3 * HOUR_US, 0)


def site_of(network, **more):
    """A site where all is well, and which has found its switches and agents."""
    site = FakeSite(network, standing=(), **more)
    site.attach_all()
    site.wire()
    site.clock.now_us += STARTING_US
    site.keeper = Timekeeper(site.state, site.use_cases, watch_of(site))
    site.keeper.step()
    return site


def told(site, name):
    """The fields of each event of a name."""
    return [dict(e.fields) for e in site.state.events.since(0).events if e.name == name]


def reserved(site, name, start_us, end_us, rate_bps=600_000_000, ends=("base20", "arch")):
    """Reserve, and commit."""
    request = Request(*ends, FlowClass.URGENT, rate_bps, start_us, end_us)
    site.use_cases.hold(lambda _: request, lambda now_us: Created(name, now_us)).saved.result()
    site.use_cases.commit(name).saved.result()
    return site.use_cases.reservation(name)


def test_a_maintenance_that_is_announced_later_is_told_to_whom_it_hits_at_once_and_to_nobody_else(tmp_path):
    database = f"sqlite:///{tmp_path}/headway.db"
    before = site_of(chile_illinois(), database=database)
    reserved(before, "early", START_US + HOUR_US, START_US + 2 * HOUR_US - GUARD_US)
    reserved(before, "hit", START_US + 2 * HOUR_US, START_US + 4 * HOUR_US)
    before.database.close()
    site = site_of(chile_illinois(), database=database, schedules={"chile-illinois": (MAINTENANCE,)})
    (event,) = told(site, "reservation.unkeepable")
    lacks = "has 0 bit/s from 2026-01-01T02:00:00Z until 2026-01-01T03:00:00Z, 600 Mbit/s promised"
    assert (event["reservation"], lacks in event["why"]) == ("hit", True)
    assert "600 Mbit/s urgent from 2026-01-01T03:00:00Z until 2026-01-01T05:00:00Z" in event["instead"]
    known = site.use_cases.reservation("hit")
    assert known.state is ReservationState.COMMITTED
    assert known.reason == f"is interrupted: {event['why']}; instead: {event['instead']}"
    assert site.use_cases.reservation("early").reason == ""
    site.keeper.step()
    assert len(told(site, "reservation.unkeepable")) == 1


def test_who_cannot_be_kept_is_told_once_whatever_else_is_worked_on_later():
    site = site_of(chile_illinois_2())
    reserved(site, "hit", START_US + 2 * HOUR_US, START_US + 4 * HOUR_US)
    for circuit, hour in (("north", 2), ("south", 10), ("south", 20)):
        one = Maintenance(f"{circuit}-{hour}", circuit, START_US + hour * HOUR_US, START_US + (hour + 1) * HOUR_US)
        site.use_cases.maintaining.plan(lambda _, one=one: one, only_look=False, force=True).saved.result()
        site.keeper.step()
    assert [event["reservation"] for event in told(site, "reservation.unkeepable")] == ["hit"]


def test_what_cannot_be_kept_can_be_after_a_start_without_what_was_in_its_way(tmp_path):
    database = f"sqlite:///{tmp_path}/headway.db"
    for periods in ((), (MAINTENANCE,), ()):
        site = site_of(chile_illinois(), database=database, schedules={"chile-illinois": periods} if periods else {})
        if not site.use_cases.reservations():
            reserved(site, "hit", MAINTENANCE.start_us, MAINTENANCE.end_us)
        assert site.use_cases.reservation("hit").reason.startswith("cannot be kept") == bool(periods)
        site.keeper.step()
        site.database.close()
    assert told(site, "reservation.keepable") == [{"reservation": "hit"}]


def test_a_start_with_a_slower_circuit_is_told_to_whom_it_hits_at_once(tmp_path):
    database = f"sqlite:///{tmp_path}/headway.db"
    before = site_of(chile_illinois(), database=database)
    reserved(before, "fits", START_US + HOUR_US, START_US + 2 * HOUR_US, 400_000_000)
    reserved(before, "hit", START_US + 2 * HOUR_US, START_US + 3 * HOUR_US)
    before.database.close()
    site = site_of(chile_illinois(500_000_000), database=database)
    (event,) = told(site, "reservation.unkeepable")
    assert (event["reservation"], "has 469.4 Mbit/s from" in event["why"]) == ("hit", True)
    assert site.use_cases.reservation("hit").reason.startswith("cannot be kept")
    site.keeper.step()
    assert len(told(site, "reservation.unkeepable")) == 1


def test_the_newest_of_two_is_the_one_that_cannot_be_kept_and_can_be_when_the_other_goes(tmp_path):
    database = f"sqlite:///{tmp_path}/headway.db"
    half = Period(MAINTENANCE.start_us, MAINTENANCE.end_us, 500_000_000)
    before = site_of(chile_illinois(), database=database)
    for name in ("older", "newer"):
        reserved(before, name, half.start_us, half.end_us, 300_000_000)
    before.database.close()
    site = site_of(chile_illinois(), database=database, schedules={"chile-illinois": (half,)})
    assert [e["reservation"] for e in told(site, "reservation.unkeepable")] == ["newer"]
    site.use_cases.release("older").saved.result()
    site.keeper.step()
    assert told(site, "reservation.keepable") == [{"reservation": "newer"}]
    assert site.use_cases.reservation("newer").reason == ""


def test_when_there_is_room_again_for_one_of_two_the_older_one_is_the_one_that_can_be_kept(tmp_path):
    database = f"sqlite:///{tmp_path}/headway.db"
    half = Period(MAINTENANCE.start_us, MAINTENANCE.end_us, 500_000_000)
    for periods in ((), (MAINTENANCE,), (half,)):
        site = site_of(chile_illinois(), database=database, schedules={"chile-illinois": periods} if periods else {})
        for name in () if periods else ("older", "newer"):
            reserved(site, name, half.start_us, half.end_us, 300_000_000)
        if MAINTENANCE in periods:
            assert [e["reservation"] for e in told(site, "reservation.unkeepable")] == ["newer", "older"]
        site.keeper.step()
        site.database.close()
    assert [e["reservation"] for e in told(site, "reservation.unkeepable")] == ["newer"]
    assert told(site, "reservation.keepable") == [{"reservation": "older"}]
    assert site.use_cases.reservation("newer").reason.startswith("cannot be kept")


def test_an_announcement_that_is_not_carried_is_told_of_once_and_when_it_is_again():
    site = site_of(chile_illinois())
    site.announce(image())
    site.converge()
    for live in (False, False, True, True):
        site.switch_reports.port_said(1, 1, SeenPort("ls1-eth1", is_live=live))
        site.keeper.step()
    why = "ls1: port 1 ls1-eth1 to base20 is down"
    assert told(site, "announcement.not_carried") == [{"announcement": "image", "why": why}]
    assert told(site, "announcement.carried") == [{"announcement": "image"}]


@pytest.fixture
def paused():
    """A site whose image is under way, and whose senders have nothing to send for the moment."""
    site = site_of(chile_illinois())
    site.announce(image())
    site.converge()
    for wants in (True, False):
        site.demand("base20", "base21", wants=wants)
        site.converge()
        site.clock.now_us += 1_000_000
    site.keeper.step()
    return site


def test_who_waits_for_something_to_send_is_carried_and_the_site_is_well(paused):
    (known,) = paused.value.wished.ledger.announcements.values()
    planned_bps = sum(e.frame_bps for e in paused.value.desired.plan.entries)
    assert planned_bps < known.floor_bps(paused.clock.now_us)  # they stand by
    assert [*told(paused, "announcement.not_carried"), *told(paused, "announcement.late")] == []
    assert paused.use_cases.obstacles([known]) == ((),)


def test_who_waits_behind_a_dead_port_is_not_carried(paused):
    paused.switch_reports.port_said(1, 1, SeenPort("ls1-eth1", is_live=False))
    paused.keeper.step()
    (event,) = told(paused, "announcement.not_carried")
    assert event == {"announcement": "image", "why": "ls1: port 1 ls1-eth1 to base20 is down"}


def test_the_death_of_the_only_circuit_is_told_to_who_is_promised_something_on_it():
    site = site_of(chile_illinois())
    site.announce(image())
    site.converge()
    site.port_said(1, 9, is_live=False)
    site.keeper.step()
    (event,) = told(site, "announcement.not_carried")
    assert event["why"].startswith("chile-illinois: the line is down")


def test_what_begins_now_goes_round_a_dead_circuit_and_what_begins_later_does_not():
    site = site_of(chile_illinois_2())
    site.port_said(1, 8, is_live=False)
    site.converge()
    now_us = site.clock()
    at_once = reserved(site, "now", now_us, now_us + HOUR_US, 100_000_000)
    later = reserved(site, "later", now_us + 2 * HOUR_US, now_us + 3 * HOUR_US, 100_000_000)
    assert ("south" in at_once.path, "north" in later.path) == (True, True)
    assert at_once.constraints.exclude == ()


@pytest.mark.parametrize("rate_bps", [800_000_000])
def test_when_a_circuit_dies_under_a_reservation_what_is_left_is_offered(rate_bps):
    site = site_of(chile_illinois_2())
    now_us = site.clock()
    known = reserved(site, "image", now_us, now_us + HOUR_US, rate_bps)
    site.converge()
    assert "north" in known.path
    site.port_said(1, 8, is_live=False)
    site.converge()
    (event,) = told(site, "reservation.lost")
    assert event["why"] == "north: the line is down"
    assert "469.4 Mbit/s urgent from" in event["instead"]


def test_a_reservation_whose_time_comes_while_its_circuit_is_dead_is_told_of_once_unless_it_is_led_round():
    site = site_of(chile_illinois_2())
    begin_us, end_us = site.clock() + HOUR_US, site.clock() + 2 * HOUR_US
    reserved(site, "led", begin_us, end_us, 100_000_000)
    reserved(site, "sites", begin_us, end_us, 100_000_000, ends=("la-serena", "champaign"))
    site.port_said(1, 8, is_live=False)
    site.converge()
    assert told(site, "reservation.lost") == []
    site.clock.now_us = begin_us
    for _ in range(2):
        site.use_cases.tick()  # it is planned, and not in force yet
    for _ in range(4):
        site.converge()
        site.clock.now_us += 1_000_000
    (event,) = told(site, "reservation.lost")
    assert (event["reservation"], event["why"]) == ("sites", "north: the line is down")
    assert event["instead"].endswith("by ls1 - south - ch1")
    assert site.reservation("led").state is ReservationState.ACTIVE


def test_what_is_offered_is_not_over_a_circuit_that_cannot_be_bought_in_time():
    site = site_of(chile_illinois_2(), lead_us={"south": 60_000_000})
    now_us = site.clock()
    reserved(site, "image", now_us, now_us + HOUR_US, 300_000_000)
    site.converge()
    site.port_said(1, 8, is_live=False)
    site.converge()
    (event,) = told(site, "reservation.lost")
    assert event["instead"].startswith("300 Mbit/s urgent from 2026-01-01T00:02:30Z until 2026-01-01T01:02:30Z")


def test_a_promise_is_not_said_to_be_late_before_the_plan_has_followed_it():
    site = site_of(chile_illinois())
    site.use_cases.announce(image()).saved.result(5)
    with site.state.changed:
        assert site.state.must_replan()
        site.state.note_lines()  # the plan of before, the promises of now: what a switch that calls brings about
    PromiseWatch(site.state).look()
    assert not told(site, "announcement.late")
    site.keeper.step()
    assert not told(site, "announcement.late")


def test_a_promise_that_is_over_is_said_to_be_late_once_whoever_is_the_cause():
    site = site_of(chile_illinois())
    site.announce(image())
    site.converge()
    promised_us = site.value.wished.ledger.announcements["image"].promised_us
    site.clock.now_us = promised_us + 1_000_000  # what arrived in time may not have been told yet
    site.keeper.step()
    assert not told(site, "announcement.late")
    site.clock.now_us = promised_us + 3_000_000
    site.keeper.step()
    site.keeper.step()
    (event,) = told(site, "announcement.late")
    assert (event["expected"], event["why"].startswith("0 B of ")) == ("", True)


def counted(site, host, payload_bytes, since_ns=1):
    """What a sender's agent tells of the image."""
    entry = EntryTelemetry(f"image/{host}", 1, 1, payload_bytes, 0, 0, 180_000, counted_since_ns=since_ns)
    epoch = site.value.reported.hosts[host].sent_epoch
    site.reports.host_telemetry(host, Telemetry(epoch, 1000, (entry,)))


@pytest.fixture
def under_way():
    """A site whose image is announced, and in the plan."""
    site = site_of(chile_illinois())
    site.announce(image())
    site.converge()
    return site


def image_of(site):
    """The image as it is known."""
    return site.value.wished.ledger.announcements["image"]


def test_a_promise_that_was_kept_is_never_late(under_way):
    for sender in image_of(under_way).flows:
        counted(under_way, sender.host, image_of(under_way).size_bytes)
    under_way.clock.now_us = image_of(under_way).promised_us + 3_000_000
    under_way.keeper.step()
    assert not told(under_way, "announcement.late")


def test_of_a_host_without_an_agent_nobody_knows_that_its_promise_is_overdue():
    said = section_of(chile_illinois())
    said["sites"]["la-serena"]["hosts"]["base20"]["agent"] = False
    site = site_of(described(said))
    for name, senders in (("without", ("base20",)), ("image", ("base20", "base21"))):
        site.announce(image(name, senders=senders))
    site.converge()
    site.clock.now_us = image_of(site).promised_us + 3_000_000
    site.keeper.step()
    assert (
        [event["announcement"] for event in told(site, "announcement.late")] == [*site.reports.overdue()] == ["image"]
    )
    counted(site, "base21", image_of(site).sizes_bytes[1])
    site.keeper.step()
    assert told(site, "announcement.resumed") == [{"announcement": "image"}]
    assert site.reports.overdue() == {}


def test_what_was_told_as_overdue_is_told_once_when_all_of_it_has_arrived(under_way):
    under_way.clock.now_us = image_of(under_way).promised_us + 3_000_000
    half_bytes = image_of(under_way).sizes_bytes[0]
    for host, since_ns in (("base20", 1), ("base20", 2), ("base21", 1)):  # an agent is started again
        under_way.keeper.step()
        assert not told(under_way, "announcement.resumed")
        counted(under_way, host, half_bytes // 2 if host == "base20" else half_bytes, since_ns)
    for _ in range(2):
        under_way.keeper.step()
    assert len(told(under_way, "announcement.late")) == 1
    assert told(under_way, "announcement.resumed") == [{"announcement": "image"}]


def test_of_another_of_its_name_nothing_is_told_for_what_was_overdue_and_released(under_way):
    under_way.clock.now_us = image_of(under_way).promised_us + 3_000_000
    under_way.keeper.step()
    under_way.use_cases.forget("image").saved.result(5)
    under_way.announce(image())
    for host in ("base20", "base21"):
        counted(under_way, host, image_of(under_way).size_bytes)
    under_way.keeper.step()
    assert (len(told(under_way, "announcement.late")), told(under_way, "announcement.resumed")) == (1, [])


def absent(site, *hosts):
    """Hosts have died a lease ago."""
    for host in hosts:
        site.reports.host_down(host)
    for _ in range(2):
        site.clock.now_us += LEASE_MS * 1000
        site.converge()
        site.keeper.step()


def test_a_sender_that_dies_after_its_last_byte_has_arrived_breaks_no_promise(under_way):
    site, part_bytes = under_way, image_of(under_way).sizes_bytes[0]
    counted(site, "base20", part_bytes)
    absent(site, "base20")
    assert image_of(site).floor_bps(site.clock.now_us) > 0
    assert [*told(site, "announcement.late"), *told(site, "announcement.not_carried")] == []
    assert site.use_cases.obstacles([image_of(site)]) == ((),)
    counted(site, "base21", part_bytes)
    absent(site, "base21", "arch")
    assert [*told(site, "announcement.late"), *told(site, "announcement.not_carried")] == []
    assert site.use_cases.obstacles([image_of(site)]) == ((),)


def test_a_sender_that_dies_before_its_last_byte_has_arrived_makes_its_promise_late(under_way):
    counted(under_way, "base20", image_of(under_way).sizes_bytes[0] - 1)
    absent(under_way, "base20")
    (event,) = told(under_way, "announcement.late")
    assert event["why"] == "base20: its agent is not connected"


@pytest.mark.parametrize("event", ["announcement.late", "announcement.not_carried"])
def test_another_of_its_name_that_comes_between_two_looks_is_told_of_too(under_way, event):
    if event == "announcement.late":
        absent(under_way, "base20")
    else:
        under_way.switch_reports.port_said(1, 1, SeenPort("ls1-eth1", is_live=False))
        under_way.keeper.step()
    under_way.use_cases.forget("image").saved.result(5)
    under_way.announce(image())
    under_way.keeper.step()
    under_way.clock.now_us += 1_000_000  # its time to send has come
    under_way.keeper.step()
    assert [one["announcement"] for one in told(under_way, event)] == ["image", "image"]


def test_a_promise_is_looked_at_again_as_soon_as_there_is_another_plan():
    site = site_of(chile_illinois())
    watch = PromiseWatch(site.state)
    watch.look()
    with site.state.changed:
        assert not watch.is_behind
    site.announce(image())
    with site.state.changed:
        assert watch.is_behind
