"""Maintenance while the controller runs: what it breaks is said first, and then nothing is promised for its time."""

import re
from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient

from controller.database import ChangeQuery
from controller.maintaining import Maintaining
from controller.northbound.tests.site import HOUR_US, MANY, NIGHT, api_of
from controller.plan.maintenance import Maintenance
from controller.plan.purchases import Period
from controller.promise_watch import PromiseWatch
from controller.saves import Saves
from controller.tests.fakes import START_US, FakeSite
from controller.use_cases import UseCases
from mininet_tests.testing.networks import chile_illinois
from topology.network import Hop
from topology.units import instant_us, shown_time

WORK = "/v1/maintenance"
CIRCUIT = "chile-illinois"
TWO_HOURS = {"circuit": CIRCUIT, "start": shown_time(START_US + 2 * HOUR_US), "duration_s": 7200}
FREE = {
    "from": "la-serena",
    "to": "champaign",
    "start": shown_time(START_US),
    "end": shown_time(START_US + 6 * HOUR_US),
}
S = 1_000_000
H = 3600


@pytest.fixture
def site(tmp_path):
    """A site of one circuit, on a database in a file."""
    site = FakeSite(chile_illinois(), standing=(), database=f"sqlite:///{tmp_path}/headway.db")
    yield site
    site.database.close()


@pytest.fixture
def client(site):
    """Who operates it."""
    return TestClient(api_of(site))


def rates(client):
    """What is free, one rate after the other."""
    (way,) = client.get("/v1/availability", params=FREE).json()["paths"]
    return [one["rate_bps"] for one in way["rates"]]


def test_nothing_is_free_in_its_time_and_all_again_once_it_is_taken_back(site, client):
    before = rates(client)
    assert len(before) == 1
    said = client.post(WORK, json=TWO_HOURS | {"description": "splicing"})
    assert (said.status_code, said.json()["breaks"], said.json()["planned"]) == (201, [], True)
    made = said.json()["maintenance"]
    assert (made["circuit"], made["description"], made["creator"]) == (CIRCUIT, "splicing", "anybody")
    assert rates(client) == [before[0], 0, before[0]]
    refused = client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}).json()
    assert refused["type"] == "/problems/capacity-unavailable"
    assert [one["id"] for one in client.get(WORK).json()] == [made["id"]]
    assert client.delete(f"{WORK}/{made['id']}").json() == made
    assert (rates(client), client.get(WORK).json()) == (before, [])
    assert client.delete(f"{WORK}/none").status_code == 404
    assert client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}).status_code == 201


def test_what_it_would_break_is_said_first_and_only_force_breaks_it(site, client):
    held = client.post(MANY, json=NIGHT | {"commit": True}).json()
    free = rates(client)
    looked = client.post(WORK, json=TWO_HOURS | {"only_look": True})
    assert (looked.status_code, looked.json()["planned"]) == (200, False)
    (broken,) = looked.json()["breaks"]
    assert (broken["id"], "promised" in broken["why"], broken["instead"] != "") == (held["id"], True, True)
    assert broken["until"] == shown_time(START_US + 4 * HOUR_US)
    (for_good,) = client.post(WORK, json=TWO_HOURS | {"duration_s": 36_000, "only_look": True}).json()["breaks"]
    assert for_good["until"] is None
    refused = client.post(WORK, json=TWO_HOURS)
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/would-break")
    assert refused.json()["breaks"] == [broken]
    assert (rates(client), client.get(WORK).json()) == (free, [])  # nothing has changed
    forced = client.post(WORK, json=TWO_HOURS | {"force": True})
    assert (forced.status_code, forced.json()["breaks"]) == (201, [broken])


def free(client):
    """What is free, with the seconds after the start from which it is."""
    (way,) = client.get("/v1/availability", params=FREE).json()["paths"]
    return [((instant_us(one["from"]) - START_US) // S, one["rate_bps"]) for one in way["rates"]]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (TWO_HOURS | {"circuit": "none"}, 404),
        (TWO_HOURS | {"duration_s": None}, 422),
        (TWO_HOURS | {"end": TWO_HOURS["start"]}, 422),
        ({"circuit": CIRCUIT, "end": shown_time(START_US - 1)}, 422),
        ({"circuit": CIRCUIT, "duration_s": 400 * 86_400}, 422),
    ],
    ids=["no circuit", "no end", "two ends", "over", "too long"],
)
def test_what_cannot_be_meant_is_refused(client, body, status):
    answer = client.post(WORK, json={name: value for name, value in body.items() if value is not None})
    assert answer.status_code == status, answer.text


def planned(client, from_h, **more):
    """What was said to two hours of maintenance."""
    return client.post(WORK, json=TWO_HOURS | {"start": shown_time(START_US + from_h * HOUR_US)} | more).json()


