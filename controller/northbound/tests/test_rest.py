"""The API in process, on a site without switches."""

import doctest

import pytest
from fastapi.testclient import TestClient

from controller.northbound import render
from controller.northbound.rest import api
from controller.tests.fakes import ready_site

IMAGE = {"id": "image", "bytes": 2_688_024_580, "from": ["base20", "base21"], "to": "arch"}


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


@pytest.fixture
def client(site):
    """A client of its API."""
    return TestClient(api(site.service, site.book.site.network))


def test_examples_in_the_docstrings_are_true():
    assert doctest.testmod(render).failed == 0


def test_an_announcement_is_answered_with_a_promise(client):
    answer = client.post("/v1/announcements", json=IMAGE)
    assert answer.status_code == 201
    assert 24.8 < answer.json()["promised_in_s"] < 24.9
    assert [a["id"] for a in client.get("/v1/announcements").json()] == ["image"]


def test_an_announcement_without_a_name_gets_one(client):
    named = client.post("/v1/announcements", json={k: v for k, v in IMAGE.items() if k != "id"}).json()["id"]
    assert client.delete(f"/v1/announcements/{named}").status_code == 200


def test_a_deadline_that_cannot_be_met_is_a_problem_with_the_numbers(client):
    answer = client.post("/v1/announcements", json=IMAGE | {"deadline_s": 5})
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["type"], body["asked_s"]) == ("/problems/deadline-unreachable", 5.0)
    assert body["needed_s"] > 24


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"bytes": -1}, 422, "bytes"),
        ({"deadline_s": 0}, 422, "deadline_s"),
        ({"class": "fast"}, 422, "class"),
        ({"urgency": 3}, 422, "urgency"),
        ({"class": "predictable"}, 422, "class"),
        ({"from": ["base23"]}, 422, "from"),
    ],
)
def test_a_request_that_makes_no_sense_names_its_field(client, change, status, field):
    answer = client.post("/v1/announcements", json=IMAGE | change)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert field in answer.json()["detail"]


def test_a_host_nobody_knows_is_404_with_those_there_are(client):
    answer = client.post("/v1/announcements", json=IMAGE | {"from": ["base99"]})
    assert answer.status_code == 404
    assert answer.json()["name"] == "base99"
    assert "arch" in answer.json()["known"]


def test_releasing_what_is_not_there_is_404(client):
    assert client.delete("/v1/announcements/nothing").status_code == 404


def test_the_plan_shows_what_each_layer_lets_through(client):
    plan = client.get("/v1/plan").json()
    layers = plan["layers"]
    assert plan["violations"] == []
    assert sum(layers["hosts_frame_bps"].values()) <= sum(layers["meters_frame_bps"].values())
    assert sum(layers["queues_frame_bps"].values()) <= layers["circuit_frame_bps"]


def test_health_is_good_when_the_plan_is_in_force_and_bad_when_it_is_not(client, site):
    assert client.get("/healthz").status_code == 200
    site.switches.gone = True
    client.post("/v1/announcements", json=IMAGE)
    site.converge()
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert "SwitchGone" in answer.json()["error"]


def test_hosts_topology_and_transitions_are_shown(client):
    assert {h["name"] for h in client.get("/v1/hosts").json()} == {"base20", "base21", "base22", "base23", "arch"}
    assert any(link["circuit"] for link in client.get("/v1/topology").json()["links"])
    assert client.get("/v1/transitions").json()[0]["place"] == "queues"


def test_the_api_describes_itself(client):
    assert "/v1/announcements" in client.get("/openapi.json").json()["paths"]
