"""A what-if that goes on from a running site: what it foresees is what that site says once the circuit is dead."""

import json
from dataclasses import replace

import pytest

from controller.live_site import live_site_json, live_site_of, plain_of
from controller.northbound.forecasts import ForecastBusy, ForecastFailed, Forecasts
from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.maintenance import Maintenance
from controller.state.reported import PlaceAlarm
from controller.tests.fakes import FakeSite, image
from controller.whatif.live import SHORTEST_US, _is_worse, forecast, horizon_us
from mininet_tests.testing.networks import chile_illinois_2, described
from topology.network_text import section_of
from topology.protocol import FlowClass
from topology.units import instant_us

S = 1_000_000
HOUR_US = 3_600 * S
NORTH_PORT, SOUTH_PORT = 8, 9


@pytest.fixture
def site():
    """A site of two circuits, 1 Gbit/s and half of it, in which all is well."""
    site = FakeSite(chile_illinois_2())
    site.attach_all()
    site.wire()
    site.converge()
    return site


def reserved(site, name, rate_bps, ends=("la-serena", "champaign"), start_us=0, lasts_us=HOUR_US):
    """Reserve from now, or later, and commit."""
    start_us = start_us or site.clock.now_us
    request = Request(*ends, FlowClass.URGENT, rate_bps, start_us, start_us + lasts_us)
    held = site.use_cases.hold(lambda _: request, lambda now_us: Created(name, now_us))
    held.saved.result()
    site.use_cases.commit(name).saved.result()
    site.converge()
    return held.value


def circuit_of(site, known):
    """The circuit that a reservation crosses."""
    network = site.state.site.network
    return next(c for a, b in zip(known.path, known.path[1:], strict=False) if (c := network.link(a, b).circuit))


def foreseen(site, circuit):
    """What breaks if a circuit dies, by name, and why."""
    live = live_site_of(json.loads(live_site_json(site.reports.live_site())))
    return {one["id"]: one["why"] for one in forecast(live, circuit)["breaks"]}


def said_after_its_death(site, port):
    """What the controller itself says of its promises once a circuit is dead at both ends."""
    for dpid in (1, 2):
        site.port_said(dpid, port, is_live=False)
    site.converge()
    ledger = site.value.wished.ledger
    known = [*ledger.reservations.values(), *ledger.announcements.values()]
    names = [*ledger.reservations, *ledger.announcements]
    found = zip(names, site.use_cases.obstacles(known), strict=True)
    return {name: "; ".join(why) for name, why in found if why}


def test_what_it_says_outlives_json_and_has_nobodys_keys(site):
    site.announce(image())
    reserved(site, "night", 10**8)
    live = site.reports.live_site()
    assert live_site_of(json.loads(live_site_json(live))) == live
    assert live_site_of(plain_of(live)) == live
    assert {known.key for known in live.reservations} == {""}
    with pytest.raises(ValueError, match="at_us"):
        live_site_of({"network": {}})


def test_a_circuit_s_death_breaks_what_the_site_itself_then_says(site):
    whole = reserved(site, "whole", 500_000_000)
    small = reserved(site, "small", 10**6, ends=("base20", "arch"))
    on = circuit_of(site, whole)
    assert circuit_of(site, small) == on == "north"
    expected = foreseen(site, on)
    assert expected == {"whole": "north: the line is down"}
    said = said_after_its_death(site, NORTH_PORT)  # with the ports beside, which are how it knows
    assert {name: why.partition("; ")[0] for name, why in said.items()} == expected


def test_what_is_led_round_in_full_is_not_broken(site):
    reserved(site, "small", 10**6, ends=("base20", "arch"))
    assert "small" not in foreseen(site, "north")
    assert foreseen(site, "south") == {}


def test_an_image_under_way_is_late_if_its_circuit_dies_and_goes_on_from_what_has_arrived(site):
    promise = site.announce(image())
    site.converge()
    (late,) = forecast(site.reports.live_site(), "north")["breaks"]
    assert (late["kind"], late["id"]) == ("announcement", promise.announcement_id)
    assert late["why"].startswith("north down")
    assert late["done"] > late["promised"]


