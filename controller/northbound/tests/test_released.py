"""Announcements that are released: once, twice, and what is none that can be."""

import pytest
from fastapi.testclient import TestClient

from controller.northbound.tests.site import api_of
from controller.plan.deliveries import LAST_COUNT_US
from controller.tests.fakes import ready_site
from topology.units import instant_us

IMAGE = {"id": "image", "bytes": 2_688_024_580, "from": ["base20", "base21"], "to": "arch"}


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


@pytest.fixture
def client(site):
    """A client that may all."""
    return TestClient(api_of(site))


def test_releasing_what_is_not_there_is_404(client):
    assert client.delete("/v1/announcements/nothing").status_code == 404


@pytest.mark.parametrize("later_us", [0, LAST_COUNT_US + 1], ids=["in memory", "in the database"])
def test_releasing_an_announcement_twice_is_releasing_it_once(client, site, later_us):
    client.post("/v1/announcements", json=IMAGE)
    first = client.delete("/v1/announcements/image")
    assert (first.status_code, first.json()["state"]) == (200, "released")
    site.clock.now_us += later_us
    site.use_cases.tick()
    again = client.delete("/v1/announcements/image")
    assert (again.status_code, again.json()["ended"]) == (200, first.json()["ended"])
    assert [e.name for e in site.state.events.since(0).events].count("announcement.released") == 1


def test_what_has_lapsed_is_not_released(client, site):
    lapses = client.post("/v1/announcements", json=IMAGE).json()["lapses"]
    site.clock.now_us = instant_us(lapses)
    site.use_cases.tick()
    assert client.delete("/v1/announcements/image").status_code == 404
