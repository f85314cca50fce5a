"""Reservations over REST: reading them, and asking what is free."""

import pytest
from fastapi.testclient import TestClient

from controller.northbound.tests.site import HOUR_US, MANY, NIGHT, api_of
from controller.tests.fakes import START_US, FakeSite
from mininet_tests.testing.networks import asc_ring
from topology.units import shown_time


def test_what_has_ended_and_not_changed_is_not_sent_again(client, held):
    where = f"{MANY}/{held['id']}"
    assert client.get(where, headers={"If-None-Match": '"1"'}).status_code == 200  # whether it is carried may change
    client.delete(where)
    for tag in ('"2"', 'W/"2"', '"7", "2"', "*"):
        answer = client.get(where, headers={"If-None-Match": tag})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", '"2"')
    assert client.get(where, headers={"If-None-Match": '"1"'}).status_code == 200


def test_a_reservation_that_is_not_there_is_404(client):
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/commit"), ("POST", "/renew")):
        answer = client.request(method, f"{MANY}/nothing{path}")
        assert (answer.status_code, answer.json()["name"]) == (404, "nothing")
    assert client.get(f"{MANY}/%00%ff").status_code == 404


def pages(client, **query):
    """The ids of each page, by following the links."""
    path, found = f"{MANY}?" + "&".join(f"{k}={v}" for k, v in query.items()), []
    while path:
        answer = client.get(path)
        found.append([one["id"] for one in answer.json()["reservations"]])
        linked = answer.links.get("next", {}).get("url")
        assert (answer.json()["next"] is None) is (linked is None)
        path = linked
    return found


def test_pages_have_every_reservation_once_in_order_of_creation(client):
    ids = [client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}).json()["id"] for _ in range(7)]
    assert pages(client, limit=3) == [ids[:3], ids[3:6], ids[6:]]
    assert pages(client, limit=7) == [ids]


def test_a_page_goes_on_where_it_was_while_others_reserve_and_release(client):
    ids = [client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}).json()["id"] for _ in range(4)]
    first = client.get(f"{MANY}?limit=2").json()
    client.delete(f"{MANY}/{ids[0]}")
    late = client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"}).json()["id"]
    rest = client.get(MANY, params={"cursor": first["next"]}).json()
    assert [one["id"] for one in rest["reservations"]] == [*ids[2:], late]


def test_filters_choose(client):
    day = "2026-02-02T{:02}:00:00Z"
    early = {"start": day.format(1), "duration_s": 3600, "description": "Night one"}
    late = {"start": day.format(3), "duration_s": 3600, "class": "background", "from": "base20", "commit": True}
    one, two = (client.post(MANY, json=NIGHT | {"rate": "1 Mbit/s"} | change).json()["id"] for change in (early, late))

    def chosen(**query):
        return [r["id"] for r in client.get(MANY, params=query).json()["reservations"]]

    assert chosen(state="held") == [one]
    assert chosen(state=["held", "committed"]) == [one, two]
    assert chosen(**{"class": "background"}) == [two]
    assert chosen(**{"from": "base20"}) == [two]
    assert chosen(to="champaign") == [one, two]
    assert chosen(description="NIGHT") == [one]
    assert chosen(after=day.format(2)) == [two]
    assert chosen(before=day.format(3)) == [one]
    assert chosen(after=day.format(4)) == []
    assert chosen(after="2026-02-02T03:59:59Z", before=day.format(5), state="committed") == [two]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "cursor=x",
        "cursor=YWZ0ZXIgLTE=",
        "state=lost",
        "after=today",
        "colour=red",
        "cursor=%ff",
    ],
)
def test_a_list_that_makes_no_sense_is_422(idle, query):
    answer = idle.get(f"{MANY}?{query}")
    assert (answer.status_code, query.partition("=")[0] in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("/v1/reservations?limit=0", "limit: must be at least 1"),
        ("/v1/reservations?limit=1001", "limit: must be at most 1000"),
        ("/v1/availability?from=la-serena&to=champaign&rate_bps=0", "rate_bps: must be more than 0"),
        ("/v1/availability?from=la-serena&to=champaign&max_rtt_ms=2e9", "max_rtt_ms: must be at most 1000000000"),
    ],
)
def test_a_number_that_is_out_of_bounds_is_told_the_bound(idle, query, said):
    answer = idle.get(query)
    assert (answer.status_code, answer.json()["detail"]) == (422, said)
    assert answer.json()["errors"] == [dict(zip(("field", "detail"), said.split(": "), strict=True))]


# What is free.


def test_what_is_free_is_shown_along_each_path_over_time(client, held):
    answer = client.get("/v1/availability", params={"from": "la-serena", "to": "champaign"})
    (way,) = answer.json()["paths"]
    assert (way["path"], way["circuits"], way["rtt_ms"]) == (["ls1", "ch1"], ["chile-illinois"], 180.0)
    assert way["most_bps"] == 338_800_000
    assert [(step["from"], step["until"], step["rate_bps"]) for step in way["rates"]] == [
        (shown_time(START_US), held["start"], 938_800_000),
        (held["start"], held["end"], 338_800_000),
        (held["end"], "2026-01-02T00:00:00Z", 938_800_000),
    ]


