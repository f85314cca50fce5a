"""What is delivered of several promises of two hosts whose connections nothing tells apart, also after a restart."""

from dataclasses import replace

import pytest

from controller.plan.ledger import Created
from controller.tests.fakes import FakeSite, image, ready_site
from controller.tests.test_delivered import announced, entry, read, tell
from controller.tests.test_standing_by import TERM, hello_of, standing_by
from controller.tests.test_use_cases import request
from topology.telemetry import Telemetry


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


def test_of_an_entry_that_carries_several_what_was_promised_first_came_first_and_is_not_exact(site):
    site.announce(replace(image(), senders=("base20",), size_bytes=1_000))
    site.announce(replace(image(), announcement_id="next", senders=("base20",), size_bytes=1_000))
    site.converge()
    (together,) = (e.flow for e in site.value.reported.hosts["base20"].sent if len(e.flow.names) == 2)
    assert set(together.names) == {"image/base20", "next/base20"}
    tell(site, "base20", entry(together.name, 600))
    tell(site, "base20", entry(together.name, 1_400))
    counts = {name: read(site).one(name).delivered[0] for name in ("image", "next")}
    assert {name: one.payload_bytes for name, one in counts.items()} == {"image": 1_000, "next": 400}
    assert all(one.is_least for one in counts.values())


@pytest.mark.parametrize(
    "told", [(600, 1_100), (600, 1_000, 1_100), ()], ids=["both", "the second alone", "nothing yet"]
)
def test_after_a_restart_what_an_entry_of_several_had_delivered_is_not_counted_again(tmp_path, told):
    url = f"sqlite:///{tmp_path}/headway.db"
    site = ready_site(database=url)
    for name in ("image", "next"):
        site.announce(replace(image(), announcement_id=name, senders=("base20",), size_bytes=1_000))
    site.converge()
    for delivered in told:
        tell(site, "base20", entry("image/base20", delivered))
        site.use_cases.tick()
    site.database.close()
    again = FakeSite(database=url, clock=site.clock)
    again.attach_all()
    again.converge()
    tell(again, "base20", entry("image/base20", 1_200))
    counts = {name: read(again).one(name).delivered[0].payload_bytes for name in ("image", "next")}
    again.database.close()
    assert counts == {"image": 1_000, "next": 200}


def test_after_a_restart_what_a_reservation_had_delivered_before_is_not_an_announcements(tmp_path):
    url = f"sqlite:///{tmp_path}/headway.db"
    site = ready_site(database=url)
    night = request(a_end="base20", z_end="arch", rate_bps=10**8, start_us=site.clock())
    site.use_cases.hold(lambda _: night, lambda now_us: Created("night", now_us)).saved.result()
    site.use_cases.commit("night").saved.result()
    site.converge()
    tell(site, "base20", entry("night/base20", 10**12))
    announced(site)
    site.converge()
    site.database.close()
    again = FakeSite(database=url, clock=site.clock)
    again.attach_all()
    again.converge()
    for delivered in (0, 700):
        tell(again, "base20", entry("night/base20", 10**12 + delivered))
    (count,) = read(again).one("image").delivered
    again.database.close()
    assert (count.payload_bytes, count.is_least) == (700, True)


def test_who_stands_by_and_then_leads_counts_them_as_the_leader_does(site):
    for name in ("image", "next"):
        site.announce(replace(image(), announcement_id=name, senders=("base20",), size_bytes=1_000))
    site.converge()
    state, reports = standing_by(site)
    with state.changed:
        ledger = state.wished.ledger
        ledger.restore([], site.value.wished.ledger.announcements.values(), site.clock.now_us)
        state.replan()
    for delivered in (600, 1_200, 1_300):
        if delivered == 1_300:
            state.lead(TERM)
        if delivered != 1_200:
            reports.host_up(hello_of(site, "base20"))
        reports.host_telemetry("base20", Telemetry(1, 1_000, (entry("image/base20", delivered),)))
    with state.changed:
        counts = {name: known.delivered[0] for name, known in ledger.announcements.items()}
    assert {name: (one.payload_bytes, one.is_least) for name, one in counts.items()} == {
        "image": (1_000, True),
        "next": (300, True),
    }
