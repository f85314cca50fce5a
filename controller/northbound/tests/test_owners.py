"""Whose a promise is, who else may change it, and how one finds one's own."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient

from controller.database import ChangeQuery
from controller.northbound.access import AccessRules
from controller.northbound.api import api
from controller.northbound.tests.site import HOUR_US, MANY, NIGHT, dependencies_of
from controller.plan.admission import Request
from controller.plan.deliveries import LAST_COUNT_US
from controller.plan.ledger import Created
from controller.plan.quotas import Quota, Quotas
from controller.security.tokens import Role, Tokens, new_token
from controller.tests.fakes import START_US, FakeSite
from controller.use_cases import UseCases
from mininet_tests.testing.networks import chile_illinois
from topology.protocol import FlowClass
from topology.units import shown_time

NOW = datetime(2026, 11, 23, tzinfo=UTC)
PEOPLE = {"ana": ("lsst",), "bob": ("lsst", "alma"), "eve": ()}
MADE = {
    name: new_token(name, Role.RESERVE, NOW, NOW + timedelta(days=1), groups) for name, groups in PEOPLE.items()
} | {"olga": new_token("olga", Role.OPERATE, NOW, NOW + timedelta(days=1))}
RULES = AccessRules(lambda: Tokens(tuple(kept for _, kept in MADE.values())), lambda: NOW)
SMALL = NIGHT | {"rate": "1 Mbit/s"}
IMAGES = "/v1/announcements"
IMAGE = {"id": "image", "bytes": 10**9, "from": ["base20"], "to": "arch"}


QUOTAS = Quotas({"group:alma": Quota(20_000_000, 10**9, 48 * HOUR_US, 3)})


@pytest.fixture
def site(tmp_path):
    """A site on a database in a file, where one group has a quota."""
    site = FakeSite(chile_illinois(), standing=(), database=f"sqlite:///{tmp_path}/headway.db")
    site.use_cases.allowances.quotas = QUOTAS
    yield site
    site.database.close()


@pytest.fixture
def person(site):
    """What gives a person's client."""
    app = api(dependencies_of(site), RULES)

    def of(name):
        headers = {"Authorization": f"Bearer {MADE[name][0]}"}
        return TestClient(app, client=("192.0.2.1", 5000), headers=headers)

    return of


def test_what_is_made_is_its_maker_s_or_a_group_s_of_that_one(person):
    own = person("ana").post(MANY, json=SMALL).json()
    assert (own["owner"], own["creator"]) == ("token:ana", "token:ana")
    ours = person("ana").post(MANY, json=SMALL | {"owner": "group:lsst"}).json()
    assert (ours["owner"], ours["creator"]) == ("group:lsst", "token:ana")
    image = person("bob").post(IMAGES, json=IMAGE | {"owner": "group:alma"}).json()
    assert (image["owner"], image["creator"]) == ("group:alma", "token:bob")
    for other in ("group:alma", "token:bob", "lsst", "controller"):
        for many, body in ((MANY, SMALL), (IMAGES, IMAGE | {"id": "another"})):
            refused = person("ana").post(many, json=body | {"owner": other})
            assert (refused.status_code, refused.json()["needs"]) == (403, "operate"), refused.text
    assert person("olga").post(MANY, json=SMALL | {"owner": "token:ana"}).json()["owner"] == "token:ana"


@pytest.mark.parametrize(("who", "may"), [("ana", True), ("bob", True), ("eve", False), ("olga", True)], ids=str)
def test_a_group_s_are_changed_by_its_members_and_by_who_operates_and_by_nobody_else(person, who, may):
    held = person("ana").post(MANY, json=SMALL | {"owner": "group:lsst"}).json()
    one, client = f"{MANY}/{held['id']}", person(who)
    answers = [
        client.post(f"{one}/renew"),
        client.post(f"{one}/commit"),
        client.patch(one, json={"description": "ours"}, headers={"If-Match": "*"}),
        client.delete(one),
    ]
    assert person("ana").post(IMAGES, json=IMAGE | {"owner": "group:lsst"}).status_code == 201
    answers.append(client.delete(f"{IMAGES}/image"))
    assert [answer.status_code for answer in answers] == [200 if may else 403] * 5, [a.text for a in answers]
    if not may:
        said = answers[0].json()
        assert (said["type"], said["needs"], said["owner"]) == ("/problems/not-yours", "operate", "group:lsst")
        assert client.get(one).json()["version"] == held["version"]