def without_agents(*hosts):
    """A site of which some hosts have no agent."""
    said = section_of(chile_illinois_2())
    for host in hosts:
        said["sites"]["la-serena"]["hosts"][host]["agent"] = False
    site = FakeSite(described(said))
    site.attach_all()
    site.wire()
    site.converge()
    return site


@pytest.mark.parametrize("senders", [("base20",), ("base20", "base21")])
@pytest.mark.parametrize("passed", [0.0, 0.4, 0.9])
def test_an_image_of_a_host_without_an_agent_is_foreseen_as_one_that_goes_as_promised(senders, passed):
    site = without_agents(*senders)
    promise = site.announce(image(senders=senders))
    site.converge()
    site.clock.now_us += int(passed * (promise.promised_us - site.clock.now_us))
    live = site.reports.live_site()
    found = forecast(live, "north")
    assert [one["id"] for one in found["breaks"]] == ["image"]
    assert found["breaks"][0]["why"].startswith("north down")
    assert found["anyway"] == forecast(live, "south")["breaks"] == []


def test_what_a_host_without_an_agent_had_time_for_is_taken_to_have_arrived():
    site = without_agents("base20")
    promise = site.announce(image(senders=("base20",)))
    site.converge()
    site.clock.now_us = promise.promised_us + S
    found = forecast(site.reports.live_site(), "north")
    assert found["breaks"] == found["anyway"] == []


def test_a_reservation_to_come_breaks_for_its_whole_time_and_one_that_is_over_before_is_not_looked_at(site):
    later = reserved(site, "later", 900_000_000, start_us=site.clock.now_us + HOUR_US)
    assert circuit_of(site, later) == "north"
    (one,) = forecast(site.reports.live_site(), "north")["breaks"]
    assert one["id"] == "later"
    assert one["lacks_s"] == pytest.approx(3600, abs=1)


def test_what_breaks_anyway_is_not_said_to_be_the_deaths(site):
    reserved(site, "night", 10**8, start_us=site.clock.now_us + HOUR_US)
    on = circuit_of(site, site.value.wished.ledger.reservations["night"])
    work = Maintenance("m", on, site.clock.now_us + HOUR_US, site.clock.now_us + 2 * HOUR_US)
    site.use_cases.maintaining.plan(lambda _: work, only_look=False, force=True).saved.result()
    found = forecast(site.reports.live_site(), "south" if on == "north" else "north")
    assert [one["id"] for one in found["anyway"]] == ["night"]
    assert found["breaks"] == []


@pytest.mark.parametrize(("circuit", "breaks"), [("north", []), ("south", ["night"])])
def test_a_reservation_that_is_not_carried_already_breaks_anyway_whichever_circuit_dies(site, circuit, breaks):
    reserved(site, "big", 700_000_000)
    reserved(site, "night", 250_000_000)
    assert list(said_after_its_death(site, NORTH_PORT)) == ["big"]
    found = forecast(site.reports.live_site(), circuit)
    assert [one["id"] for one in found["anyway"]] == ["big"]
    assert [one["id"] for one in found["breaks"]] == breaks


def test_a_circuit_that_is_down_stays_so_and_that_is_said_and_so_is_an_agent_that_is_gone(site):
    for dpid in (1, 2):
        site.port_said(dpid, SOUTH_PORT, is_live=False)
    site.reports.host_down("base20")
    site.converge()
    reserved(site, "small", 10**6, ends=("base21", "arch"))
    found = forecast(site.reports.live_site(), "north")
    assert [one["id"] for one in found["breaks"]] == ["small"]
    assert found["anyway"] == []
    assert found["unlike"] == [
        "south is down, and is taken to stay so",
        "base20: its agent is not connected; it is taken to be",
    ]


