"""What tests of purchases have: who sells circuits, empty at the start of each."""

from controller.providers.tests.servers import nsi, nsi_server, nsi_url, oscars, oscars_server, oscars_url

__all__ = ["nsi", "nsi_server", "nsi_url", "oscars", "oscars_server", "oscars_url"]