def test_when_a_rate_fits_first_and_when_bytes_can_be_moved(client, held):
    query = {"from": "la-serena", "to": "champaign", "start": held["start"]}
    (way,) = client.get("/v1/availability", params=query | {"rate": "500 Mbit/s", "duration_s": 60}).json()["paths"]
    assert (way["earliest_start"], way["volume"]) == (held["end"], None)
    moved = {"bytes": 1_448_000, "rate_min": "400 Mbit/s", "rate_max": "800 Mbit/s"}
    (way,) = client.get("/v1/availability", params=query | moved).json()["paths"]
    assert way["volume"]["wire_bits"] == 1_538_000 * 8
    (soonest,) = way["volume"]["soonest"]
    assert (soonest["from"], soonest["rate_bps"]) == (held["end"], 800_000_000)
    assert way["volume"]["lowest_constant"]["rate_bps"] == 400_000_000


def test_bytes_that_cannot_be_moved_in_time_have_no_answer(client):
    query = {"from": "la-serena", "to": "champaign", "bytes": 10**18}
    (way,) = client.get("/v1/availability", params=query).json()["paths"]
    assert (way["volume"]["soonest"], way["volume"]["lowest_constant"]) == (None, None)


def test_what_is_free_comes_in_pages_that_are_linked(client, held):
    query = {"from": "la-serena", "to": "champaign", "limit": 1, "end": "2026-01-02T00:00:00Z"}
    path, rates = "/v1/availability", []
    while path:
        answer = client.get(path, params=query)
        (way,) = answer.json()["paths"]
        assert len(way["rates"]) == 1
        assert rates or way["most_bps"] == 338_800_000
        rates += way["rates"]
        path, query = answer.links.get("next", {}).get("url"), None
        assert answer.json()["next"] == (rates[-1]["until"] if path else None)
    whole = client.get(
        "/v1/availability", params={"from": "la-serena", "to": "champaign", "end": "2026-01-02T00:00:00Z"}
    )
    assert rates == whole.json()["paths"][0]["rates"]
    assert len(rates) == 3


def test_the_pages_of_what_is_free_end_where_the_first_does(client):
    for start_h in (20, 30, 50, 70):
        start = shown_time(START_US + start_h * HOUR_US)
        client.post(MANY, json=NIGHT | {"start": start, "duration_s": 3600}).raise_for_status()
    query = {"from": "la-serena", "to": "champaign", "limit": 1}
    path, said = "/v1/availability", []
    while path:
        answer = client.get(path, params=query)
        said.append(answer.json())
        path, query = answer.links.get("next", {}).get("url"), None
    assert {page["end"] for page in said} == {shown_time(START_US + 24 * HOUR_US)}
    assert len(said) == 3


def test_a_start_that_is_past_counts_as_now(client):
    query = {"from": "la-serena", "to": "champaign", "start": "0001-01-01T00:00:00Z"}
    assert client.get("/v1/availability", params=query).json()["start"] == shown_time(START_US)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"from": "chicago"}, 404),
        ({"to": "la-serena"}, 422),
        ({"end": "2025-01-01T00:00:00Z"}, 422),
        ({"end": "9999-12-31T23:59:00-00:01"}, 422),
        ({"rate": "1 Gbit/s"}, 422),
        ({"duration_s": "60"}, 422),
        ({"rate_min": "1 Gbit/s"}, 422),
        ({"bytes": "1", "rate_min": "2 Gbit/s", "rate_max": "1 Gbit/s"}, 422),
        ({"start": "now"}, 422),
        ({"start": "0001-01-01T00:00:00+23:59"}, 422),
        ({"limit": "0"}, 422),
        ({"limit": "10001"}, 422),
    ],
)
def test_a_question_that_makes_no_sense(idle, change, status):
    query = {"from": "la-serena", "to": "champaign"} | change
    assert idle.get("/v1/availability", params=query).status_code == status


def test_what_is_wrong_with_a_whole_question_is_said_of_the_query_and_with_a_whole_body_of_the_body(idle):
    query = {"from": "la-serena", "to": "champaign", "rate": "1 Gbit/s"}
    said = idle.get("/v1/availability", params=query).json()["detail"]
    assert said == "query: rate and duration_s go together"
    assert idle.post(MANY, json=NIGHT | {"rate_bps": 1}).json()["detail"].startswith("body: need exactly one of")


def test_on_a_ring_there_are_paths_to_choose_from_and_a_backup():
    client = TestClient(api_of(FakeSite(asc_ring(), standing=())))
    sites = client.get("/v1/topology").json()["sites"]
    query = {"from": sites[0], "to": sites[2]}
    near, far = client.get("/v1/availability", params=query).json()["paths"]
    assert near["rtt_ms"] < far["rtt_ms"]
    (only,) = client.get("/v1/availability", params=query | {"exclude": near["circuits"][0]}).json()["paths"]
    assert only["path"] == far["path"]
    body = {"from": sites[0], "to": sites[2], "rate": "1 Mbit/s", "duration_s": 60, "constraints": {"backup": True}}
    held = client.post(MANY, json=body).json()
    assert (held["path"], held["backup"]) == (near["path"], far["path"])
