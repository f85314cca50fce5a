"""Reservations that have ended, as `/metrics` counts them: each once, whatever the database does meanwhile."""

import contextlib
from collections import Counter
from random import Random

import pytest
from fastapi.testclient import TestClient

from controller.database import DatabaseFailed, PastQuery
from controller.errors import HeadwayError
from controller.northbound.tests.site import api_of
from controller.northbound.tests.test_rest import metrics
from controller.plan.admission import Request
from controller.plan.ledger import Created
from controller.plan.lifecycle import ENDED, Illegal
from controller.tests.fakes import START_US, FakeSite
from controller.tests.test_following import Played
from controller.work.recovery import Recovery
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass

S = 1_000_000


class FailingSite:
    """A site whose database breaks when it is told to, before it writes or after it has written; and what is scraped.

    Attributes:
        breaks: "before" or "after" the next writes, until the database is whole again; empty if it is.
        seen: what was counted at each scrape, by state.
    """

    def __init__(self, path):
        self.site = FakeSite(chile_illinois(), standing=(), database=f"sqlite:///{path}/headway.db")
        self._client = TestClient(api_of(self.site))
        self.breaks, self.seen = "", []
        write = self.site.database._session.write

        def writing(batch):
            if self.breaks == "before":
                raise OSError("it is gone")
            write(batch)
            if self.breaks == "after":
                raise OSError("it is gone")

        self.site.database._session.write = writing
        self.scrape()

    def scrape(self):
        """What is counted now, by state."""
        found = metrics(self._client)
        self.seen.append({state: int(found("reservations_ended_total", state)) for state in ENDED})
        return {state: count for state, count in self.seen[-1].items() if count}

    def asked(self, lasts_s):
        """A request of 1 Mbit/s that begins now."""
        now_us = self.site.clock.now_us
        return Request("la-serena", "champaign", FlowClass.URGENT, 10**6, now_us, now_us + lasts_s * S)

    def promised(self, name, lasts_s=100):
        """Reserve from now on."""
        asked = self.asked(lasts_s)
        self.site.use_cases.hold(lambda _: asked, lambda now_us: Created(name, now_us)).saved.result(30)
        self.site.use_cases.commit(name).saved.result(30)

    def lengthened(self, name, lasts_s):
        """Let one last longer, from now on."""
        known = self.site.use_cases.reservation(name)
        asked = Request("la-serena", "champaign", FlowClass.URGENT, 10**6, known.start_us, known.end_us + lasts_s * S)
        self.site.use_cases.change(name, lambda _: asked, known.version).saved.result(30)

    def released(self, name):
        """Give one back."""
        self.site.use_cases.release(name).saved.result(30)

    def passes(self, seconds):
        """Let the time pass."""
        self.site.clock.now_us += seconds * S
        self.site.converge()

    def recovered(self):
        """Let the database be whole again."""
        self.breaks = ""
        assert Recovery(self.site.state, self.site.use_cases.saves).step()
        self.site.use_cases.tick()

    def stored(self):
        """How many the database has that have ended, by state."""
        return Counter(one.state for one in self.site.database.past(PastQuery(limit=1000)).found)

    def close(self):
        """End."""
        self.site.database.close()


@pytest.fixture
def failing(tmp_path):
    """A site whose database can break."""
    failing = FailingSite(tmp_path)
    yield failing
    failing.close()


def test_what_has_ended_stays_counted_when_the_database_is_read_anew(failing):
    failing.promised("r")
    failing.released("r")
    assert failing.scrape() == {"released": 1}
    failing.breaks = "before"
    with pytest.raises(DatabaseFailed):
        failing.promised("other")
    failing.recovered()
    assert failing.scrape() == {"released": 1}


def test_what_has_ended_for_the_clock_and_goes_on_by_the_database_is_counted_at_its_end_alone(failing):
    failing.promised("r", lasts_s=100)
    failing.breaks = "after"
    with pytest.raises(DatabaseFailed):
        failing.lengthened("r", 100)
    failing.passes(150)  # it is over, as far as is known
    failing.scrape()
    failing.recovered()
    assert failing.scrape() == {}
    failing.passes(100)
    assert failing.scrape() == {"expired": 1}
    assert {one["expired"] for one in failing.seen} == {0, 1}
    assert [one["expired"] for one in failing.seen] == sorted(one["expired"] for one in failing.seen)


def act(failing, draw, count):
    """Do one thing, perhaps not allowed."""
    name = f"r{draw.randint(1, count)}"
    acts = [
        lambda: failing.promised(f"r{count}", draw.choice([50, 500])),
        lambda: failing.released(name),
        lambda: failing.lengthened(name, draw.choice([20, 100])),
        lambda: failing.passes(draw.choice([1, 30, 100])),
        lambda: setattr(failing, "breaks", draw.choice(["before", "after"])),
        failing.recovered,
        failing.site.use_cases.saves.read_anew if not failing.breaks else failing.recovered,
    ]
    with contextlib.suppress(HeadwayError, DatabaseFailed, Illegal, KeyError):
        draw.choice(acts)()


@pytest.mark.parametrize("seed", range(6))
def test_each_is_counted_once_and_no_count_goes_back_whatever_the_database_does(failing, seed):
    draw = Random(seed)  # noqa: S311 - a seed, no secret
    for count in range(1, 40):
        act(failing, draw, count)
        failing.scrape()
    failing.recovered()
    failing.passes(1_000)
    assert failing.scrape() == failing.stored()
    assert failing.stored().total() > 1
    for state in ENDED:
        counts = [one[state] for one in failing.seen]
        assert counts == sorted(counts), state


def test_what_ends_is_counted_by_who_leads_and_not_again_by_who_stands_by(tmp_path):
    played = Played(tmp_path / "pair.db", 0)
    asked = Request("la-serena", "champaign", FlowClass.URGENT, 10**6, START_US, START_US + 100 * S)
    controllers = played.site, played.follows, played.reads_all
    for name in "abc":
        played.site.use_cases.hold(lambda _: asked, lambda now_us, name=name: Created(name, now_us)).saved.result(30)
        played.follows.saves.follow()
        played.reads_all.saves.read_anew()
        played.site.use_cases.release(name).saved.result(30)
        played.follows.saves.follow()
        played.reads_all.saves.read_anew()
    counted = []
    for one in controllers:
        with one.state.changed:
            counted.append(one.state.wished.ledger.left.total())
    assert counted == [3, 0, 0]
    played.close()