def test_one_s_own_is_handed_to_a_group_of_one_s_and_to_no_other(person):
    held = person("ana").post(MANY, json=SMALL).json()
    one = f"{MANY}/{held['id']}"
    assert person("bob").delete(one).status_code == 403
    assert person("ana").patch(one, json={"owner": "group:alma"}, headers={"If-Match": "*"}).status_code == 403
    given = person("ana").patch(one, json={"owner": "group:lsst"}, headers={"If-Match": "*"}).json()
    assert (given["owner"], given["creator"]) == ("group:lsst", "token:ana")
    assert person("bob").delete(one).json()["state"] == "released"


def test_what_somebody_else_holds_is_not_committed_by_who_knows_its_key(person):
    held = person("ana").post(MANY, json=SMALL, headers={"Idempotency-Key": "night"}).json()
    taken = person("eve").post(MANY, json=SMALL | {"commit": True}, headers={"Idempotency-Key": "night"})
    assert taken.status_code == 422
    assert person("ana").get(f"{MANY}/{held['id']}").json()["state"] == "held"


def refused_as_taken(answer, field, name):
    """Whether an answer says that somebody else's promise has the key or the name, and nothing of that promise."""
    said = answer.json()
    assert (answer.status_code, said["type"], said["field"], said["name"]) == (409, "/problems/taken", field, name), (
        said
    )
    return "that is not yours" in said["detail"] and "token:ana" not in answer.text


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_key_of_somebody_else_s_reservation_is_taken_and_is_still_one_s_own(person, has_ended):
    key = {"Idempotency-Key": "night-2026-11-21"}
    held = person("ana").post(MANY, json=SMALL, headers=key).json()
    if has_ended:
        person("ana").delete(f"{MANY}/{held['id']}")
    for other in ("bob", "eve", "olga"):
        assert refused_as_taken(
            person(other).post(MANY, json=SMALL, headers=key), "Idempotency-Key", key["Idempotency-Key"]
        )
    again = person("ana").post(MANY, json=SMALL, headers=key)
    assert (again.status_code, again.json()["id"]) == (200, held["id"])


@pytest.mark.parametrize("later_us", [None, 0, LAST_COUNT_US], ids=["in the plan", "ended just now", "in the database"])
def test_a_key_of_somebody_else_s_announcement_is_taken(site, person, later_us):
    body, key = {name: value for name, value in IMAGE.items() if name != "id"}, {"Idempotency-Key": "night"}
    made = person("ana").post(IMAGES, json=body, headers=key).json()
    if later_us is not None:
        person("ana").delete(f"{IMAGES}/{made['id']}")
        site.clock.now_us += later_us
        site.use_cases.tick()
    assert refused_as_taken(person("eve").post(IMAGES, json=body, headers=key), "Idempotency-Key", "night")
    again = person("ana").post(IMAGES, json=body, headers=key)
    assert (again.status_code, again.json()["id"]) == (200, made["id"])


def test_a_name_of_somebody_else_s_announcement_is_taken(person):
    assert person("ana").post(IMAGES, json=IMAGE).status_code == 201
    assert refused_as_taken(person("eve").post(IMAGES, json=IMAGE), "id", "image")
    assert person("ana").post(IMAGES, json=IMAGE).status_code == 200