@pytest.mark.parametrize("first", [0, 1])
def test_two_may_share_some_time_and_nothing_is_free_until_both_are_over_or_taken_back(client, first):
    (full,) = rates(client)
    one = planned(client, 1)
    assert one["beside"] == []
    two = planned(client, 2)
    assert [each["id"] for each in two["beside"]] == [one["maintenance"]["id"]]
    assert free(client) == [(0, full), (H - 5, 0), (4 * H, full)]
    assert planned(client, 4, only_look=True)["beside"] == []  # back to back is not beside
    ids = [made["maintenance"]["id"] for made in (one, two)]
    client.delete(f"{WORK}/{ids[first]}")
    left = (2, 4), (1, 3)
    begin_h, end_h = left[first]
    assert free(client) == [(0, full), (begin_h * H - 5, 0), (end_h * H, full)]
    client.delete(f"{WORK}/{ids[1 - first]}")
    assert free(client) == [(0, full)]


def test_beside_a_schedule_what_is_left_of_the_rate_comes_back_when_it_is_taken_back(tmp_path):
    half = Period(START_US + HOUR_US, START_US + 3 * HOUR_US, 500_000_000)
    database = f"sqlite:///{tmp_path}/headway.db"
    site = FakeSite(chile_illinois(), standing=(), database=database, schedules={CIRCUIT: (half,)})
    client = TestClient(api_of(site))
    before = free(client)
    made = planned(client, 2)["maintenance"]
    assert [bps for _, bps in free(client)] == [before[0][1], before[1][1], 0, before[0][1]]
    client.delete(f"{WORK}/{made['id']}")
    assert free(client) == before
    site.database.close()


def test_it_outlives_a_restart_and_is_in_the_chain(site, client):
    made = client.post(WORK, json=TWO_HOURS).json()["maintenance"]
    gone = client.post(WORK, json=TWO_HOURS | {"start": shown_time(START_US + 4 * HOUR_US)}).json()["maintenance"]
    client.delete(f"{WORK}/{gone['id']}")
    site.use_cases = UseCases(site.state, site.database)  # another process, which reads the database
    again = TestClient(api_of(site))
    assert again.get(WORK).json() == [made]
    assert rates(again)[1] == 0
    told = [(row.change.kind, row.change.id, row.change.who) for row in site.database.changes(ChangeQuery(limit=9))]
    assert told == [
        ("maintenance.planned", made["id"], "anybody"),
        ("maintenance.planned", gone["id"], "anybody"),
        ("maintenance.cancelled", gone["id"], "anybody"),
    ]


