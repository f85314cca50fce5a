"""What tests of purchases have: who sells circuits, empty at the start of each, and a site that buys."""

import pytest

from controller.providers.tests.servers import nsi, nsi_server, nsi_url, oscars, oscars_server, oscars_url
from controller.work.tests.buying_site import CIRCUIT, BuyingSite

__all__ = ["nsi", "nsi_server", "nsi_url", "oscars", "oscars_server", "oscars_url"]


@pytest.fixture
def site(seller):
    """A site that buys its circuit of the file's ``seller``."""
    one = BuyingSite(lambda _: {CIRCUIT: seller})
    yield one
    one.close()
