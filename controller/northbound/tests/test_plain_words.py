"""What is wrong with a request is said in our words: nothing of the libraries that read it shows through."""

import json

import pytest
from fastapi.testclient import TestClient

from controller.northbound.tests.site import api_of
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois

ENDS = {"from": "la-serena", "to": "champaign"}
WHOLE = ENDS | {"rate_bps": 1_000_000, "duration_s": 60}
NOT_OURS = ("Value error", "Assertion", "pydantic", "Traceback", "function-", "tagged-union")
RESERVATIONS = [
    ENDS,
    ENDS | {"duration_s": 60},
    WHOLE | {"rate": "1 Mbit/s"},
    WHOLE | {"rate_bps": 0},
    WHOLE | {"end": "2031-01-01T00:00:00Z"},
    WHOLE | {"start": "yesterday"},
    WHOLE | {"start": "2026-11-22 22:00"},
    ENDS | {"rate": "1 GB/s", "duration_s": 60},
    ENDS | {"rate": "fast", "duration_s": 60},
    WHOLE | {"constraints": {"include": "ls1"}},
    WHOLE | {"connections": {"dest_port": -1}},
    WHOLE | {"class": "best"},
    WHOLE | {"colour": "red"},
]
ANNOUNCEMENTS = [
    {"from": [], "to": "arch", "bytes": 1},
    {"from": ["base20"], "to": "arch", "bytes": 0},
    {"from": ["base20"], "to": "arch", "bytes": 1, "deadline_s": -1},
    {"from": ["base20"], "to": "arch", "bytes": 1, "id": "a b"},
]
QUERIES = [
    "availability?from=la-serena&to=champaign&rate=1Gbps",
    "availability?from=la-serena&to=champaign&rate=x&duration_s=1",
    "availability?from=la-serena&to=champaign&rate_min=1Gbps",
    "availability?from=la-serena&to=champaign&bytes=9&rate_min=2Gbps&rate_max=1Gbps",
    "availability?from=la-serena&to=champaign&start=never",
    "reservations?cursor=nonsense",
    "reservations?limit=0",
    "announcements?state=lost",
    "history?cursor=nonsense",
]


@pytest.fixture(scope="module")
def client():
    return TestClient(api_of(FakeSite(chile_illinois(), standing=())))


def plain(answer):
    """Whether an answer is a problem, each of its sentences ours."""
    assert answer.status_code in {400, 422}, answer.text
    said = answer.json()
    assert said["detail"]
    assert not [words for words in NOT_OURS if words in json.dumps(said)], said


@pytest.mark.parametrize("body", RESERVATIONS, ids=str)
def test_what_is_wrong_with_a_reservation(client, body):
    plain(client.post("/v1/reservations", json=body))


@pytest.mark.parametrize("body", ANNOUNCEMENTS, ids=str)
def test_what_is_wrong_with_an_announcement(client, body):
    plain(client.post("/v1/announcements", json=body))


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_wrong_with_a_query(client, query):
    plain(client.get(f"/v1/{query}"))


@pytest.mark.parametrize("body", [{}, {"rate": "1 Mbit/s", "rate_bps": 1}, {"start": "soon"}], ids=str)
def test_what_is_wrong_with_a_change(client, body):
    plain(client.patch("/v1/reservations/x", json=body, headers={"If-Match": "*"}))