def test_what_is_a_group_s_is_asked_for_again_by_its_members_and_by_who_has_made_it(person):
    key, ours = {"Idempotency-Key": "night"}, {"owner": "group:lsst"}
    for many, body in ((MANY, SMALL), (IMAGES, IMAGE)):
        made = person("olga").post(many, json=body | ours, headers=key).json()
        for again in ("olga", "ana", "bob"):
            answer = person(again).post(many, json=body | ours, headers=key)
            assert (answer.status_code, answer.json()["id"]) == (200, made["id"]), again
        assert person("eve").post(many, json=body | ours, headers=key).status_code == 409


def test_lists_find_what_is_one_s_own_and_one_s_groups_before_and_after_its_end(person):
    made = {
        name: person(name).post(MANY, json=SMALL | owner).json()["id"]
        for name, owner in (("ana", {}), ("bob", {"owner": "group:alma"}), ("eve", {}))
    }
    for number, (name, owner) in enumerate((("ana", {}), ("bob", {"owner": "group:alma"}))):
        assert person(name).post(IMAGES, json=IMAGE | {"id": f"image{number}"} | owner).status_code == 201

    def found(name, many, **query):
        return [one["id"] for one in person(name).get(many, params=query).json()[many.rpartition("/")[2]]]

    for _ in ("live", "ended"):
        assert found("ana", MANY, mine=True) == [made["ana"]]
        assert found("bob", MANY, mine=True) == [made["bob"]]
        assert found("bob", MANY, owner=["group:alma", "token:eve"]) == [made["bob"], made["eve"]]
        assert found("eve", MANY) == list(made.values())
        assert found("ana", IMAGES, mine=True) == ["image0"]
        assert found("ana", IMAGES, owner="group:alma") == ["image1"]
        calendar = person("bob").get("/v1/calendar.ics", params={"mine": True}).text
        assert (made["bob"] in calendar, made["ana"] in calendar) == (_ == "live", False)
        for name in made.values():
            person("olga").delete(f"{MANY}/{name}")
        for name in ("image0", "image1"):
            person("olga").delete(f"{IMAGES}/{name}")


def test_owners_outlive_a_restart_and_are_remembered_with_the_change(site, person):
    held = person("ana").post(MANY, json=SMALL | {"owner": "group:lsst"}).json()
    person("ana").post(IMAGES, json=IMAGE | {"owner": "group:lsst"})
    person("ana").patch(f"{MANY}/{held['id']}", json={"owner": "token:ana"}, headers={"If-Match": "*"})
    again = UseCases(site.state, site.database)
    assert [(one.owner, one.creator) for one in again.reservations()] == [("token:ana", "token:ana")]
    assert [(one.owner, one.creator) for one in again.announcements()] == [("group:lsst", "token:ana")]
    told = [row.change for row in dependencies_of(site).changes(ChangeQuery(limit=100))]
    assert ['"owner":"group:lsst","creator":"token:ana"' in one.new for one in told] == [True, True, False]
    assert (told[-1].old, told[-1].new) == (
        '{"version":1,"owner":"group:lsst"}',
        '{"version":2,"owner":"token:ana"}',
    )


def test_what_nobody_owns_is_changed_by_who_operates_alone(site, person):
    asked = Request("la-serena", "champaign", FlowClass.URGENT, 1_000_000, START_US + HOUR_US, START_US + 2 * HOUR_US)
    site.use_cases.hold(lambda _: asked, lambda now_us: Created("old", now_us)).saved.result()
    with site.state.changed:
        known = site.state.wished.ledger.reservations
        known["old"] = replace(known["old"], owner="")
    assert person("ana").get(f"{MANY}/old").json()["owner"] is None
    refused = person("ana").delete(f"{MANY}/old")
    assert (refused.status_code, refused.json()["owner"]) == (403, None)
    assert "is nobody's" in refused.json()["detail"]
    assert person("olga").delete(f"{MANY}/old").status_code == 200