def test_a_port_that_is_down_and_what_an_audit_has_left_are_said_for_they_are_taken_to_be_well(site):
    reserved(site, "night", 10**8, ends=("base20", "arch"))
    site.port_said(1, site.state.site.network.link("ls1", "base20").port_no, is_live=False)
    alarms = {"ch1": (PlaceAlarm("a rule that is not ours stands where ours should"),)}
    with site.state.changed:
        site.state.put(reported=replace(site.state.reported, alarms=alarms))
    site.converge()
    found = forecast(site.reports.live_site(), "south")
    assert (found["anyway"], found["breaks"]) == ([], [])
    assert found["unlike"] == [
        "ls1: port 1 ls1-eth1 to base20 is down; it is taken to be as the network has it",
        "ch1: a rule that is not ours stands where ours should; it is taken to be well",
    ]


def test_it_looks_as_far_as_something_is_promised_and_a_week_at_most(site):
    now_us = site.clock.now_us
    assert horizon_us(site.reports.live_site(), now_us) == now_us + SHORTEST_US
    reserved(site, "soon", 10**6, lasts_us=2 * HOUR_US)
    assert horizon_us(site.reports.live_site(), now_us) == now_us + 2 * HOUR_US + S
    reserved(site, "far", 10**6, start_us=now_us + 100 * 24 * HOUR_US)
    assert horizon_us(site.reports.live_site(), now_us) == now_us + 7 * 24 * HOUR_US


def test_the_process_says_the_same_one_at_a_time_and_why_there_is_none(site, monkeypatch):
    reserved(site, "whole", 900_000_000)
    live, forecasts = site.reports.live_site(), Forecasts()
    assert forecasts.dies(live, "north") == forecast(live, "north")
    with forecasts._lock, pytest.raises(ForecastBusy):
        forecasts.dies(live, "north")
    monkeypatch.setattr("controller.northbound.forecasts.LONGEST_S", 0.001)
    with pytest.raises(ForecastFailed, match="headway what-if --live"):
        forecasts.dies(live, "north")
    monkeypatch.setattr("controller.northbound.forecasts.LONGEST_S", 60)
    monkeypatch.setattr("controller.northbound.forecasts.sys.executable", "/bin/false")
    with pytest.raises(ForecastFailed, match="has ended with 1"):
        forecasts.dies(live, "north")


def test_a_death_that_breaks_more_of_a_promise_than_breaks_anyway_is_said(site):
    now_us = site.clock.now_us
    reserved(site, "night", 10**8, lasts_us=48 * HOUR_US)
    on = circuit_of(site, site.value.wished.ledger.reservations["night"])
    work = Maintenance("m", on, now_us + 24 * HOUR_US, now_us + 25 * HOUR_US)
    site.use_cases.maintaining.plan(lambda _: work, only_look=False, force=True).saved.result()
    found = forecast(site.reports.live_site(), on)
    (anyway,), (breaks,) = found["anyway"], found["breaks"]
    assert breaks["lacks_s"] == pytest.approx(48 * 3600, abs=1)
    assert anyway["lacks_s"] == pytest.approx(3600 + 5, abs=1)  # it goes on when the work is over
    assert "is to carry nothing until" in anyway["why"]


def test_a_death_that_makes_something_later_than_it_is_anyway_is_said(site):
    now_us = site.clock.now_us
    site.announce(image(size_bytes=30 * 10**9))
    site.converge()
    work = Maintenance("m", "north", now_us + 60 * S, now_us + 160 * S)
    site.use_cases.maintaining.plan(lambda _: work, only_look=False, force=True).saved.result()
    found = forecast(site.reports.live_site(), "south")
    (anyway,), (breaks,) = found["anyway"], found["breaks"]
    assert instant_us(breaks["done"]) > instant_us(anyway["done"]) + 30 * S


def test_what_is_done_in_time_to_be_seen_only_with_the_death_is_not_broken_by_it():
    never, at_last = ({"lacked_us": 0, "done": done} for done in (None, "2026-01-01T00:00:01Z"))
    assert not _is_worse(at_last, never)
    assert _is_worse(never, at_last)
