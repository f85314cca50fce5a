"""A circuit is added beside another one, or one of two is taken away: what is promised is kept over the restart."""

import pytest

from controller.database import ChangeQuery
from controller.plan.lifecycle import ReservationState
from controller.plan.maintenance import Maintenance, broken_by
from controller.plan.reservations import Constraints
from controller.plan.tests.asking import asked, created
from controller.tests.fakes import LS1, START_US, FakeSite, image, ready_site
from mininet_tests.testing.networks import FILES, loaded
from topology.network_file import network_of
from topology.network_text import section_of
from topology.problems import Problems

S = 1_000_000
NORTH, BOTH = loaded(FILES["chile-illinois-north"]), loaded(FILES["chile-illinois-2"])
BETWEEN = section_of(BOTH)
RENAMED = network_of({**BETWEEN, "sites": {f"new-{name}": site for name, site in BETWEEN["sites"].items()}}, Problems())
HOST = {"a_end": "base20", "z_end": "arch", "rate_bps": 100_000_000}


def promised(url, network, **constraints):
    """A site with a reservation under way, one for tomorrow, and an image of which a part has been sent."""
    site = ready_site(database=url, network=network)
    begins = {"running": START_US, "tomorrow": START_US + 86_400 * S}
    for name, start_us in begins.items():
        ends = HOST if name == "running" else {"rate_bps": 300_000_000}
        wanted = asked(start_us=start_us, end_us=start_us + 600 * S, constraints=Constraints(**constraints), **ends)
        site.use_cases.hold(lambda _, wanted=wanted: wanted, lambda now_us, name=name: created(name, now_us))
        site.use_cases.commit(name).saved.result()
    site.announce(image(senders=("base21",)))
    site.converge()
    return site


def started_again(before, url, network):
    before.database.close()
    site = FakeSite(database=url, network=network, clock=before.clock)
    site.attach_all()
    site.converge()
    return site


def kept(site):
    with site.state.changed:
        ledger = site.state.wished.ledger
        paths = {name: known.path for name, known in ledger.reservations.items()}
        return paths | {name: known.flows[0].path for name, known in ledger.announcements.items()}


def told(site, event="reservation.failed"):
    return [dict(one.fields) for one in site.state.events.since(0).events if one.name == event]


@pytest.mark.parametrize(
    ("was", "now", "middle"), [(NORTH, BOTH, ("ls1", "north", "ch1")), (BOTH, NORTH, ("ls1", "ch1"))]
)
def test_what_is_promised_on_a_circuit_is_kept_when_another_comes_beside_it_or_goes(tmp_path, was, now, middle):
    url = f"sqlite:///{tmp_path}/headway.db"
    before = promised(url, was)
    promise = before.value.wished.ledger.announcements["image"]
    after = started_again(before, url, now)
    expected = {
        "running": ("base20", *middle, "arch"),
        "tomorrow": middle,
        "image": ("base21", *middle, "arch"),
    }
    assert kept(after) == expected
    assert after.reservation("running").state is ReservationState.ACTIVE
    assert after.reservation("tomorrow").state is ReservationState.COMMITTED
    with after.state.changed:
        same = after.state.wished.ledger.announcements["image"]
    assert (same.rates, same.promised_us, same.delivered) == (promise.rates, promise.promised_us, promise.delivered)
    assert told(after) == told(after, "announcement.lapsed") == []
    versions = {name: after.reservation(name).version for name in ("running", "tomorrow")}
    again = started_again(after, url, now)
    assert kept(again) == expected
    assert {name: again.reservation(name).version for name in versions} == versions, "it is saved as it is now"
    again.database.close()


def test_what_fails_with_a_circuit_that_is_taken_away_is_told_once_when_that_is_saved(tmp_path):
    url = f"sqlite:///{tmp_path}/headway.db"
    before = promised(url, BOTH, include=("south",))
    before.use_cases.forget("image").saved.result()
    before.port_said(LS1.dpid, 8, is_live=False)
    before.converge()
    before.announce(image(senders=("base21",)))
    after = started_again(before, url, NORTH)
    why = "its path is not in the network any more"
    assert told(after) == [{"reservation": name, "why": why} for name in ("running", "tomorrow")]
    (lapsed,) = told(after, "announcement.lapsed")
    assert (lapsed["announcement"], lapsed["state"], lapsed["delivered_bytes"]) == ("image", "lapsed", 0)
    assert told(after, "promises.gone") == [{"promises": 3}]
    changes = after.database.changes(ChangeQuery(limit=100))[-3:]
    assert {(row.change.kind, row.change.id) for row in changes} == {
        ("reservation.failed", "running"),
        ("reservation.failed", "tomorrow"),
        ("announcement.lapsed", "image"),
    }
    again = started_again(after, url, NORTH)
    assert told(again) == told(again, "announcement.lapsed") == told(again, "promises.gone") == []
    again.database.close()


def test_what_is_promised_between_sites_goes_on_by_the_names_that_they_have_now(tmp_path):
    url = f"sqlite:///{tmp_path}/headway.db"
    before = promised(url, BOTH)
    was = before.reservation("tomorrow")
    after = started_again(before, url, RENAMED)
    now = after.reservation("tomorrow")
    assert (now.a_end, now.z_end) == (f"new-{was.a_end}", f"new-{was.z_end}")
    assert (now.path, now.state, now.version) == (was.path, was.state, was.version + 1)
    assert after.reservation("running") == before.reservation("running"), "it is between hosts"
    with after.state.changed:
        broken = broken_by(after.state.wished.ledger, Maintenance("m", "north", was.start_us, was.end_us), START_US)
    assert [(one.reservation_id, " by ls1 - south - ch1" in one.instead) for one in broken] == [("tomorrow", True)]
    again = started_again(after, url, RENAMED)
    assert again.reservation("tomorrow") == now, "it is saved as it is now"
    again.database.close()