def test_the_page_offers_what_one_may_do_with_what_is_there(person):
    held = person("ana").post(MANY, json=SMALL | {"owner": "group:lsst"}).json()
    page = f"/reservations/{held['id']}"
    for name, offered in (("ana", True), ("bob", True), ("eve", False), ("olga", True)):
        text = person(name).get(page).text
        assert ('data-act="release"' in text) == offered, name
        assert "group:lsst" in text
    assert "<option>group:alma</option><option>group:lsst</option>" in person("bob").get("/").text
    assert 'name="owner"' not in person("eve").get("/").text


ALMA = {"owner": "group:alma"}


def left(client):
    """What is left of a group's quota."""
    return next(one["left"] for one in client.get("/v1/whoami").json()["owners"] if one["owner"] == "group:alma")


def test_whoami_says_who_one_is_and_what_is_left(person):
    assert person("eve").get("/v1/whoami").json() == {
        "name": "token:eve",
        "role": "reserve",
        "groups": [],
        "owners": [
            {
                "owner": "token:eve",
                "quota": dict.fromkeys(("rate_bps", "bytes", "ahead_s", "entries")),
                "used": {"rate_bps": 0, "bytes": 0, "entries": 0},
                "left": dict.fromkeys(("rate_bps", "bytes", "ahead_s", "entries")),
            }
        ],
    }
    bob = person("bob")
    bob.post(MANY, json=SMALL | {"rate": "8 Mbit/s"} | ALMA)
    bob.post(IMAGES, json=IMAGE | {"bytes": 4 * 10**8} | ALMA)
    said = bob.get("/v1/whoami").json()
    assert (said["groups"], [one["owner"] for one in said["owners"]]) == (
        ["alma", "lsst"],
        ["token:bob", "group:alma", "group:lsst"],
    )
    assert said["owners"][1]["used"] == {"rate_bps": 8_000_000, "bytes": 4 * 10**8, "entries": 2}
    assert left(bob) == {"rate_bps": 12_000_000, "bytes": 6 * 10**8, "ahead_s": 172_800, "entries": 1}
    operator = person("olga").get("/v1/whoami").json()["owners"][0]
    assert (operator["quota"], operator["left"]) == (None, None)


def test_what_is_beyond_a_quota_is_refused_with_what_is_left_and_changes_nothing(person):
    bob = person("bob")
    bob.post(MANY, json=SMALL | {"rate": "15 Mbit/s"} | ALMA)
    before = left(bob)
    for many, body, limit, asked, rest in (
        (MANY, SMALL | {"rate": "6 Mbit/s"}, "rate_bps", 6_000_000, 5_000_000),
        (MANY, SMALL | {"duration_s": 48 * 3600}, "ahead_s", 49 * 3600, 48 * 3600),
        (IMAGES, IMAGE | {"bytes": 10**9 + 1}, "bytes", 10**9 + 1, 10**9),
    ):
        refused = bob.post(many, json=body | ALMA)
        said = refused.json()
        assert (refused.status_code, said["type"], said["offers"]) == (409, "/problems/quota", []), said
        assert (said["quota"]["limit"], said["quota"]["asked"], said["quota"]["left"]) == (limit, asked, rest)
        assert said["quota"]["owner"] == "group:alma"
        assert "left" in said["detail"] or "ahead" in said["detail"]
    assert left(bob) == before
    for _ in range(2):
        assert bob.post(MANY, json=SMALL | ALMA).status_code == 201
    assert bob.post(MANY, json=SMALL | ALMA).json()["quota"]["limit"] == "entries"
    assert bob.post(MANY, json=SMALL).status_code == 201  # his own have no quota
    assert person("olga").post(MANY, json=SMALL | ALMA).status_code == 201
    assert left(bob)["entries"] == 0


