"""Who has changed a reservation, on its page."""

import re
from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient

from controller.database import DatabaseFailed
from controller.northbound.access import all_may
from controller.northbound.api import api
from controller.northbound.page import details
from controller.northbound.tests.site import MANY, NIGHT, dependencies_of
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois


@pytest.fixture
def site():
    """A site whose promises nobody has made yet."""
    return FakeSite(chile_illinois(), standing=())


def client_of(site, **more):
    """A client that may all."""
    return TestClient(api(dependencies_of(site, **more), all_may(lambda: datetime.now(UTC))))


def changes_shown(client, name):
    """What the page says of who has changed a reservation."""
    shown = client.get(f"/reservations/{name}")
    assert shown.status_code == 200
    return shown.text.split("<h2>Who has changed it")[1].split("</section>")[0]


def test_while_the_database_is_away_the_rest_of_the_page_is_there(site):
    def away(_):
        raise DatabaseFailed("sqlite:///x", "disk I/O error")

    client = client_of(site, changes=away)
    name = client.post(MANY, json=NIGHT | {"commit": True}).json()["id"]
    said = changes_shown(client, name)
    assert "The database cannot be read: disk I/O error" in said
    assert "<tr>" not in said


def test_of_many_changes_the_latest_are_shown_and_that_there_are_older_ones(site, monkeypatch):
    monkeypatch.setattr(details, "MOST_CHANGES", 3)
    client = client_of(site)
    name = client.post(MANY, json=NIGHT | {"commit": True}).json()["id"]
    said = changes_shown(client, name)
    assert said.startswith(", newest first</h2>")
    assert re.findall(r"<td>(reservation\.\w+)</td>", said) == ["reservation.committed", "reservation.held"]
    client.patch(f"{MANY}/{name}", json={"description": "for ana"}, headers={"If-Match": "*"})
    client.delete(f"{MANY}/{name}")
    said = changes_shown(client, name)
    assert said.startswith(", the latest 3, newest first</h2>")
    kinds = ["reservation.released", "reservation.changed", "reservation.committed"]
    assert re.findall(r"<td>(reservation\.\w+)</td>", said) == kinds
