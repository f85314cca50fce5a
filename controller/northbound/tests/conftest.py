"""A site without switches, and clients of its API."""

import pytest
from fastapi.testclient import TestClient

from controller.northbound.tests.site import MANY, NIGHT, api_of
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois


@pytest.fixture
def site():
    """A site of two places, joined by 1 Gbit/s."""
    return FakeSite(chile_illinois(), standing=())


@pytest.fixture
def client(site):
    """A client of its API."""
    return TestClient(api_of(site))


@pytest.fixture(scope="module")
def idle():
    """A client of another site like it, for what changes nothing."""
    return TestClient(api_of(FakeSite(chile_illinois(), standing=())))


@pytest.fixture
def held(client):
    """A reservation that is held."""
    return client.post(MANY, json=NIGHT).json()
