"""What no client of ours sends: a browser that was led here by somebody else's page, or by somebody else's name."""

import asyncio

import pytest
from fastapi.testclient import TestClient

from controller.northbound import gate
from controller.northbound.tests.site import MANY, NIGHT, api_of
from controller.plan.lifecycle import ReservationState
from controller.tests.fakes import FakeSite
from mininet_tests.testing.networks import chile_illinois

FORM = "application/x-www-form-urlencoded"


def named(site, base_url):
    """A client that asks for the API by a name."""
    return TestClient(api_of(site), base_url=base_url)


def state(site, held):
    """What a reservation is by now."""
    return site.value.wished.ledger.reservations[held["id"]].state


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://testserver:8081"},
        {"Origin": "http://testserver.evil.example"},
        {"Origin": "testserver"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_origin_cannot_commit_a_reservation(client, site, held, headers):
    answer = client.post(f"{MANY}/{held['id']}/commit", headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/other-origin")
    assert state(site, held) is ReservationState.HELD
    assert client.delete(f"{MANY}/{held['id']}", headers=headers).status_code == 403


def test_a_page_of_another_origin_reads_nothing_but_is_not_refused_what_anybody_may_load(client):
    answer = client.get("/healthz", headers={"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"})
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://testserver"}, {"Sec-Fetch-Site": "same-origin"}])
def test_a_script_and_a_page_of_our_own_may_write(client, held, headers):
    assert client.post(f"{MANY}/{held['id']}/commit", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("content", "kind"), [(b"", FORM), (b"", "text/plain"), (b"a=b", FORM), (b"a=b", None), (b"{}", "")]
)
def test_what_a_form_sends_commits_nothing_though_no_body_is_read(client, site, held, content, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    answer = client.post(f"{MANY}/{held['id']}/commit", content=content, headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (415, "/problems/media-type")
    assert state(site, held) is ReservationState.HELD


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
        "http://192.0.2.1",
        "http://localhost:8080",
        "http://LOCALHOST.",
        "http://testserver:81",
        "http://TestServer",
    ],
)
def test_we_answer_to_addresses_to_localhost_and_to_our_names(site, url):
    assert named(site, url).get("/v1/plan").status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "a@b", "[::1", "", ":80"],
)
def test_by_a_name_that_is_not_ours_nothing_is_said_and_nothing_done(client, held, host):
    for answer in (
        client.get(MANY, headers={"Host": host}),
        client.post(f"{MANY}/{held['id']}/commit", headers={"Host": host}),
    ):
        assert (answer.status_code, answer.json()["type"]) == (421, "/problems/misdirected")
        assert held["id"] not in answer.text


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [("ctl.example.org", True), ("CTL.example.org.:8080", True), ("example.org", False), ("a.ctl.example.org", False)],
)
def test_a_certificate_for_all_names_of_a_domain_is_for_each_that_is_one_label_longer(host, is_ours):
    asked = gate.turned_away("GET", "1.1", gate.Headers({"host": host}), frozenset({"*.example.org"}))
    assert (asked is None) == is_ours


def test_two_names_or_none_are_no_question(client):
    twice = [("Host", "testserver"), ("Host", "testserver")]
    assert client.get("/v1/plan", headers=twice).status_code == 400
    asked = gate.turned_away("GET", "1.1", gate.Headers({}), frozenset())
    assert asked is not None
    assert asked.status == 400
    assert gate.turned_away("GET", "1.0", gate.Headers({}), frozenset()) is None  # HTTP/1.0 has no Host


@pytest.mark.parametrize("path", ["/v1/plan", "/healthz", "/metrics", "/openapi.json", "/docs", "/nothing"])
def test_no_answer_runs_a_script_or_stands_in_a_frame(client, path):
    answer = client.get(path)
    policy = dict(rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";"))
    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'none'")
    assert "script-src" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_refused_name_is_as_harmless_as_any_answer():
    client = TestClient(api_of(FakeSite(chile_illinois(), standing=())), base_url="http://evil.example")
    assert "content-security-policy" in client.post(MANY, json=NIGHT).headers


def test_a_query_of_bytes_that_no_url_has_is_malformed_and_no_fault_of_ours():
    app, statuses = api_of(FakeSite(chile_illinois(), standing=())), []
    scope = {
        "type": "http",
        "method": "PUT",
        "path": "/v1/availability",
        "raw_path": b"/v1/availability",
        "query_string": b"from=\xed\x11",
        "root_path": "",
        "scheme": "http",
        "http_version": "1.1",
        "client": ("127.0.0.1", 5000),
        "server": ("testserver", 80),
        "headers": [(b"host", b"testserver"), (b"content-type", b"application/json")],
    }

    async def nothing():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        statuses.append(message.get("status"))

    asyncio.run(app(scope, nothing, send))
    assert statuses[0] == 400
