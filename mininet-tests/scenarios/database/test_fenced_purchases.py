"""What a deposed leader would ask of a provider is refused by a real PostgreSQL before it reaches OSCARS, over HTTP."""

from collections.abc import Iterator

import psycopg
import pytest

from controller.database import Database
from controller.database.leader_row import LeaderRow
from controller.plan.lifecycle import ReservationState
from controller.providers.oscars import OscarsProvider
from controller.providers.tests.buying import settings
from controller.providers.tests.fake_oscars import FakeOscars, running
from controller.tests.fakes import START_US
from controller.work.tests.buying_site import CIRCUIT, BuyingSite, S
from mininet_tests.site.needs import NEEDS_POSTGRESQL

pytestmark = NEEDS_POSTGRESQL
START, END = START_US + 900 * S, START_US + 1_500 * S
GIGABIT = 10**9
LONG_US = 600_000_000
ASKS = ("POST /protected", "PUT /protected", "DELETE ")  # what changes anything there


class BuyingPair:
    """Two controllers on one database that buy of one OSCARS, in the order in which they lead."""

    def __init__(self, url: str, oscars: FakeOscars, oscars_url: str):
        self.url, self.oscars, self.oscars_url = url, oscars, oscars_url
        self.sites: list[BuyingSite] = []
        self._rows = [LeaderRow(url, name, f"http://{name}") for name in "ab"]

    def leads(self) -> BuyingSite:
        """Let the next one lead, whatever the one before believes."""
        row = self._rows[len(self.sites)]
        row.look()
        with psycopg.connect(self.url) as connection:
            connection.execute("UPDATE headway_leader SET until = clock_timestamp()")
        database = Database(self.url, save_within_s=30)
        database.open(row.take(LONG_US, clock_ms=1).term)
        now_us = self.sites[-1].clock.now_us if self.sites else None
        made = lambda now_us: {CIRCUIT: OscarsProvider(settings(self.oscars_url, timeout_s=5.0), now_us)}  # noqa: E731
        site = BuyingSite(made, database=database, now_us=now_us)
        self.oscars.clock = lambda: site.clock.now_us / S
        self.sites.append(site)
        return site

    def asked(self) -> list[str]:
        """What would have changed anything at OSCARS."""
        return [request for request in self.oscars.requests if request.startswith(ASKS)]

    def close(self) -> None:
        """End both."""
        for site in self.sites:
            site.close()
            site.database.close()
        for row in self._rows:
            row.close()


@pytest.fixture
def pair(postgres) -> Iterator[BuyingPair]:
    """A pair on an empty database and an empty OSCARS."""
    oscars = FakeOscars(lambda: START_US / S)
    with running(oscars) as oscars_url:
        found = BuyingPair(postgres.new_database(), oscars, oscars_url)
        yield found
        found.close()


@pytest.mark.parametrize("what", ["purchase", "change", "release"])
def test_what_a_deposed_leader_is_about_to_ask_is_refused_before_it_reaches_the_provider(pair, what):
    first = pair.leads()
    name = first.promised(2 * GIGABIT, START, END)
    if what != "purchase":
        first.pass_to(START_US + 10 * S)
        first.use_cases.release(name).saved.result()
        if what == "change":
            name = first.promised(GIGABIT, START, END)
    second = pair.leads()  # while the first one stands still
    if what == "release":
        name = second.promised(2 * GIGABIT, START, END)
    before = pair.asked()
    for _ in range(3):
        first.purchasing.step()  # it wakes up, and has not looked at its row yet
    assert pair.asked() == before
    second.pass_to(START)
    assert second.reservation(name).state is ReservationState.ACTIVE
    assert len(set(pair.oscars.creates)) == 1  # once, and what was there was gone on with
