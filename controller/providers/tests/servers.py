"""The stand-ins of who sells circuits, as fixtures: one server of each kind, empty at the start of each test."""

from collections.abc import Iterator

import pytest

from controller.providers.tests.buying import START_S
from controller.providers.tests.fake_nsi import FakeNsi, NsiRules, running_nsi
from controller.providers.tests.fake_oscars import FakeOscars, Rules, running


def _first_clock() -> float:
    return START_S


@pytest.fixture(scope="session")
def oscars_server() -> Iterator[tuple[FakeOscars, str]]:
    """The stand-in for OSCARS, and its URL."""
    fake = FakeOscars(_first_clock)
    with running(fake) as url:
        yield fake, url


@pytest.fixture
def oscars(oscars_server: tuple[FakeOscars, str]) -> FakeOscars:
    """The stand-in for OSCARS, as if it had just started."""
    fake, _ = oscars_server
    fake.clock, fake.rules = _first_clock, Rules()
    fake.reset()
    return fake


@pytest.fixture
def oscars_url(oscars_server: tuple[FakeOscars, str]) -> str:
    """Where the stand-in for OSCARS is."""
    return oscars_server[1]


@pytest.fixture(scope="session")
def nsi_server() -> Iterator[tuple[FakeNsi, str]]:
    """The stand-in for an NSI proxy, and its URL."""
    fake = FakeNsi(_first_clock)
    with running_nsi(fake) as url:
        yield fake, url


@pytest.fixture
def nsi(nsi_server: tuple[FakeNsi, str]) -> FakeNsi:
    """The stand-in for an NSI proxy, as if it had just started."""
    fake, _ = nsi_server
    fake.clock, fake.rules = _first_clock, NsiRules()
    fake.reset()
    return fake


@pytest.fixture
def nsi_url(nsi_server: tuple[FakeNsi, str]) -> str:
    """Where the stand-in for an NSI proxy is."""
    return nsi_server[1]
