"""The API of a site without switches and agents, in process."""

from controller.northbound.parts import Parts
from controller.northbound.rest import api
from controller.tests.fakes import FakeSite


def parts_of(site: FakeSite) -> Parts:
    """Return what the API stands on; every switch is connected."""
    network = site.book.site.network
    return Parts(
        service=site.service,
        promises=site.promises,
        events=site.book.events,
        network=network,
        now_us=site.clock,
        connected=lambda: frozenset(switch.dpid for switch in network.switches),
    )


def api_of(site: FakeSite):
    """Return the API of a site."""
    return api(parts_of(site))
