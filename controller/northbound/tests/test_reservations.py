"""Reservations over REST, on a site without switches."""

import json

import pytest

from controller.database import DatabaseFailed
from controller.northbound.tests.site import MANY, NIGHT
from controller.tests.fakes import START_US
from topology.units import shown_time


def changed(client, reservation, body, tag=None):
    """Change a reservation as a client that has seen it."""
    tag = f'"{reservation["version"]}"' if tag is None else tag
    return client.patch(f"{MANY}/{reservation['id']}", json=body, headers={"If-Match": tag})


def test_a_hold_is_created_and_can_be_found_where_it_says(client):
    answer = client.post(MANY, json=NIGHT)
    assert (answer.status_code, answer.headers["etag"]) == (201, '"1"')
    assert client.get(answer.headers["location"]).json() == answer.json()


def test_a_hold_shows_all_that_was_asked_and_what_became_of_it(held):
    assert held | {"id": "", "created": "", "changed": ""} == {
        "id": "",
        "version": 1,
        "state": "held",
        "reason": "",
        "class": "urgent",
        "from": "la-serena",
        "to": "champaign",
        "rate_bps": 600_000_000,
        "payload_bps": 564_889_466,
        "start": "2026-01-01T01:00:00Z",
        "end": "2026-01-01T11:00:00Z",
        "path": ["ls1", "ch1"],
        "circuits": ["chile-illinois"],
        "backup": [],
        "constraints": {"include": [], "exclude": [], "max_rtt_ms": None, "backup": False},
        "connections": {"dest_port": 0, "local_port": 0, "own_dscp": None},
        "hold_until": "2026-01-01T00:01:00Z",
        "created": "",
        "changed": "",
        "description": "",
        "owner": "anybody",
        "creator": "anybody",
        "carried": None,
        "reasons": [],
        "not_guaranteed": [],
    }


def test_a_rate_in_bits_and_an_end_are_the_same_as_a_rate_with_its_unit_and_a_duration(client, held):
    other = {k: v for k, v in NIGHT.items() if k not in {"rate", "duration_s"}}
    answer = client.post(MANY, json=other | {"rate_bps": 64_000, "end": "2026-01-01T08:00:00-03:00"})
    assert (answer.json()["rate_bps"], answer.json()["end"]) == (64_000, held["end"])


def test_a_duration_counts_to_the_microsecond(client):
    answer = client.post(MANY, json=NIGHT | {"duration_s": 0.000001})
    assert answer.json()["end"] == "2026-01-01T01:00:00.000001Z"


def test_without_a_start_it_starts_now_and_is_in_the_plan_once_committed(client):
    body = {k: v for k, v in NIGHT.items() if k != "start"}
    answer = client.post(MANY, json=body | {"commit": True}).json()
    assert (answer["start"], answer["state"], answer["hold_until"]) == (shown_time(START_US), "provisioning", None)


def test_hold_and_commit_in_one_call(client):
    answer = client.post(MANY, json=NIGHT | {"commit": True})
    assert (answer.status_code, answer.json()["state"]) == (201, "committed")


def test_a_hold_lapses_after_as_long_as_was_asked(client, site):
    name = client.post(MANY, json=NIGHT | {"hold_s": 7}).json()["id"]
    site.clock.now_us += 7_000_000 - 1
    assert client.get(f"{MANY}/{name}").json()["state"] == "held"
    site.clock.now_us += 1
    assert client.get(f"{MANY}/{name}").json()["state"] == "expired"


def test_committing_twice_is_committing_once(client, held):
    first = client.post(f"{MANY}/{held['id']}/commit")
    again = client.post(f"{MANY}/{held['id']}/commit")
    assert (first.status_code, first.json()["state"]) == (200, "committed")
    assert (again.status_code, again.json(), again.headers["etag"]) == (200, first.json(), first.headers["etag"])


def test_renewing_keeps_a_hold_from_now_on(client, held, site):
    site.clock.now_us += 30_000_000
    answer = client.post(f"{MANY}/{held['id']}/renew", json={"hold_s": 600})
    assert (answer.status_code, answer.json()["hold_until"]) == (200, "2026-01-01T00:10:30Z")
    assert client.post(f"{MANY}/{held['id']}/renew").json()["hold_until"] == "2026-01-01T00:01:30Z"


@pytest.mark.parametrize("step", ["commit", "renew"])
def test_a_step_that_its_state_does_not_allow_is_409_with_state_and_event(client, held, site, step):
    client.delete(f"{MANY}/{held['id']}")
    answer = client.post(f"{MANY}/{held['id']}/{step}")
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/illegal")
    assert (answer.json()["state"], answer.json()["event"]) == ("released", step)


# Refusals.


