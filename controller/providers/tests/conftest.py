"""One stand-in for OSCARS for all tests, empty at the start of each."""

import pytest

from controller.providers.oscars import OscarsProvider
from controller.providers.tests.buying import START_S, settings
from controller.providers.tests.fake_oscars import FakeOscars, Rules, running


@pytest.fixture(scope="session")
def server():
    fake = FakeOscars(lambda: START_S)
    with running(fake) as url:
        yield fake, url


@pytest.fixture
def fake(server):
    fake, _ = server
    fake.rules = Rules()
    fake.reset()
    return fake


@pytest.fixture
def url(server):
    return server[1]


@pytest.fixture(scope="session")
def shared(server):
    fake, url = server
    provider = OscarsProvider(settings(url, timeout_s=10.0), lambda: int((START_S + fake.ahead_s) * 1e6))
    yield provider
    provider.close()


@pytest.fixture
def provider(fake, shared):
    shared._unanswered_us.clear()
    shared._lacks.clear()
    return shared  # it keeps nothing but connections, and takes longer to make than to use
