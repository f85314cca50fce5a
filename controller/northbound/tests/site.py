"""The API of a site without switches and agents, in process."""

from dataclasses import replace
from datetime import UTC, datetime

from controller.announced import Announced
from controller.northbound.access import all_may
from controller.northbound.api import api
from controller.northbound.dependencies import Dependencies
from controller.reserved import Reserved
from controller.tests.fakes import START_US, FakeSite
from topology.units import shown_time

HOUR_US = 3_600_000_000
NIGHT = {
    "from": "la-serena",
    "to": "champaign",
    "class": "urgent",
    "rate": "600 Mbit/s",
    "start": shown_time(START_US + HOUR_US),
    "duration_s": 36_000,
}
MANY = "/v1/reservations"


def dependencies_of(site: FakeSite, **others) -> Dependencies:
    """Return what the API stands on; every switch is connected. With ``others`` instead of some of it."""
    network = site.state.site.network
    found = Dependencies(
        reports=site.reports,
        use_cases=site.use_cases,
        reserved=Reserved(site.use_cases, site.database),
        announced=Announced(site.state, site.database),
        events=site.state.events,
        network=network,
        now_us=site.clock,
        connected=lambda: frozenset(switch.dpid for switch in network.switches),
        drift=site.audits.view,
        changes=site.database.changes,
        names=frozenset({"testserver"}),  # as Starlette's client asks
    )
    return replace(found, **others)


def api_of(site: FakeSite):
    """Return the API of a site."""
    return api(dependencies_of(site), all_may(lambda: datetime.now(UTC)))


def send_by_both_lanes(site: FakeSite) -> None:
    """Let the host with two interfaces send by both, two seconds later, and say so."""
    site.converge()
    site.clock.now_us += 2_000_000
    site.use_cases.tick()
    site.demand("base20")
    site.converge()