def test_a_refusal_has_the_numbers_and_offers_that_would_be_granted(client, held):
    answer = client.post(MANY, json=NIGHT | {"rate": "500 Mbit/s"})
    assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
    said = answer.json()
    assert (said["type"], said["title"]) == ("/problems/capacity-unavailable", "capacity unavailable")
    assert (said["resource"], said["asked_bps"], said["free_bps"]) == ("ls1->ch1", 500_000_000, 338_800_000)
    assert said["at"] == held["start"]
    assert {offer["kind"] for offer in said["offers"]} == {"earliest-start", "highest-rate"}
    for offer in said["offers"]:
        wanted = {name: offer[name] for name in ("class", "rate_bps", "start", "end")}
        taken = client.post(MANY, json={"from": "la-serena", "to": "champaign", **wanted})
        assert taken.status_code == 201, offer
        client.delete(taken.headers["location"])


def test_a_refusal_without_numbers_says_why_in_words(client):
    answer = client.post(MANY, json=NIGHT | {"constraints": {"max_rtt_ms": 20}})
    said = answer.json()
    assert (answer.status_code, said["type"]) == (409, "/problems/no-path")
    assert (said["resource"], said["asked_bps"], said["free_bps"]) == (None, None, None)
    assert "180 ms" in said["detail"]


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"rate": "fast"}, 422, "rate"),
        ({"rate": "10"}, 422, "rate"),
        ({"rate": "0 bit/s"}, 422, "rate_bps"),
        ({"rate_bps": 5}, 422, "rate_bps and rate"),
        ({"rate": None}, 422, "rate_bps and rate"),
        ({"rate": None, "rate_bps": 2**63}, 422, "rate_bps"),
        ({"start": "22:00"}, 422, "start"),
        ({"start": "2026-01-01T22:00:00"}, 422, "start"),
        ({"start": "2025-12-31T22:00:00Z"}, 422, "start"),
        ({"start": 5}, 422, "start"),
        ({"duration_s": None, "end": "2026-01-01T00:30:00Z"}, 422, "end"),
        ({"end": "2026-01-02T00:00:00Z"}, 422, "end and duration_s"),
        ({"duration_s": 0}, 422, "duration_s"),
        ({"duration_s": 10**12}, 422, "end"),
        ({"duration_s": None, "end": "9999-12-31T23:59:00-00:01"}, 422, "end"),
        ({"class": "unplanned"}, 422, "class"),
        ({"class": "fast"}, 422, "class"),
        ({"hold_s": 3601}, 422, "hold_s"),
        ({"description": "x" * 201}, 422, "description"),
        ({"description": "\x1b[2J"}, 422, "description"),
        ({"to": "la-serena"}, 422, "to"),
        ({"colour": "red"}, 422, "colour"),
        ({"to": "chicago"}, 404, "chicago"),
        ({"constraints": {"exclude": ["amlight"]}}, 404, "amlight"),
        ({"constraints": {"include": ["chicago"]}}, 404, "chicago"),
    ],
)
def test_a_request_that_makes_no_sense_names_its_field(idle, change, status, field):
    answer = idle.post(MANY, json=NIGHT | change)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert field in answer.json()["detail"]


@pytest.mark.parametrize("field", ["rate", "start", "end"])
def test_half_a_character_in_a_rate_or_a_time_makes_no_sense_either(idle, field):
    text = json.dumps(NIGHT | {field: "\ud83d"})
    answer = idle.post(MANY, content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert [one["field"] for one in answer.json()["errors"]] == [field]


# Idempotency.


def test_a_repetition_answers_the_same_reservation_in_its_present_state(client):
    key = {"Idempotency-Key": "night-1"}
    first = client.post(MANY, json=NIGHT, headers=key)
    client.post(f"{first.headers['location']}/commit")
    again = client.post(MANY, json=dict(reversed(NIGHT.items())), headers=key)
    assert (again.status_code, again.headers["location"]) == (200, first.headers["location"])
    assert (again.json()["id"], again.json()["state"]) == (first.json()["id"], "committed")
    assert len(client.get(MANY).json()["reservations"]) == 1


def test_a_repetition_of_hold_and_commit_commits_what_was_only_held(client):
    key = {"Idempotency-Key": "night-1"}
    body = NIGHT | {"commit": True}
    first = client.post(MANY, json=body, headers=key).json()
    again = client.post(MANY, json=body, headers=key)
    assert (again.status_code, again.json()) == (200, first)


def test_a_repetition_of_what_has_ended_does_not_begin_it_again(client):
    key = {"Idempotency-Key": "night-1"}
    first = client.post(MANY, json=NIGHT | {"commit": True}, headers=key)
    client.delete(first.headers["location"])
    again = client.post(MANY, json=NIGHT | {"commit": True}, headers=key)
    assert (again.status_code, again.json()["state"]) == (200, "released")


def test_another_body_with_the_same_key_is_refused(client):
    key = {"Idempotency-Key": "night-1"}
    client.post(MANY, json=NIGHT, headers=key)
    answer = client.post(MANY, json=NIGHT | {"rate": "601 Mbit/s"}, headers=key)
    assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key")


@pytest.mark.parametrize("key", ["", " ", "two words", "x" * 256])
def test_a_key_is_visible_ascii(idle, key):
    answer = idle.post(MANY, json=NIGHT, headers={"Idempotency-Key": key})
    assert (answer.status_code, "Idempotency-Key" in answer.json()["detail"]) == (422, True)


# Changing and releasing.


def test_a_change_takes_what_is_given_and_leaves_the_rest(client, held):
    answer = changed(client, held, {"rate": "900 Mbit/s", "description": "more"})
    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')
    differing = {name for name in held if answer.json()[name] != held[name]}
    assert differing == {"rate_bps", "payload_bps", "description", "version"}


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"start": "2026-01-01T02:00:00Z"}, ("start", "2026-01-01T02:00:00Z")),
        ({"end": "2026-01-01T05:00:00+03:00"}, ("end", "2026-01-01T02:00:00Z")),
        ({"class": "background"}, ("class", "background")),
        ({"rate_bps": 70_000}, ("rate_bps", 70_000)),
        (
            {"constraints": {"max_rtt_ms": 200}},
            ("constraints", {"include": [], "exclude": [], "max_rtt_ms": 200.0, "backup": False}),
        ),
    ],
)
def test_each_of_them_can_be_changed(client, held, body, shown):
    assert changed(client, held, body).json()[shown[0]] == shown[1]


