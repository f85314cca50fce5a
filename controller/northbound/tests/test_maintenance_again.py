"""Maintenance whose answer is lost may be asked for again by its key, at the other one of a pair too."""

import pytest
from fastapi.testclient import TestClient

from controller.database import ChangeQuery
from controller.northbound.tests.site import HOUR_US, MANY, NIGHT, api_of
from controller.plan.maintenance import Maintenance
from controller.tests.fakes import START_US, FakeSite
from controller.use_cases import UseCases
from mininet_tests.testing.networks import chile_illinois
from topology.units import shown_time

WORK = "/v1/maintenance"
CIRCUIT = "chile-illinois"
LATER = {"circuit": CIRCUIT, "start": shown_time(START_US + 2 * HOUR_US), "duration_s": 7200}
FROM_NOW = {"circuit": CIRCUIT, "duration_s": 7200, "force": True}
KEY = {"Idempotency-Key": "splice-1"}


@pytest.fixture
def site(tmp_path):
    """A site of one circuit, on a database in a file."""
    site = FakeSite(chile_illinois(), standing=(), database=f"sqlite:///{tmp_path}/headway.db")
    yield site
    site.database.close()


def asked_of(site):
    """Who operates it, at the controller that leads."""
    return TestClient(api_of(site))


def asked_of_another(site):
    """Who operates it, at one that leads now and has read the database."""
    site.use_cases = UseCases(site.state, site.database)
    return asked_of(site)


@pytest.mark.parametrize("body", [LATER, FROM_NOW], ids=["later", "from now"])
@pytest.mark.parametrize("second", [asked_of, asked_of_another])
def test_asked_again_with_its_key_it_is_planned_once_and_breaks_what_it_broke(site, body, second):
    asked_of(site).post(MANY, json=NIGHT | {"commit": True})
    body = body | {"force": True}
    first = asked_of(site).post(WORK, json=body, headers=KEY)
    site.clock.now_us += 5_000_000
    again = second(site).post(WORK, json=body, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 200)
    assert len(first.json()["breaks"]) == 1
    assert again.json() == first.json()
    assert [one["id"] for one in second(site).get(WORK).json()] == [first.json()["maintenance"]["id"]]
    kinds = [row.change.kind for row in site.database.changes(ChangeQuery(limit=9))]
    assert kinds.count("maintenance.planned") == 1


def test_asked_again_while_it_is_being_saved_it_is_answered_once_it_is(site):
    def plans(name):
        work = Maintenance(name, CIRCUIT, START_US + HOUR_US, START_US + 2 * HOUR_US, key="k", fingerprint="f")
        return site.use_cases.maintaining.plan(lambda _: work, only_look=False, force=True)

    with site.state.changed:
        both = [plans("a"), plans("b")]
        assert [one.saved.done() for one in both] == [False, False]
    for one in both:
        one.saved.result(30)
    assert {one.value.maintenance.name for one in both} == {"a"}


def test_a_key_of_another_maintenance_is_refused_and_a_look_needs_none(site):
    client = asked_of(site)
    looked = client.post(WORK, json=LATER | {"only_look": True}, headers=KEY)
    made = client.post(WORK, json=LATER, headers=KEY)
    assert (looked.json()["planned"], made.status_code) == (False, 201)
    other = client.post(WORK, json=LATER | {"duration_s": 60}, headers=KEY)
    assert (other.status_code, other.json()["field"]) == (422, "Idempotency-Key")
    assert client.post(WORK, json=LATER, headers={"Idempotency-Key": "splice-2"}).status_code == 201
    assert client.post(WORK, json=LATER).status_code == client.post(WORK, json=LATER).status_code == 201


def test_its_key_is_told_to_nobody(site):
    asked_of(site).post(WORK, json=LATER, headers=KEY)
    client = asked_of(site)
    for path in (WORK, "/v1/changes", "/v1/scenario"):
        assert "splice-1" not in client.get(path).text


@pytest.mark.parametrize("body", [LATER, FROM_NOW], ids=["later", "from now"])
@pytest.mark.parametrize("second", [asked_of, asked_of_another])
def test_taken_back_again_it_stays_so_and_its_key_plans_nothing_anew(site, body, second):
    client = asked_of(site)
    before = client.get("/v1/scenario").json()["site"]["schedules"]
    made = client.post(WORK, json=body, headers=KEY).json()["maintenance"]
    site.clock.now_us += 5_000_000
    assert client.delete(f"{WORK}/{made['id']}").status_code == 200
    site.clock.now_us += 5_000_000
    client = second(site)
    again = client.delete(f"{WORK}/{made['id']}")
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    late = client.post(WORK, json=body, headers=KEY)
    assert (late.status_code, late.json()["planned"], late.json()["maintenance"]["id"]) == (200, False, made["id"])
    assert client.get(WORK).json() == []
    kinds = [row.change.kind for row in site.database.changes(ChangeQuery(limit=9))]
    assert kinds == ["maintenance.planned", "maintenance.cancelled"]
    if body is LATER:
        assert client.get("/v1/scenario").json()["site"]["schedules"] == before
        assert site.use_cases.maintaining.all(0) == ()
