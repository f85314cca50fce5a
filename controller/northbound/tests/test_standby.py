"""The API of a controller of a pair: who takes what changes something, and who leads."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient

from controller.northbound.access import all_may
from controller.northbound.api import api
from controller.northbound.standby import StandBy
from controller.northbound.tests.site import MANY, NIGHT, dependencies_of
from controller.northbound.under_way import UnderWay
from controller.plan.leading import LeaderView, PairStanding

LEADER = "https://ctl-a.example.org:8080"
STANDS_BY = LeaderView(PairStanding.STANDBY, False, 7, LEADER, "ctl-a", 1_790_000_000_000_000, 2_100_000)
LEADS = LeaderView(PairStanding.LEADER, True, 7, LEADER, "ctl-a", 1_790_000_000_000_000, 0, ("ctl-b",))


class AskedController:
    """A client of a controller that stands as it is told, and whether that was asked to let another one lead."""

    def __init__(self, site):
        self.site, self.view, self.left = site, STANDS_BY, 0
        self.there = ("ctl-b",)
        self.before = []  # how it stands until then, the last of it first
        behind = dependencies_of(site, leader=self._stands, standbys=lambda: self.there, leave=self._leave)
        self.client = TestClient(api(behind, all_may(lambda: datetime.now(UTC))), follow_redirects=False)

    def _stands(self):
        return self.before.pop() if self.before else self.view

    def _leave(self):
        self.left += 1


@pytest.fixture
def asked(site):
    """The client."""
    return AskedController(site)


def test_who_stands_by_passes_on_what_changes_something_with_method_and_path(asked, site):
    answer = asked.client.post(f"{MANY}?x=%20y", json=NIGHT)
    assert (answer.status_code, answer.headers["location"]) == (307, f"{LEADER}{MANY}?x=%20y")
    assert (answer.json()["type"], answer.json()["leader"]) == ("/problems/stands-by", LEADER)
    assert asked.client.delete(f"{MANY}/a").status_code == 307
    assert not site.value.wished.ledger.reservations


def test_what_happens_is_told_by_who_leads(asked):
    answer = asked.client.get("/v1/events")
    assert (answer.status_code, answer.headers["location"]) == (307, f"{LEADER}/v1/events")


@pytest.mark.parametrize(
    ("asked_for", "there"),
    [
        ("/v1/announcements/%E2%82%AC%C3%A4", "/v1/announcements/%E2%82%AC%C3%A4"),
        ("/v1/reservations/%0D%0ASet-Cookie:%20a=b", "/v1/reservations/%0D%0ASet-Cookie:%20a=b"),
        ("//evil.example/v1/leader/move", "/evil.example/v1/leader/move"),
        ("/v1/reservations/a%3Fb%23c", "/v1/reservations/a%3Fb%23c"),
    ],
)
def test_no_path_makes_another_header_or_leads_to_anybody_else(asked, asked_for, there):
    answer = asked.client.delete(f"http://testserver{asked_for}")
    assert (answer.status_code, answer.headers["location"]) == (307, LEADER + there)
    assert "set-cookie" not in answer.headers


def test_while_nobody_leads_it_is_said_when_to_ask_again(asked):
    asked.view = replace(STANDS_BY, address="", holder="")
    answer = asked.client.post(MANY, json=NIGHT)
    assert (answer.status_code, answer.json()["type"], answer.headers["retry-after"]) == (
        503,
        "/problems/no-leader",
        "1",
    )


@pytest.mark.parametrize(
    ("next_one", "status"),
    [(LEADS, 201), (STANDS_BY, 307)],
    ids=["it leads itself", "another one leads"],
)
def test_a_request_that_comes_while_nobody_leads_is_kept_until_it_is_known_who_does(asked, next_one, status):
    nobody = replace(STANDS_BY, address="", holder="")
    about_to = replace(LEADS, takes=False)
    asked.before, asked.view = ([about_to] * 3 if next_one is LEADS else []) + [nobody] * 3, next_one
    assert asked.client.post(MANY, json=NIGHT).status_code == status
    assert not asked.before


def test_a_thousand_requests_that_are_kept_look_as_often_as_one():
    looks = []

    async def answered(_scope, _receive, _send):
        looks.append("answered")

    def stands():
        looks.append("look")
        return LEADS if len(looks) > 1100 else replace(STANDS_BY, address="", holder="")

    async def all_of_them():
        app = StandBy(answered, stands, UnderWay())
        scope = {"type": "http", "method": "POST", "path": MANY, "query_string": b""}
        await asyncio.gather(*(app(scope, None, None) for _ in range(1000)))

    asyncio.run(all_of_them())
    assert looks.count("answered") == 1000
    assert looks.count("look") < 2200  # one when each comes, one when it goes, and a hundred between


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_who_lets_another_one_lead_waits_for_what_changes_something_until_that_is_answered(method):
    under_way, found = UnderWay(), []

    async def answered(_scope, _receive, _send):
        found.append(under_way.wait_for_none(0))

    scope = {"type": "http", "method": method, "path": MANY, "query_string": b""}
    asyncio.run(StandBy(answered, lambda: LEADS, under_way)(scope, None, None))
    assert found == [method == "GET"]
    assert under_way.wait_for_none(0)


def test_who_lets_another_one_lead_does_not_wait_for_what_is_kept_for_that_one(monkeypatch):
    monkeypatch.setattr("controller.northbound.standby.LOOKS", 1)
    under_way, found = UnderWay(), []

    def stands():
        found.append(under_way.wait_for_none(0))
        return STANDS_BY if len(found) > 2 else replace(STANDS_BY, address="", holder="")

    async def passed_on(_message):
        found.append(under_way.wait_for_none(0))

    scope = {"type": "http", "method": "POST", "path": MANY, "query_string": b""}
    asyncio.run(StandBy(None, stands, under_way)(scope, None, passed_on))
    assert found == [False, *[True] * (len(found) - 1)]  # it is counted before it is looked whether we lead


def test_a_leader_that_the_database_does_not_answer_decides_nothing(asked, site):
    asked.view = replace(LEADS, standing=PairStanding.UNSURE, takes=False)
    assert asked.client.post(MANY, json=NIGHT).json()["type"] == "/problems/leader-unsure"
    assert asked.client.get(MANY).status_code == 200
    assert not site.value.wished.ledger.reservations


def test_who_has_taken_the_row_keeps_a_request_until_it_leads(asked):
    about_to, views = replace(LEADS, takes=False), iter(range(3))
    behind = dependencies_of(asked.site, leader=lambda: LEADS if next(views, None) is None else about_to)
    answer = TestClient(api(behind, all_may(lambda: datetime.now(UTC)))).post(MANY, json=NIGHT)
    assert answer.status_code == 201
    assert next(views, None) is None


def test_nobody_waits_for_ever_for_who_is_about_to_lead(asked, monkeypatch):
    monkeypatch.setattr("controller.northbound.standby.LOOKS", 2)
    asked.view = replace(LEADS, takes=False)
    assert asked.client.post(MANY, json=NIGHT).json()["type"] == "/problems/no-leader"
    assert asked.client.get(MANY).status_code == 200


def test_what_only_reads_is_answered_by_who_stands_by_with_its_age(asked):
    assert asked.client.get(MANY).headers["age"] == "3"
    asked.view = LEADS
    assert "age" not in asked.client.get(MANY).headers
    assert asked.client.post(MANY, json=NIGHT).status_code == 201


def test_who_leads_is_said_by_each(asked):
    assert asked.client.get("/v1/leader").json() == {
        "leading": False,
        "standing": "standby",
        "term": 7,
        "leader": "ctl-a",
        "address": LEADER,
        "since": "2026-09-21T14:13:20Z",
        "lag_s": 2.1,
        "standbys": [],
    }
    asked.view = LEADS
    said = asked.client.get("/v1/leader").json()
    assert (said["leading"], said["standbys"]) == (True, ["ctl-b"])


def test_a_leader_lets_another_lead_only_if_one_stands_by(asked):
    asked.view = LEADS
    answer = asked.client.post("/v1/leader/move")
    assert (answer.status_code, answer.json()["standbys"], asked.left) == (202, ["ctl-b"], 1)


def test_a_leader_goes_by_who_stands_by_now_and_not_by_the_list_of_a_moment_ago(asked):
    asked.view, asked.there = LEADS, ()
    answer = asked.client.post("/v1/leader/move")
    assert (answer.status_code, asked.left) == (409, 0)
    assert "start it, or wait until `headway leader` lists it, and ask again" in answer.json()["detail"]
    asked.view, asked.there = replace(LEADS, others=()), ("ctl-b",)  # it has come since
    assert (asked.client.post("/v1/leader/move").status_code, asked.left) == (202, 1)


def test_one_that_is_alone_leads_and_is_asked_nothing_new(client):
    said = client.get("/v1/leader").json()
    assert (said["leading"], said["standing"], said["address"]) == (True, "alone", None)
    assert "age" not in client.get(MANY).headers
    assert client.post("/v1/leader/move").json()["detail"] == "this is no pair"


def test_who_stands_by_is_well_if_it_knows_what_was_promised_just_now(asked):
    assert asked.client.get("/healthz").json()["ok"]
    asked.view = replace(STANDS_BY, age_us=9_000_000)
    answer = asked.client.get("/healthz")
    assert (answer.status_code, answer.json()["reasons"]) == (
        503,
        ["this controller stands by, and what it knows of promises is 9 s old"],
    )


def test_who_stands_by_while_nobody_leads_is_not_well(asked):
    asked.view = replace(STANDS_BY, address="", holder="")
    answer = asked.client.get("/healthz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["the pair: no controller leads"])


def test_a_leader_of_which_nobody_knows_whether_it_leads_is_not_well(asked):
    why = "the pair: the database does not say that this controller still leads"
    asked.view = LEADS
    assert why not in asked.client.get("/healthz").json()["reasons"]
    asked.view = replace(LEADS, standing=PairStanding.UNSURE, takes=False)
    asked.site.converge()
    answer = asked.client.get("/healthz")
    assert (answer.status_code, why in answer.json()["reasons"]) == (503, True)
    assert "headway_healthy 0.0" in asked.client.get("/metrics").text


def test_metrics_of_who_stands_by_tell_nothing_of_the_site(asked):
    text = asked.client.get("/metrics").text
    assert "headway_leading 0.0" in text
    assert "headway_leader_unsure 0.0" in text
    assert "headway_standby_lag_seconds 2.1" in text
    assert "headway_plan_in_force" not in text
    asked.view = LEADS
    text = asked.client.get("/metrics").text
    assert "headway_leading 1.0" in text
    assert "headway_standbys 1.0" in text
    asked.view = replace(LEADS, standing=PairStanding.UNSURE, takes=False)
    assert "headway_leader_unsure 1.0" in asked.client.get("/metrics").text
    asked.view = LEADS
    assert "headway_plan_in_force" in text


def test_the_page_follows_the_leader_to_addresses_of_the_configuration_alone(site):
    behind = dependencies_of(site, leader=lambda: STANDS_BY, others=("https://ctl-b.example.org",))
    answer = TestClient(api(behind, all_may(lambda: datetime.now(UTC)))).get("/")
    assert 'data-others="https://ctl-b.example.org"' in answer.text
    assert f'<a id="leader" href="{LEADER}">' in answer.text
    assert "connect-src 'self' https://ctl-b.example.org" in answer.headers["content-security-policy"]
    icon, script = (
        TestClient(api(behind, all_may(lambda: datetime.now(UTC)))).get(f"/static/any/{name}").headers
        for name in ("icon.svg", "page.js")
    )
    assert icon["cross-origin-resource-policy"] == "cross-origin"
    assert script["cross-origin-resource-policy"] == "same-origin"
    assert LEADER not in answer.headers["content-security-policy"]  # which only the database names
    alone = TestClient(api(dependencies_of(site), all_may(lambda: datetime.now(UTC)))).get("/")
    assert "data-others" not in alone.text
    assert "connect-src" not in alone.headers["content-security-policy"]


def test_the_page_says_who_leads_and_offers_to_change_something_only_there(asked):
    stood_by = asked.client.get("/").text
    assert "This controller stands by: ctl-a leads." in stood_by
    assert f'href="{LEADER}">' in stood_by
    assert 'id="reserve"' not in stood_by
    assert asked.client.get("/v1/needs").json()["headline"] == "This controller stands by: ctl-a leads."
    leading = AskedController(asked.site)
    leading.view = LEADS
    said = leading.client.get("/").text
    assert "ctl-a leads, and is asked here; ctl-b stands by." in said
    assert 'id="reserve"' in said
