"""What would become of what is saved by another network is known before a controller starts with that."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from controller.database import Changes, Database, PurchaseRow
from controller.database.live import all_rows
from controller.database.snapshot import snapshot
from controller.plan.lifecycle import ReservationState
from controller.plan.purchases import Period, Purchase, PurchaseState
from controller.plan.reservations import Constraints
from controller.plan.sold_by import SoldBy
from controller.plan.tests.asking import asked, created
from controller.promise_watch import PromiseWatch
from controller.restored import at_a_restart
from controller.tests.fakes import START_US, FakeSite, image, ready_site
from mininet_tests.testing.networks import FILES, described, loaded
from topology.network_text import section_of

S = 1_000_000
HOUR_US = START_US + 3600 * S
NORTH, BOTH, ONE = (loaded(FILES[name]) for name in ("chile-illinois-north", "chile-illinois-2", "chile-illinois"))


@pytest.fixture
def url(tmp_path):
    """A database with a reservation on each of two circuits, and an image on the first."""
    url = f"sqlite:///{tmp_path}/headway.db"
    site = ready_site(database=url, network=BOTH)
    for circuit in ("north", "south"):
        wanted = asked(
            start_us=HOUR_US, end_us=HOUR_US + 600 * S, rate_bps=300 * S, constraints=Constraints(include=(circuit,))
        )
        site.use_cases.hold(lambda _, wanted=wanted: wanted, lambda now_us, name=circuit: created(name, now_us))
        site.use_cases.commit(circuit).saved.result()
    site.announce(image(senders=("base21",)))
    site.database.close()
    return url


def foreseen(url, network, **more):
    """What a check finds."""
    site = replace(FakeSite(network=network).state.site, **more)
    with snapshot(url) as seen:
        return at_a_restart(site, all_rows(seen.connection), START_US)


@pytest.mark.parametrize("network", [BOTH, NORTH, ONE])
def test_what_is_foreseen_of_another_network_is_what_a_start_with_it_ends(url, network):
    promises = foreseen(url, network)
    after = FakeSite(database=url, network=network)
    after.attach_all()
    after.converge()
    gone = {
        event.fields.get("reservation") or event.fields["announcement"]
        for event in after.state.events.since(0).events
        if event.name in {"reservation.failed", "announcement.lapsed"}
    }
    assert promises.promises == 3
    assert {line.split()[1].rstrip(",") for line in promises.lost} == gone
    assert len(gone) == {BOTH: 0, NORTH: 1, ONE: 3}[network]
    after.database.close()


def test_a_path_that_is_gone_is_named_with_what_was_promised_on_it(url):
    (south,) = foreseen(url, NORTH).lost
    times = "2026-01-01T01:00:00Z to 2026-01-01T01:10:00Z"
    assert south == f"reservation south, {times}: fails: its path is not in the network any more: ls1 - south - ch1"
    image_of = foreseen(url, ONE).lost[-1]
    assert image_of.startswith("announcement image, promised for 2026-01-01T00:0")
    assert image_of.endswith(": lapses: its path is not in the network any more: base21 - ls1 - north - ch1 - arch")


def test_what_is_promised_between_hosts_that_have_no_family_in_common_any_more_is_named_and_ends(tmp_path):
    url = f"sqlite:///{tmp_path}/headway.db"
    site = ready_site(database=url, network=BOTH)
    for name, a_end, z_end in (("hosts", "base21", "arch"), ("sites", "la-serena", "champaign")):
        wanted = asked(start_us=HOUR_US, end_us=HOUR_US + 600 * S, rate_bps=300 * S, a_end=a_end, z_end=z_end)
        site.use_cases.hold(lambda _, wanted=wanted: wanted, lambda now_us, name=name: created(name, now_us))
        site.use_cases.commit(name).saved.result()
    site.announce(image(senders=("base21",)))
    site.database.close()
    section = section_of(BOTH)
    here, there = (site["hosts"] for site in section["sites"].values())
    here["base21"]["address"] = "2001:db8::1"
    there["other"] = {"address": "2001:db8::2", "port": "ch1-other", "number": 77, "rate": "1 Gbit/s"}
    network = described(section)
    why = "its two hosts have no family of addresses in common any more"
    reservation, announcement = foreseen(url, network).lost
    assert reservation.startswith("reservation hosts, ")
    assert f": fails: {why}: base21 - ls1 - " in reservation
    assert f": lapses: {why}: base21 - ls1 - " in announcement
    after = FakeSite(database=url, network=network)
    after.attach_all()
    after.converge()
    assert (after.reservation("hosts").state, after.reservation("hosts").reason) == (ReservationState.FAILED, why)
    assert after.reservation("sites").state is ReservationState.COMMITTED
    with after.state.changed:
        assert after.state.wished.ledger.announcements == {}
    told = {event.name: event.fields for event in after.state.events.since(0).events}
    assert told["promises.gone"]["promises"] == 2
    assert told["reservation.failed"]["why"] == why
    after.database.close()


@pytest.mark.parametrize("left", ["north", "south"])
def test_a_reservation_one_of_whose_two_paths_is_gone_goes_on_by_the_other_and_is_named(tmp_path, left):
    url = f"sqlite:///{tmp_path}/headway.db"
    site = ready_site(database=url, network=BOTH)
    wanted = asked(start_us=HOUR_US, end_us=HOUR_US + 600 * S, rate_bps=300 * S, constraints=Constraints(backup=True))
    site.use_cases.hold(lambda _: wanted, lambda now_us: created("r", now_us))
    site.use_cases.commit("r").saved.result()
    site.database.close()
    section = section_of(BOTH)
    section["circuits"] = {left: section["circuits"][left]}
    network = described(section)
    (said,) = foreseen(url, network).lost
    assert said.startswith("reservation r, ")
    assert "it has no backup: ls1 - north - ch1, ls1 - south - ch1" in said
    after = FakeSite(database=url, network=network)
    (known,) = after.use_cases.reservations()
    assert (known.state, known.path, known.backup) == (ReservationState.COMMITTED, ("ls1", "ch1"), ())
    assert known.reason in said
    after.attach_all()
    after.converge()
    after.database.close()
    assert foreseen(url, network).lost == ()


def test_a_reservation_that_has_no_room_is_foreseen_until_a_controller_has_said_it(url):
    half = {"schedules": {"south": (Period(HOUR_US, HOUR_US + 60 * S, 100 * S),)}}
    (south,) = foreseen(url, BOTH, **half).lost
    assert ": cannot be kept: ls1->south has " in south
    assert "300 Mbit/s promised; instead: " in south
    said = FakeSite(database=url, network=BOTH, **half)
    said.attach_all()
    PromiseWatch(said.state).look()
    said.use_cases.tick()
    said.database.close()
    assert said.reservation("south").reason.startswith("cannot be kept: ls1->south has ")
    assert foreseen(url, BOTH, **half).lost == ()


def test_what_is_bought_of_a_circuit_that_is_not_bought_any_more_is_said_before_and_at_the_start(url):
    kept = PurchaseRow("south", "hw-1", START_US, HOUR_US, 300 * S, "up")
    database = Database(url)
    database.open()
    over = replace(kept, name="hw-0", start_us=START_US - 2, end_us=START_US - 1)
    database.save(Changes(purchases=(kept, over, replace(kept, name="hw-2", state="ended")))).result()
    database.close()
    (left,) = foreseen(url, BOTH).left
    assert left.startswith(
        "hw-1 is bought of the provider of south until 2026-01-01T01:00:00Z, and would be given back by"
    )
    assert foreseen(url, BOTH, lead_us={"south": 30 * S}).left == ()
    with capture_logs() as said:
        FakeSite(database=url, network=BOTH).database.close()
    (event,) = (one for one in said if one["event"] == "provider.left")
    assert (event["circuit"], event["purchase"], event["until"]) == ("south", "hw-1", "2026-01-01T01:00:00Z")


OSCARS = SoldBy("oscars", "https://oscars.example:8201")


@pytest.fixture
def bought(tmp_path):
    """A database with two purchases of the south circuit that are not over, and one that is, bought of OSCARS."""
    url = f"sqlite:///{tmp_path}/bought.db"
    site = FakeSite(database=url, network=BOTH, lead_us={"south": S}, sold_by={"south": OSCARS})
    for name, end_us in (("hw-1", HOUR_US), ("hw-2", HOUR_US + 60 * S), ("hw-0", START_US)):
        purchase = Purchase(name, Period(START_US - S, end_us, 300 * S), PurchaseState.UP)
        with site.state.changed:
            saved = site.use_cases.saves.save_purchase("south", purchase)
        saved.result()
    site.database.close()
    return url


def exchanged_for(url, seller, circuit="south"):
    """What a check finds of a seller."""
    return foreseen(url, BOTH, lead_us={circuit: S}, sold_by={circuit: seller}).exchanged


@pytest.mark.parametrize(
    ("seller", "said"),
    [
        (SoldBy("oscars", "https://other.example"), "oscars (https://other.example)"),
        (SoldBy("oscars", "https://other.example", "https://third.example"), "oscars (https://other.example)"),
        (SoldBy("nsi", OSCARS.server), "nsi (https://oscars.example:8201)"),
        (SoldBy("portal", ""), "portal"),
    ],
)
def test_a_seller_that_is_another_one_while_something_is_bought_of_the_one_before_is_refused(bought, seller, said):
    (line,) = exchanged_for(bought, seller)
    assert line.startswith(
        "circuits.south: 2 purchases (hw-1, hw-2) of oscars (https://oscars.example:8201) are not over until "
        f"2026-01-01T01:01:00Z, and {said} does not have them: "
    )
    assert "put the section of before back until then" in line
    assert ("moved_from: https://oscars.example:8201" in line) == (seller.kind == "oscars")


@pytest.mark.parametrize("seller", [OSCARS, SoldBy("oscars", "https://new.example", OSCARS.server)])
def test_the_same_seller_also_by_another_name_has_what_was_bought_of_it(bought, seller):
    assert exchanged_for(bought, seller) == ()


def test_a_circuit_of_another_name_may_have_another_seller(bought):
    assert exchanged_for(bought, SoldBy("nsi", "urn"), circuit="north") == ()


def test_a_seller_may_be_exchanged_once_all_that_was_bought_is_over(bought):
    site = FakeSite(network=BOTH, lead_us={"south": S}, sold_by={"south": SoldBy("nsi", "urn")}).state.site
    with snapshot(bought) as seen:
        rows = all_rows(seen.connection)
    assert at_a_restart(site, rows, HOUR_US + 59 * S).exchanged
    assert not at_a_restart(site, rows, HOUR_US + 60 * S).exchanged


def test_of_what_an_older_headway_has_bought_nobody_knows_the_seller(bought):
    with snapshot(bought) as seen:
        rows = replace(all_rows(seen.connection), sold_by={})
    site = FakeSite(network=BOTH, lead_us={"south": S}, sold_by={"south": SoldBy("nsi", "urn")}).state.site
    assert at_a_restart(site, rows, START_US).exchanged == ()
