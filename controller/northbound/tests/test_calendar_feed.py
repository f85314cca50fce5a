"""Reservations as a calendar: what a calendar program reads is what the API says."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from icalendar import Calendar

from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.tests.site import MANY, NIGHT, api_of, dependencies_of
from controller.security.tokens import Role, Tokens, new_token
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois

FEED = "/v1/calendar.ics"
NOW = datetime(2026, 11, 23, tzinfo=UTC)
TOKEN, KEPT = new_token("calendar", Role.READ, NOW, NOW + timedelta(days=1))


@pytest.fixture
def client():
    """A client that may all."""
    return TestClient(api_of(FakeSite(chile_illinois(), standing=())))


def events(client, **query):
    """What a calendar program reads."""
    answer = client.get(FEED, params=query)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/calendar; charset=utf-8")
    return Calendar.from_ical(answer.text).walk("VEVENT")


def test_an_empty_calendar_is_one(client):
    assert events(client) == []


def test_an_event_says_what_the_reservation_says(client):
    known = client.post(MANY, json=NIGHT | {"commit": True, "description": "raw; images, ÿ and more"}).json()
    (event,) = events(client)
    assert event["uid"] == f"{known['id']}@headway"
    assert event["dtstart"].dt == datetime.fromisoformat(known["start"])
    assert event["dtend"].dt == datetime.fromisoformat(known["end"])
    assert "raw; images, ÿ" in event["summary"]
    assert (event["status"], event["sequence"]) == ("CONFIRMED", known["version"])
    assert str(event["url"]).endswith(f"/reservations/{known['id']}")


def test_a_hold_is_tentative_a_change_is_a_later_version_and_what_has_ended_is_gone(client):
    known = client.post(MANY, json=NIGHT).json()
    (held,) = events(client)
    assert held["status"] == "TENTATIVE"
    client.post(f"{MANY}/{known['id']}/commit")
    client.patch(f"{MANY}/{known['id']}", json={"rate_bps": 1_000_000}, headers={"If-Match": "*"})
    (changed,) = events(client)
    assert changed["sequence"] > held["sequence"]
    assert changed["summary"].startswith("1 Mbit/s")
    client.delete(f"{MANY}/{known['id']}")
    assert events(client) == []


def test_only_what_is_asked_for_is_in_it(client):
    client.post(MANY, json=NIGHT | {"class": "background"})
    assert len(events(client, **{"class": "background", "from": NIGHT["from"]})) == 1
    assert events(client, **{"class": "urgent"}) == []
    assert events(client, to="nowhere") == []
    assert client.get(FEED, params={"colour": "red"}).status_code == 422


def test_a_program_that_has_it_is_told_so(client):
    client.post(MANY, json=NIGHT)
    tag = client.get(FEED).headers["etag"]
    assert client.get(FEED, headers={"If-None-Match": tag}).status_code == 304
    assert "304" in client.app.openapi()["paths"][FEED]["get"]["responses"]
    client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"})
    assert client.get(FEED, headers={"If-None-Match": tag}).status_code == 200


def test_a_token_may_come_as_the_password_of_the_basic_scheme():
    rules = AccessRules(lambda: Tokens((KEPT,)), lambda: NOW)
    stranger = TestClient(api(dependencies_of(FakeSite(chile_illinois())), rules), client=("192.0.2.1", 5000))
    for said, status in ((f"ana:{TOKEN}", 200), ("ana:hw_no_ne", 401), (TOKEN, 401)):
        shown = {"Authorization": f"Basic {base64.b64encode(said.encode()).decode()}"}
        assert stranger.get(FEED, headers=shown).status_code == status
    refused = stranger.get(FEED)
    assert (refused.status_code, refused.headers["www-authenticate"][:5]) == (401, "Basic")
