"""Halves of surrogate pairs, which UTF-8 has not: what was saved with one is shown all the same, as pages and feed."""

from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from controller.database import Changes
from controller.northbound.tests.site import api_of
from controller.plan.lifecycle import ReservationState
from controller.tests.database_child import reservation
from controller.tests.fakes import START_US, FakeSite, opened
from mininet_tests.testing.networks import chile_illinois

HOUR_US = 3_600_000_000
HALF, SHOWN = "half of \ud83d", "half of \ufffd"


@pytest.fixture
def client():
    """Of a site that has an old reservation whose words and reason have such a half."""
    database, network = opened("sqlite://"), chile_illinois()
    old = replace(
        reservation(1),
        state=ReservationState.COMMITTED,
        a_end="la-serena",
        z_end="champaign",
        path=("ls1", "ch1"),
        start_us=START_US + HOUR_US,
        end_us=START_US + 2 * HOUR_US,
        description=HALF,
        reason=HALF,
    )
    database.save(Changes(reservations=(old,))).result(30)
    return TestClient(api_of(FakeSite(network, standing=(), database=database)))


@pytest.mark.parametrize("path", ["/", "/reservations/r1", "/v1/calendar.ics", "/v1/reservations/r1"])
def test_what_was_saved_with_one_is_shown_with_a_mark_in_its_place(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    assert SHOWN in answer.text.replace("\r\n ", "")
