"""What is promised now is in the calendars whatever has ended, and at the hours of the place."""

import re
import time
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from controller.database import Changes
from controller.northbound.page.tonight import Tonight
from controller.northbound.tests.site import MANY, NIGHT, api_of, dependencies_of
from controller.plan.lifecycle import ReservationState
from controller.plan.purchases import Period
from controller.tests.database_child import reservation
from controller.tests.fakes import START_US, FakeSite, opened
from mininet_tests.testing.networks import chile_illinois
from topology.units import instant_us

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000
LONG_AGO_US = START_US - 60 * DAY_US
LATELY_US = START_US - 2 * HOUR_US
CLOCKS_CHANGE_US = 1_788_667_200_000_000  # 2026-09-06T04:00:00Z
ENDED = 2_500


def ended(number, end_us):
    """A reservation of the circuit that has ended, after an hour."""
    return replace(
        reservation(number),
        state=ReservationState.EXPIRED,
        path=chile_illinois().path("base20", "arch"),
        start_us=end_us - HOUR_US,
        end_us=end_us,
        changed_us=end_us,
        rate_bps=1_000_000,
        key="",
    )


def drawn(*past):
    """What the calendars show after so much has ended, with the name of what is reserved for tonight."""
    database = opened("sqlite://")
    for first in range(0, len(past), 1_000):
        database.save(Changes(reservations=past[first : first + 1_000])).result(30)
    site = FakeSite(chile_illinois(), standing=(), database=database)
    made = TestClient(api_of(site)).post(MANY, json=NIGHT | {"commit": True}).json()
    return "".join(row.svg for row in Tonight(dependencies_of(site)).rows()), made["id"]


def test_what_is_reserved_tonight_is_drawn_after_thousands_have_ended():
    svg, name = drawn(*(ended(n, LONG_AGO_US) for n in range(1, ENDED)))
    assert f'id="cal-{name}"' in svg


def test_what_is_reserved_tonight_is_drawn_after_thousands_have_ended_today():
    svg, name = drawn(*(ended(n, LATELY_US) for n in range(1, ENDED)))
    assert f'id="cal-{name}"' in svg


def test_what_has_ended_lately_is_drawn_beside_what_has_ended_long_ago():
    long_ago = (ended(n, LONG_AGO_US) for n in range(1, ENDED))
    svg, _ = drawn(*long_ago, ended(ENDED, LATELY_US), *(ended(n, LONG_AGO_US) for n in range(ENDED + 1, 2 * ENDED)))
    assert f'id="cal-r{ENDED}"' in svg
    assert 'id="cal-r1"' not in svg


def test_what_is_reserved_is_drawn_without_the_database():
    site = FakeSite(chile_illinois(), standing=())
    made = TestClient(api_of(site)).post(MANY, json=NIGHT | {"commit": True}).json()
    site.database.close()
    assert f'id="cal-{made["id"]}"' in "".join(row.svg for row in Tonight(dependencies_of(site)).rows())


@pytest.fixture
def in_chile(monkeypatch):
    """This machine is in Chile; its rule is said in full, for a machine without a database of zones."""
    monkeypatch.setenv("TZ", "<-04>4<-03>,M9.1.6/24,M4.1.6/24")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_chile")
def test_hours_of_the_place_are_those_of_each_moment_when_the_clocks_change():
    """In Chile they go from 24:00 of 5 September 2026 to 01:00: from four hours behind UTC to three."""
    site = FakeSite(chile_illinois(), standing=())
    site.clock.now_us = CLOCKS_CHANGE_US
    svg = "".join(row.svg for row in Tonight(dependencies_of(site)).rows())
    midnights = re.findall(r"(\w{3} \d\d:\d\d) here", svg)
    assert {"Fri 20:00", "Sun 21:00"} <= {*midnights}


@pytest.mark.usefixtures("in_chile")
def test_a_circuit_that_carries_less_for_all_times_is_on_every_page_of_it():
    always = Period(instant_us("0001-01-01T00:00:00Z"), instant_us("9999-12-31T23:59:59.999999Z"), 250_000_000)
    network = chile_illinois()
    (circuit,) = (one.name for one in network.circuits)
    client = TestClient(api_of(FakeSite(network, standing=(), schedules={circuit: (always,)})))
    for path in ("/", f"/circuits/{circuit}", "/v1/circuits", "/v1/scenario", "/v1/needs"):
        assert client.get(path).status_code == 200, path
    assert "only 250 Mbit/s goes by, 01 Jan 0001 to 31 Dec 9999" in client.get("/").text
    assert client.post(MANY, json=NIGHT | {"rate": "600 Mbit/s"}).json()["type"] == "/problems/capacity-unavailable"