def test_what_is_taken_back_in_its_midst_gives_back_what_is_left(site, client):
    made = client.post(WORK, json=TWO_HOURS).json()["maintenance"]
    site.clock.now_us += 3 * HOUR_US
    client.delete(f"{WORK}/{made['id']}")
    with site.state.changed:
        ledger, hop = site.state.wished.ledger, Hop("ls1", "ch1")
        carried = ledger.schedules.pieces(hop, START_US + HOUR_US, START_US + 5 * HOUR_US)
    usual = chile_illinois().link(*hop).rate_bps
    assert [(bps, (until_us - from_us) // HOUR_US) for from_us, until_us, bps in carried] == [
        (usual, 1),
        (0, 1),
        (usual, 2),
    ]


def test_the_plan_gives_nobody_anything_on_it_while_it_lasts(site, client):
    site.attach_all()
    client.post(MANY, json=NIGHT | {"from": "base20", "to": "arch", "rate": "1 Mbit/s", "commit": True})
    site.wire()

    def planned_bps():
        site.converge()
        return site.value.desired.plan.links[next(iter(site.value.desired.plan.links))].wire_bps

    assert planned_bps() == 10**9
    made = client.post(WORK, json={"circuit": CIRCUIT, "duration_s": 600, "force": True}).json()["maintenance"]
    site.clock.now_us += 10 * S
    assert planned_bps() == 0
    client.delete(f"{WORK}/{made['id']}")
    assert planned_bps() == 10**9


def test_reservations_that_it_breaks_are_told_of(site, client):
    held = client.post(MANY, json=NIGHT | {"commit": True}).json()["id"]
    watch = PromiseWatch(site.state)
    watch.look()
    made = client.post(WORK, json=TWO_HOURS | {"force": True}).json()["maintenance"]
    watch.look()
    client.delete(f"{WORK}/{made['id']}")
    watch.look()
    names = [e.name for e in site.state.events.since(0).events if e.fields.get("reservation") == held]
    assert names[-2:] == ["reservation.unkeepable", "reservation.keepable"]


def test_a_database_that_fails_leaves_nothing_planned(site, client):
    free = rates(client)
    maintaining = Maintaining(site.state, Saves(site.state, site.database))
    site.database.close()
    work = Maintenance("m", CIRCUIT, START_US + HOUR_US, START_US + 2 * HOUR_US)
    done = maintaining.plan(lambda _: work, only_look=False, force=False)
    assert done.saved.exception(30) is not None
    assert (maintaining.all(), rates(client)) == ((), free)


def plans(site, name):
    """Plan an hour of work that is named; it may not be saved yet."""
    work = Maintenance(name, CIRCUIT, START_US + HOUR_US, START_US + 2 * HOUR_US)
    return site.use_cases.maintaining.plan(lambda _: work, only_look=False, force=True)


def cancels(site, name):
    """Take work back; that may not be saved yet."""
    return site.use_cases.maintaining.cancel(name)


@pytest.mark.parametrize(
    ("wishes", "left"),
    [
        ([(plans, "b"), (plans, "c")], ["a", "b", "c", "z"]),
        ([(cancels, "a"), (cancels, "z")], []),
        ([(cancels, "a"), (plans, "b")], ["b", "z"]),
        ([(plans, "b"), (cancels, "a")], ["b", "z"]),
    ],
    ids=["two planned", "two taken back", "one taken back, one planned", "one planned, one taken back"],
)
def test_wishes_that_come_while_another_is_saved_are_all_there_after_a_restart(site, wishes, left):
    for name in ("a", "z"):
        plans(site, name).saved.result(30)
    with site.state.changed:  # what is saved is not heard of before all are handed over
        saved = [wish(site, name).saved for wish, name in wishes]
    for one in saved:
        one.result(30)
    assert sorted(one.name for one in site.use_cases.maintaining.all()) == left
    again = UseCases(site.state, site.database).maintaining  # another process, which reads the database
    assert sorted(one.name for one in again.all()) == left


def test_who_takes_back_what_is_being_taken_back_is_answered_once_that_is_saved(site):
    plans(site, "a").saved.result(30)
    site.clock.now_us += 3 * HOUR_US // 2
    with site.state.changed:
        saved = [cancels(site, "a").saved for _ in range(2)]
        assert [one.done() for one in saved] == [False, False]
    for one in saved:
        one.result(30)
    assert [one.name for one in UseCases(site.state, site.database).maintaining.all(0)] == ["a"]
    assert [row.change.kind for row in site.database.changes(ChangeQuery(limit=9))][1:] == ["maintenance.cancelled"]


def test_what_could_not_be_saved_is_not_beside_the_next(site):
    plans(site, "a").saved.result(30)
    site.database.close()
    assert plans(site, "b").saved.exception(30) is not None
    work = Maintenance("c", CIRCUIT, START_US + HOUR_US, START_US + 2 * HOUR_US)
    with site.state.changed:
        looked = site.use_cases.maintaining.plan(lambda _: work, only_look=True, force=False)
    assert [one.name for one in looked.value.beside] == ["a"]


def test_the_calendar_has_what_was_worked_on_yesterday_and_of_what_was_taken_back_the_part_that_is_over(site, client):
    over = client.post(WORK, json=TWO_HOURS | {"description": "over"}).json()["maintenance"]
    begun = client.post(WORK, json=TWO_HOURS | {"start": shown_time(START_US + 5 * HOUR_US), "description": "begun"})
    coming = client.post(WORK, json=TWO_HOURS | {"start": shown_time(START_US + 9 * HOUR_US), "description": "coming"})
    site.clock.now_us += 6 * HOUR_US
    for made in (begun, coming):
        client.delete(f"{WORK}/{made.json()['maintenance']['id']}")
    site.use_cases = UseCases(site.state, site.database)  # another process, which reads the database
    again = TestClient(api_of(site))
    assert again.get(WORK).json() == []
    drawn = again.get("/").text
    assert re.search(f"maintenance over: nothing goes by, {_clock(over['start'])}.* to {_clock(over['end'])}", drawn)
    until = shown_time(START_US + 6 * HOUR_US)
    taken_back = begun.json()["maintenance"]
    assert re.search(f"maintenance begun: nothing goes by, {_clock(taken_back['start'])}.* to {_clock(until)}", drawn)
    assert "maintenance coming" not in drawn


def test_what_has_been_over_for_two_days_is_not_kept(site, client):
    client.post(WORK, json=TWO_HOURS)
    site.clock.now_us += 4 * 24 * HOUR_US
    late = client.post(WORK, json=TWO_HOURS | {"start": shown_time(site.clock.now_us), "duration_s": 60}).json()
    (kept,) = UseCases(site.state, site.database).maintaining.all(0)
    assert kept.name == late["maintenance"]["id"]


def _clock(at):
    """A moment as the page has it."""
    return f"{datetime.fromtimestamp(instant_us(at) / 1e6, UTC):%d %b %H:%M} UTC"


def test_a_circuit_that_is_worked_on_is_not_in_use_though_nothing_leads_round_it(site, client):
    assert client.get("/v1/circuits").json()[0]["in_use"] is True
    client.post(WORK, json={"circuit": CIRCUIT, "start": shown_time(START_US), "duration_s": 7200})
    site.clock.now_us += S
    site.converge()
    assert client.get("/v1/circuits").json()[0]["in_use"] is False
    site.clock.now_us += 2 * HOUR_US
    site.converge()
    assert client.get("/v1/circuits").json()[0]["in_use"] is True