def test_a_change_counts_its_own_share_as_free_and_less_is_never_too_much(person):
    bob = person("bob")
    held = bob.post(MANY, json=SMALL | {"rate": "15 Mbit/s"} | ALMA).json()
    person("olga").post(MANY, json=SMALL | {"rate": "10 Mbit/s"} | ALMA)  # who operates is not asked: 25 of 20 Mbit/s

    def changed(**what):
        answer = bob.patch(f"{MANY}/{held['id']}", json=what, headers={"If-Match": "*"})
        return answer.status_code, answer.json().get("quota")

    assert changed(rate="14 Mbit/s")[0] == 200
    status, quota = changed(rate="15 Mbit/s")
    assert (status, quota["asked"], quota["left"]) == (409, 15_000_000, 10_000_000)
    assert changed(rate="10 Mbit/s")[0] == 200
    own = bob.post(MANY, json=SMALL | {"rate": "1 Mbit/s"}).json()
    given = bob.patch(f"{MANY}/{own['id']}", json=ALMA, headers={"If-Match": "*"})
    assert (given.status_code, given.json()["quota"]["limit"]) == (409, "rate_bps")


def test_what_was_refused_for_a_quota_is_remembered(site, person):
    person("bob").post(MANY, json=SMALL | {"rate": "21 Mbit/s"} | ALMA)
    (row,) = dependencies_of(site).changes(ChangeQuery(limit=10))
    assert (row.change.kind, row.change.who, row.change.outcome) == ("reservation.refused", "token:bob", "quota")


def offered(client, many, body):
    """The kinds of the offers of what is refused, though it is within the quota."""
    refused = client.post(many, json=body | ALMA).json()
    assert refused["type"] in {"/problems/capacity-unavailable", "/problems/deadline-unreachable"}, refused
    return {offer["kind"] for offer in refused["offers"]}


@pytest.mark.parametrize(("hours", "is_within"), [(10, True), (47, False)])
def test_what_is_offered_so_late_that_a_quota_would_refuse_it_is_left_out(person, hours, is_within):
    person("olga").post(MANY, json=SMALL | {"rate": "930 Mbit/s", "duration_s": hours * 3600})
    found = offered(person("bob"), MANY, SMALL | {"rate": "15 Mbit/s", "duration_s": 3600})
    assert found == {"highest-rate"} | ({"earliest-start"} if is_within else set())


def test_what_is_offered_beside_what_one_s_group_has_then_is_left_out_if_both_are_too_much(person):
    bob = person("bob")
    person("olga").post(MANY, json=SMALL | {"rate": "930 Mbit/s", "duration_s": 3600})
    then = {"start": shown_time(START_US + 2 * HOUR_US), "rate": "15 Mbit/s", "duration_s": 3600}
    later = bob.post(MANY, json=SMALL | then | ALMA).json()
    assert "earliest-start" not in offered(bob, MANY, SMALL | {"rate": "15 Mbit/s", "duration_s": 3600})
    bob.delete(f"{MANY}/{later['id']}")
    assert "earliest-start" in offered(bob, MANY, SMALL | {"rate": "15 Mbit/s", "duration_s": 3600})


def test_a_change_is_offered_nothing_that_a_quota_would_refuse(person):
    bob = person("bob")
    person("olga").post(MANY, json=SMALL | {"rate": "920 Mbit/s", "duration_s": 47 * 3600})
    held = bob.post(MANY, json=SMALL | {"rate": "15 Mbit/s", "duration_s": 3600} | ALMA).json()
    refused = bob.patch(f"{MANY}/{held['id']}", json={"rate": "20 Mbit/s"}, headers={"If-Match": "*"}).json()
    assert {offer["kind"] for offer in refused["offers"]} == {"highest-rate"}


def test_a_deadline_that_is_offered_is_within_the_quota_and_a_start_counts_from_when_it_is_asked_for(person):
    busy = SMALL | {"start": shown_time(START_US), "rate": "938.8 Mbit/s"}
    person("olga").post(MANY, json=busy | {"duration_s": 49 * 3600})
    assert offered(person("bob"), IMAGES, IMAGE | {"deadline_s": 3600}) == {"earliest-start"}
