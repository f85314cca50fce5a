"""What tests of the clients have: OSCARS, empty at the start of each, and a client of it."""

import pytest

from controller.providers.oscars import OscarsProvider
from controller.providers.tests.buying import START_S, settings
from controller.providers.tests.servers import nsi, nsi_server, nsi_url, oscars, oscars_server, oscars_url

__all__ = ["nsi", "nsi_server", "nsi_url", "oscars", "oscars_server", "oscars_url"]


@pytest.fixture
def fake(oscars):
    return oscars


@pytest.fixture
def url(oscars_url):
    return oscars_url


@pytest.fixture(scope="session")
def shared(oscars_server):
    fake, url = oscars_server
    provider = OscarsProvider(settings(url, timeout_s=10.0), lambda: int((START_S + fake.ahead_s) * 1e6))
    yield provider
    provider.close()


@pytest.fixture
def provider(fake, shared):
    shared._unanswered_us.clear()
    shared._lacks.clear()
    shared._since_us = None
    return shared  # it keeps nothing but connections, and takes longer to make than to use