def test_a_change_that_does_not_fit_is_refused_with_offers_and_changes_nothing(client, held):
    answer = changed(client, held, {"rate": "950 Mbit/s"})
    assert (answer.status_code, answer.json()["offers"][0]["kind"]) == (409, "highest-rate")
    assert client.get(f"{MANY}/{held['id']}").json() == held


def test_a_change_says_what_it_has_seen(client, held):
    body = {"rate_bps": 70_000}
    unsaid = client.patch(f"{MANY}/{held['id']}", json=body)
    assert (unsaid.status_code, unsaid.json()["type"]) == (428, "/problems/unconditional")
    old = changed(client, held, body, '"0"')
    assert (old.status_code, old.json()["type"], old.json()["version"]) == (412, "/problems/outdated", 1)
    assert changed(client, held, body, 'W/"1"').status_code == 412  # If-Match compares strongly: RFC 9110, 13.1.1
    assert changed(client, held, body, "1").status_code == 422
    assert changed(client, held, body, '"9", "1"').status_code == 200
    assert changed(client, held, {"rate_bps": 80_000}, "*").status_code == 200


@pytest.mark.parametrize("tag", ["9" * 5_000, "9" * 19, "x" * 5_000])
def test_a_tag_that_cannot_be_a_version_is_outdated_and_no_fault_of_ours(client, held, tag):
    answer = changed(client, held, {"rate": "500 Mbit/s"}, f'"{tag}"')
    assert (answer.status_code, answer.json()["seen_version"]) == (412, 0)


@pytest.mark.parametrize("body", [{}, {"rate": None}, {"rate": "1 bit/s", "rate_bps": 1}, {"to": "x"}])
def test_a_change_that_makes_no_sense_is_422(idle, body):
    assert changed(idle, {"id": "any", "version": 1}, body).status_code == 422


def test_releasing_twice_is_releasing_once(client, held):
    where = f"{MANY}/{held['id']}"
    assert client.delete(where, headers={"If-Match": '"7"'}).status_code == 412
    first = client.delete(where, headers={"If-Match": '"1"'})
    assert (first.status_code, first.json()["state"], first.json()["hold_until"]) == (200, "released", None)
    assert client.delete(where).json() == first.json()


def test_a_change_to_no_rate_at_all_is_422(client, held):
    assert changed(client, held, {"rate": "0 bit/s"}).json()["field"] == "rate_bps"


def test_what_has_ended_cannot_be_changed(client, held):
    gone = client.delete(f"{MANY}/{held['id']}").json()
    answer = changed(client, gone, {"rate_bps": 70_000})
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/illegal")


# Durability.


class Failing:
    """A database that cannot write."""

    url = "sqlite:////var/lib/headway/headway.db"
    unsaved_us = 0

    def save(self, _):
        """Fail, as a database does that waits to be loaded."""
        from concurrent.futures import Future

        future = Future()
        future.set_exception(DatabaseFailed(self.url, "disk is full: '/var/lib/headway/headway.db-wal'"))
        return future


def test_nothing_is_answered_that_was_not_saved(client, site, held):
    site.use_cases.saves._database = Failing()
    for answer in (
        client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}),
        client.post(f"{MANY}/{held['id']}/commit"),
        client.delete(f"{MANY}/{held['id']}"),
    ):
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/store-failed")
        assert answer.headers["retry-after"] == "1"
        assert "/var" not in answer.text
        assert answer.json()["detail"] == "the database: disk is full: '(a file)'; the controller's log says more"
    assert "headway_store_failures_total 3.0" in client.get("/metrics").text
