"""Whether a promise is carried at the moment it is made, as the API says it."""

import pytest
from fastapi.testclient import TestClient

from controller.northbound.tests.site import MANY, NIGHT, api_of
from controller.plan.wiring import SeenPort
from controller.state.reported import PlaceAlarm
from controller.tests.fakes import START_US, FakeSite
from mininet_tests.testing.networks import chile_illinois
from topology.units import shown_time

IMAGE = {"id": "image", "bytes": 1_000_000_000, "from": ["base20"], "to": "arch", "deadline_s": 60}
NOW = {"from": "base20", "to": "arch", "rate": "10 Mbit/s", "end": shown_time(START_US + 10**9), "commit": True}


@pytest.fixture
def site():
    """A site where all is well."""
    site = FakeSite(chile_illinois(), standing=())
    site.attach_all()
    site.wire()
    return site


@pytest.fixture
def client(site):
    """A client of its API."""
    return TestClient(api_of(site))


def moved(site):
    site.switch_reports.port_said(1, 1, SeenPort("spare", is_live=True))


def displaced(site):
    with site.state.changed:
        reported = site.state.reported
        alarms = {"ls1": (PlaceAlarm("queue shadowed", "ls1-wan"),), "ch1": (PlaceAlarm("of another port", "p7"),)}
        site.state.put(
            reported=type(reported)(**{n: getattr(reported, n) for n in reported.__slots__} | {"alarms": alarms})
        )


def mute(site):
    with site.state.changed:
        reported = site.state.reported
        alarms = {"ls1": (PlaceAlarm("no answer from the OVSDB server", is_silent=True),)}
        site.state.put(
            reported=type(reported)(**{n: getattr(reported, n) for n in reported.__slots__} | {"alarms": alarms})
        )


BROKEN = [
    (lambda site: site.reports.host_down("base20"), "base20: its agent is not connected"),
    (lambda site: site.reports.host_down("arch"), "arch: its agent is not connected"),
    (lambda site: site.switch_reports.switch_down(2), "ch1: is not connected"),
    (moved, "ls1: port 1 ls1-eth1 to base20 is port 1 spare"),
    (displaced, "ls1: queue shadowed"),
    (mute, "ls1: no answer from the OVSDB server"),
]


@pytest.mark.parametrize(("breaks", "why"), BROKEN)
def test_a_promise_says_what_cannot_carry_it(client, site, breaks, why):
    breaks(site)
    announced = client.post("/v1/announcements", json=IMAGE).json()
    assert (announced["carried"], announced["reasons"]) == (False, [why])
    reserved = client.post(MANY, json=NOW).json()
    assert (reserved["state"], reserved["carried"], reserved["reasons"]) == ("provisioning", False, [why])
    assert f"announcement image: {why}" in client.get("/healthz").json()["reasons"]


def test_a_dead_line_carries_nothing(client, site):
    site.port_said(1, 9, is_live=False)
    announced = client.post("/v1/announcements", json=IMAGE).json()
    assert announced["carried"] is False
    assert announced["reasons"][0] == "chile-illinois: the line is down"


def test_a_promise_that_all_can_carry_says_so(client, site):
    announced, reserved = client.post("/v1/announcements", json=IMAGE).json(), client.post(MANY, json=NOW).json()
    assert [(one["carried"], one["reasons"]) for one in (announced, reserved)] == [(True, [])] * 2
    assert client.get("/v1/announcements").json()["announcements"][0]["carried"] is True


def test_before_its_time_nobody_asks_whether_a_reservation_is_carried(client, site):
    site.switch_reports.switch_down(1)
    held = client.post(MANY, json=NIGHT).json()
    assert (held["carried"], held["reasons"]) == (None, [])


def test_nobody_asks_whether_a_hold_is_carried(client, site):
    site.switch_reports.switch_down(1)
    held = client.post(MANY, json={**NOW, "commit": False}).json()
    assert (held["state"], held["carried"], held["reasons"]) == ("held", None, [])
    committed = client.post(f"{MANY}/{held['id']}/commit").json()
    assert (committed["state"], committed["carried"]) == ("provisioning", False)


def test_before_the_first_plan_is_in_force_nothing_is_carried():
    client = TestClient(api_of(FakeSite(chile_illinois(), standing=())))
    announced = client.post("/v1/announcements", json=IMAGE).json()
    assert announced["reasons"][0] == "no plan is in force in the switches yet"
