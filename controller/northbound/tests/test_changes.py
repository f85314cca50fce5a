"""Who has changed what: remembered with the change, told to who may know."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient

from controller.asker import CONTROLLER
from controller.database import Changes
from controller.database.changed import Noted, SaveRecord
from controller.database.verify import verified
from controller.northbound.access import AccessRules, all_may
from controller.northbound.api import api
from controller.northbound.rest.pages import cursor_after
from controller.northbound.tests.site import HOUR_US, MANY, NIGHT, dependencies_of
from controller.refusals import MOST
from controller.security.tokens import Role, Tokens, new_token
from controller.tests.fakes import START_US, FakeSite
from mininet_tests.testing.networks import chile_illinois
from topology.units import shown_time

CHANGES = "/v1/changes"
IMAGE = {"id": "image", "bytes": 10**9, "from": ["base20"], "to": "arch"}
NOW = datetime(2026, 11, 23, tzinfo=UTC)
ANA, KEPT = new_token("ana", Role.ADMIN, NOW, NOW + timedelta(days=1))
BOB, KEPT_TOO = new_token("bob", Role.OPERATE, NOW, NOW + timedelta(days=1))


@pytest.fixture
def site(tmp_path):
    """A site on a database in a file, that is looked at from beside."""
    site = FakeSite(chile_illinois(), standing=(), database=f"sqlite:///{tmp_path}/headway.db")
    yield site
    site.database.close()


def asking_from(site, address, token=None, rules=None):
    """A client of its API at an address."""
    rules = rules or AccessRules(lambda: Tokens((KEPT, KEPT_TOO)), lambda: NOW, local=Role.ADMIN)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return TestClient(api(dependencies_of(site), rules), client=(address, 5000), headers=headers)


def changes(site, **query):
    """What is remembered, as somebody here sees it."""
    return asking_from(site, "127.0.0.1").get(CHANGES, params=query).json()["changes"]


def kinds(site, **query):
    """What has happened, and by whom."""
    return [(one["kind"], one["who"]) for one in changes(site, limit=1000, **query)]


def test_each_change_of_a_reservation_is_remembered_with_who_when_from_where_and_what(site):
    ana, bob = asking_from(site, "192.0.2.7", ANA), asking_from(site, "2001:db8::1", BOB)
    held = ana.post(MANY, json=NIGHT, headers={"X-Request-Id": "night-1"})
    one = f"{MANY}/{held.json()['id']}"
    site.clock.now_us += 1_000_000
    bob.post(f"{one}/renew", json={"hold_s": 120})
    bob.post(f"{one}/commit")
    changed = bob.patch(one, json={"rate": "400 Mbit/s"}, headers={"If-Match": "*"})
    asking_from(site, "127.0.0.1").delete(one)
    found = changes(site, id=held.json()["id"])
    assert [(row["kind"], row["who"], row["address"]) for row in found] == [
        ("reservation.held", "token:ana", "192.0.2.7"),
        ("reservation.renewed", "token:bob", "2001:db8::1"),
        ("reservation.committed", "token:bob", "2001:db8::1"),
        ("reservation.changed", "token:bob", "2001:db8::1"),
        ("reservation.released", "local", "127.0.0.1"),
    ]
    assert [row["at"] for row in found] == [shown_time(START_US), *[shown_time(START_US + 1_000_000)] * 4]
    assert found[0]["old"] is None
    assert (found[0]["new"]["rate_bps"], found[0]["new"]["a_end"]) == (600_000_000, "la-serena")
    assert (found[0]["request_id"], found[3]["request_id"]) == ("night-1", changed.headers["x-request-id"])
    assert (found[3]["old"], found[3]["new"]) == (
        {"version": 3, "rate_bps": 600_000_000},
        {"version": 4, "rate_bps": 400_000_000},
    )
    assert {row["outcome"] for row in found} == {"done"}
    assert verified(site.database.url).fault is None


def test_a_hold_that_is_committed_in_the_same_request_is_two_changes_of_one_request(site):
    ana = asking_from(site, "192.0.2.7", ANA)
    ana.post(MANY, json=NIGHT | {"commit": True})
    assert kinds(site) == [("reservation.held", "token:ana"), ("reservation.committed", "token:ana")]
    assert len({row["request_id"] for row in changes(site)}) == 1


def test_what_goes_through_a_thread_has_its_asker_too(site):
    asking_from(site, "192.0.2.7", ANA).post(MANY, json=NIGHT, headers={"Idempotency-Key": "k"})
    (row,) = changes(site)
    assert (row["who"], row["address"]) == ("token:ana", "192.0.2.7")
    assert "k" not in row["new"].values()  # the names of requests are their owners'


def test_what_nobody_has_asked_for_is_the_controllers(site):
    ana = asking_from(site, "192.0.2.7", ANA)
    lapsed = ana.post(MANY, json=NIGHT).json()["id"]
    ana.post(MANY, json=NIGHT | {"rate": "1 Mbit/s", "commit": True, "duration_s": 60})
    ana.post("/v1/announcements", json=IMAGE)
    site.clock.now_us += 61_000_000
    ana.get(f"{MANY}/{lapsed}")  # somebody looks, and so the clock acts
    for us in (HOUR_US - 61_000_000, 60_000_000):
        site.clock.now_us += us
        site.use_cases.tick()
    assert kinds(site)[4:] == [
        ("reservation.expired", "controller"),
        ("announcement.lapsed", "controller"),
        ("reservation.provisioning", "controller"),
        ("reservation.noted", "controller"),  # no switch carries it
        ("reservation.expired", "controller"),
    ]
    assert {(row["address"], row["request_id"]) for row in changes(site, who="controller")} == {("", "")}


def test_what_became_of_an_announcement_is_remembered(site):
    ana = asking_from(site, "192.0.2.7", ANA)
    ana.post("/v1/announcements", json=IMAGE)
    ana.post("/v1/announcements", json=IMAGE)  # the same: nothing changes
    ana.delete("/v1/announcements/image")
    made, gone = changes(site, id="image")
    assert (made["kind"], made["new"]["size_bytes"], made["new"]["senders"]) == (
        "announcement.promised",
        10**9,
        ["base20"],
    )
    assert (gone["kind"], gone["old"]) == ("announcement.released", {"state": "promised"})
    assert gone["new"] == {"state": "released", "delivered_bytes": 0}


def test_a_refusal_is_remembered_with_what_was_asked_and_some_of_them_only(site):
    ana = asking_from(site, "192.0.2.7", ANA)
    assert ana.post(MANY, json=NIGHT | {"rate": "90 Gbit/s"}).status_code == 409
    (row,) = changes(site)
    assert (row["kind"], row["outcome"], row["who"]) == ("reservation.refused", "capacity-unavailable", "token:ana")
    assert (row["old"], row["new"]["rate_bps"]) == (None, 90_000_000_000)
    for _ in range(MOST + 9):
        ana.post(MANY, json=NIGHT | {"rate": "90 Gbit/s"})
    assert len(changes(site, limit=1000)) == MOST
    site.clock.now_us += 60_000_000
    ana.post(MANY, json=NIGHT | {"rate": "90 Gbit/s"})
    assert changes(site, limit=1000)[-1]["new"]["unwritten"] == 10
    soon = IMAGE | {"bytes": 10**15, "deadline_s": 10}
    assert ana.post("/v1/announcements", json=soon).json()["type"] == "/problems/deadline-unreachable"
    assert changes(site, limit=1000)[-1]["kind"] == "announcement.refused"


def test_pages_and_filters(site):
    ana, bob = asking_from(site, "192.0.2.7", ANA), asking_from(site, "192.0.2.8", BOB)
    for n in range(6):
        (ana if n % 2 else bob).post(MANY, json=NIGHT | {"rate": "1 Mbit/s"})
        site.clock.now_us += 1_000_000
    here, found, cursor = asking_from(site, "127.0.0.1"), [], None
    while True:
        page = here.get(CHANGES, params={"limit": 4} | ({"cursor": cursor} if cursor else {}))
        found += [row["number"] for row in page.json()["changes"]]
        cursor = page.json()["next"]
        assert ('rel="next"' in page.headers.get("link", "")) == (cursor is not None)
        if cursor is None:
            break
    assert found == [1, 2, 3, 4, 5, 6]
    assert [row["number"] for row in changes(site, who="token:ana")] == [2, 4, 6]
    since = shown_time(START_US + 3_000_000)
    assert [row["number"] for row in changes(site, since=since)] == [4, 5, 6]
    assert changes(site, id="nothing") == []
    assert here.get(CHANGES, params={"cursor": "x"}).status_code == 422
    assert here.get(CHANGES, params={"since": "yesterday"}).status_code == 422


@pytest.mark.parametrize("path", [CHANGES, "/v1/history", MANY, "/v1/announcements"])
def test_a_cursor_that_no_database_could_hold_is_none_of_ours(site, path):
    here = asking_from(site, "127.0.0.1")
    wrong = here.get(path, params={"cursor": cursor_after(2**63)})
    assert (wrong.status_code, wrong.json().get("field")) == (422, "cursor")
    assert here.get(path, params={"cursor": cursor_after(2**63 - 1)}).json()["next"] is None


def test_who_may_not_know_is_told_so(site):
    assert asking_from(site, "192.0.2.8", BOB).get(CHANGES).json()["needs"] == "admin"
    assert asking_from(site, "192.0.2.8").get(CHANGES).status_code == 401


def test_a_request_has_a_name_of_its_own_or_ours(site):
    here = asking_from(site, "127.0.0.1", rules=all_may(lambda: NOW))
    assert here.get(CHANGES, headers={"X-Request-Id": "a-1"}).headers["x-request-id"] == "a-1"
    for bad in ("", "x" * 65, "a b"):
        given = here.get(CHANGES, headers={"X-Request-Id": bad}).headers["x-request-id"]
        assert given not in {"", bad}
    refused = asking_from(site, "192.0.2.8").get(CHANGES, headers={"X-Request-Id": "mine"})
    assert (refused.status_code, refused.headers["x-request-id"]) == (401, "mine")


def test_a_database_that_cannot_be_read_is_503(site):
    site.database.close()
    assert asking_from(site, "127.0.0.1").get(CHANGES).status_code == 503


def test_half_a_character_that_the_database_has_from_before_is_shown_as_one_that_is_missing(site, tmp_path):
    here = asking_from(site, "127.0.0.1")
    held = here.post(MANY, json=NIGHT).json()["id"]
    here.delete(f"{MANY}/{held}")
    with closing(sqlite3.connect(tmp_path / "headway.db")) as beside, beside:
        beside.execute("UPDATE ended_reservations SET reason = ?", (r"half of \ud83d",))
    noted = Noted("provider.state", "bought", None, {"reason": "half of \ud83d"})
    site.database.save(Changes(record=SaveRecord(CONTROLLER, START_US, noted=(noted,)))).result(10)
    assert here.get("/v1/history").json()["ended"][0]["reservation"]["reason"] == "half of \ufffd"
    assert changes(site, id="bought")[0]["new"] == {"reason": "half of \ufffd"}


def test_what_is_stored_is_what_is_shown(site):
    asking_from(site, "192.0.2.7", ANA).post(MANY, json=NIGHT | {"description": 'é "x" \\ \U0001f600'})
    (row,) = changes(site)
    assert row["new"]["description"] == 'é "x" \\ \U0001f600'
    assert json.dumps(row)
