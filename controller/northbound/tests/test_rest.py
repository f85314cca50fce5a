"""The API in process, on a site without switches: announcements, views, metrics, and what goes wrong."""

import json
from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from controller.northbound.access import all_may
from controller.northbound.api import MOST_BODY_BYTES, api
from controller.northbound.rest.answers import OPERATION_IDS
from controller.northbound.tests.site import api_of, dependencies_of
from controller.plan.deliveries import LAST_COUNT_US
from controller.plan.leading import LeaderView, PairStanding
from controller.security.own_certificates import EndingCertificate
from controller.tests.fakes import ready_site
from topology.protocol import FlowClass
from topology.telemetry import EntryTelemetry, Telemetry

IMAGE = {"id": "image", "bytes": 2_688_024_580, "from": ["base20", "base21"], "to": "arch"}


@pytest.fixture
def site():
    """A site whose plan is in force."""
    return ready_site()


@pytest.fixture
def client(site):
    """A client of its API."""
    return TestClient(api_of(site), raise_server_exceptions=False)


@pytest.fixture(scope="module")
def idle():
    """A client of another such site, for what changes nothing."""
    return TestClient(api_of(ready_site()), raise_server_exceptions=False)


# Announcements.


def test_an_announcement_is_answered_with_a_promise(client):
    answer = client.post("/v1/announcements", json=IMAGE)
    assert answer.status_code == 201
    said = answer.json()
    assert 24.8 < said["promised_in_s"] < 25.1
    assert (said["from"], said["drawn_on"], said["rates"][0]["rate_bps"]) == (IMAGE["from"], None, 469_400_000)
    assert client.get("/v1/announcements").json() == {"announcements": [said], "next": None, "lacks": None}
    assert client.get("/v1/announcements/image").json() == said


def test_an_announcement_without_a_name_gets_one(client):
    named = client.post("/v1/announcements", json={k: v for k, v in IMAGE.items() if k != "id"}).json()["id"]
    assert client.delete(f"/v1/announcements/{named}").status_code == 200
    assert client.get(f"/v1/announcements/{named}").json()["state"] == "released"


def test_an_announcement_asked_for_again_is_the_same_and_something_else_by_its_name_a_problem(client):
    first = client.post("/v1/announcements", json=IMAGE)
    again = client.post("/v1/announcements", json=IMAGE)
    assert (first.status_code, again.status_code, again.json()) == (201, 200, first.json())
    other = client.post("/v1/announcements", json=IMAGE | {"bytes": 5})
    assert (other.status_code, other.json()["type"], other.json()["field"]) == (409, "/problems/taken", "id")


def test_a_key_is_the_same_announcement_whatever_became_of_it(client, site):
    body, key = {k: v for k, v in IMAGE.items() if k != "id"}, {"Idempotency-Key": "night-1"}
    first = client.post("/v1/announcements", json=body, headers=key).json()
    for later_us in (0, LAST_COUNT_US):
        client.delete(f"/v1/announcements/{first['id']}")
        site.clock.now_us += later_us
        site.use_cases.tick()
        again = client.post("/v1/announcements", json=body, headers=key)
        assert (again.status_code, again.json()["id"], again.json()["state"]) == (200, first["id"], "released")
    other = client.post("/v1/announcements", json=body | {"bytes": 5}, headers=key)
    assert (other.status_code, other.json()["field"]) == (409, "Idempotency-Key")


def test_announcements_come_in_pages_those_that_have_ended_too(client):
    for number in range(3):
        client.post("/v1/announcements", json=IMAGE | {"id": f"a{number}"})
        client.delete(f"/v1/announcements/a{number}")
    first = client.get("/v1/announcements?limit=2")
    assert [a["id"] for a in first.json()["announcements"]] == ["a0", "a1"]
    second = client.get(first.links["next"]["url"]).json()
    assert ([a["id"] for a in second["announcements"]], second["next"]) == (["a2"], None)
    assert client.get("/v1/announcements?state=late").json()["announcements"] == []


def test_an_announcement_and_the_plan_show_what_was_delivered_and_what_is_in_the_way(client, site):
    client.post("/v1/announcements", json=IMAGE)
    site.converge()
    seen = EntryTelemetry("image/base20", 1, 1, 5_000, 40, 3, 180_000, "loss", counted_since_ns=1)
    site.reports.host_telemetry("base20", Telemetry(2, 250, (seen,)))
    said = client.get("/v1/announcements/image").json()
    assert (said["state"], said["delivered_bytes"], said["exact"], said["ended"]) == ("under-way", 5_000, True, None)
    senders = {one["host"]: (one["delivered_bytes"], one["hindrance"]) for one in said["senders"]}
    assert senders == {"base20": (5_000, "fallback"), "base21": (0, "not-applied")}
    planned = {a["name"]: a["progress"] for a in client.get("/v1/plan").json()["desired"]["allocations"]}
    assert (planned["image/base20"]["delivered_bytes"], planned["image/base20"]["hindrance"]) == (5_000, "fallback")
    assert "image/base20 runs its own congestion control" in str(client.get("/healthz").json()["reasons"])
    assert metrics(client)("agent_fallback", "base20", "image/base20") == 1


def test_an_announcement_draws_on_what_its_site_has_reserved(client):
    body = {"from": "la-serena", "to": "champaign", "rate": "800 Mbit/s", "duration_s": 3600, "commit": True}
    reserved = client.post("/v1/reservations", json=body).json()["id"]
    said = client.post("/v1/announcements", json=IMAGE).json()
    assert (said["drawn_on"], said["rates"][0]["rate_bps"]) == (reserved, 400_000_000)


def test_a_deadline_that_cannot_be_met_is_a_problem_with_the_numbers_and_offers(client):
    answer = client.post("/v1/announcements", json=IMAGE | {"deadline_s": 5})
    assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
    said = answer.json()
    assert (said["type"], said["resource"]) == ("/problems/deadline-unreachable", "ls1->ch1")
    assert said["asked_bps"] > said["free_bps"] == 938_800_000
    assert "later-deadline" in {offer["kind"] for offer in said["offers"]}


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"bytes": -1}, 422, "bytes"),
        ({"deadline_s": 0}, 422, "deadline_s"),
        ({"deadline_s": 10**9}, 422, "deadline_s"),
        ({"class": "fast"}, 422, "class"),
        ({"urgency": 3}, 422, "urgency"),
        ({"class": "predictable"}, 422, "class"),
        ({"from": ["base99"]}, 404, "base99"),
        ({"id": "a b"}, 422, "id"),
        ({"id": ".."}, 422, "id"),
    ],
)
def test_an_announcement_that_makes_no_sense_names_its_field(idle, change, status, field):
    answer = idle.post("/v1/announcements", json=IMAGE | change)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert field in answer.json()["detail"]


def test_a_host_nobody_knows_is_404_with_those_there_are(idle):
    said = idle.post("/v1/announcements", json=IMAGE | {"from": ["base99"]}).json()
    assert (said["name"], "arch" in said["known"]) == ("base99", True)


# Views.


def test_the_plan_shows_what_each_layer_lets_through(idle):
    plan = idle.get("/v1/plan").json()
    assert plan["violations"] == []
    for layers in plan["layers"].values():
        assert sum(layers["hosts_frame_bps"].values()) <= sum(layers["meters_frame_bps"].values())
        assert sum(layers["queues_frame_bps"].values()) <= layers["circuit_frame_bps"]


def test_health_is_good_when_the_plan_is_in_force_and_bad_when_it_is_not(client, site):
    assert client.get("/healthz").status_code == 200
    site.switches.gone = True
    client.post("/v1/announcements", json=IMAGE)
    site.converge()
    answer = client.get("/healthz")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/json")
    assert "is not connected" in answer.json()["error"]


def test_hosts_topology_and_transitions_are_shown(idle):
    assert {h["name"] for h in idle.get("/v1/hosts").json()} == {"base20", "base21", "base22", "base23", "arch"}
    topology = idle.get("/v1/topology").json()
    assert (topology["sites"], topology["circuits"]) == (["la-serena", "champaign"], ["chile-illinois"])
    assert any(link["circuit"] for link in topology["links"])
    assert idle.get("/v1/transitions").json()[0]["place"] == "meters"


def test_switches_are_shown_connected_or_not(site):
    behind = dependencies_of(site)
    behind = type(behind)(**{name: getattr(behind, name) for name in behind.__slots__} | {"connected": lambda: {1}})
    shown = TestClient(api(behind, all_may(lambda: datetime.now(UTC)))).get("/v1/switches").json()
    assert [(s["name"], s["dpid"], s["connected"]) for s in shown] == [
        ("ls1", "0000000000000001", True),
        ("ch1", "0000000000000002", False),
    ]


# Metrics.


def metrics(client):
    """What finds a sample by its name and the values of its labels, in any order; None if there is none."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    found = {(sample.name, frozenset(sample.labels.values())): sample.value for sample in samples}
    return lambda name, *labels: found.get((f"headway_{name}", frozenset(labels)))


def test_metrics_show_the_plan_on_every_link_and_class(idle):
    found = metrics(idle)
    assert found("circuit_wire_bps", "ls1->ch1") == 1e9
    assert found("class_wire_bps", "ls1->ch1", "predictable") == 50e6
    for flow_class in FlowClass:
        hosts, meter, queue = (
            found(f"class_{layer}_frame_bps", "ls1->ch1", flow_class) for layer in ("hosts", "meter", "queue")
        )
        assert hosts <= meter <= queue
    assert found("plan_epoch") == found("plan_installed_epoch") > 0
    assert found("invariant_violations") == 0


def test_metrics_count_reservations_by_state_and_decisions_by_answer(client):
    body = {"from": "la-serena", "to": "champaign", "rate": "600 Mbit/s", "duration_s": 60}
    for _ in range(2):
        client.post("/v1/reservations", json=body)
    client.post("/v1/reservations", json=body | {"to": "nowhere"})
    client.post("/v1/announcements", json=IMAGE)
    found = metrics(client)
    assert (found("reservations", "held"), found("reservations", "active")) == (1, 0)
    assert found("decisions_total", "granted", "reservation") == 1
    assert found("decisions_total", "capacity-unavailable", "reservation") == 1
    assert found("decisions_total", "invalid", "reservation") == 1
    assert found("decisions_total", "granted", "announcement") == found("announcements") == 1
    assert found("decision_seconds_count", "reservation") == 3


def test_metrics_show_agents_their_counters_and_the_switches(client, site):
    entry = EntryTelemetry("background/base23", 1, 1, 5_000, 40, 3, 180_000)
    site.reports.host_telemetry("base23", Telemetry(2, 250, (entry,)))
    site.reports.host_down("base20")
    found = metrics(client)
    assert (found("agent_connected", "base23"), found("agent_connected", "base20")) == (1, 0)
    assert found("agent_lease_left_seconds", "base23") == 0.25
    assert found("delivered_bytes_total", "base23", "background/base23") == 5_000
    assert found("retransmitted_segments_total", "base23", "background/base23") == 3
    assert found("rtt_seconds", "base23", "background/base23") == 0.18
    assert found("agent_fallback", "base23", "background/base23") == 0
    assert found("switch_connected", "ls1") == 1


def test_what_an_agent_told_of_now_ends_with_its_connection_and_what_it_counted_does_not(client, site):
    name = "background/base23"
    site.reports.host_telemetry("base23", Telemetry(2, 250, (EntryTelemetry(name, 1, 1, 5_000, 40, 3, 180_000),)))
    site.reports.host_down("base23")
    found, hosts = metrics(client), {one["name"]: one for one in client.get("/v1/hosts").json()}
    assert found("agent_lease_left_seconds", "base23") is hosts["base23"]["lease_left_ms"] is None
    assert found("agent_fallback", "base23", name) is found("rtt_seconds", "base23", name) is None
    assert found("delivered_bytes_total", "base23", name) == 5_000


def test_metrics_say_what_is_not_well_by_kind_and_place_as_healthz_does(client, site):
    site.wire()
    site.attach_all()
    found = metrics(client)
    assert (found("healthy"), found("troubles", "port", "")) == (1, 0)
    assert client.get("/healthz").status_code == 200
    site.port_said(1, 1, is_live=False)
    site.switch_reports.switch_up(0x99, "192.0.2.9:4711", {})
    found = metrics(client)
    assert (found("healthy"), found("troubles", "port", "ls1"), found("troubles", "port", "")) == (0, 1, 0)
    assert client.get("/healthz").status_code == 503


def test_metrics_say_whether_the_plan_that_is_wanted_is_in_force(client, site):
    site.switches.gone = True
    client.post("/v1/announcements", json=IMAGE)
    site.use_cases.tick()
    site.convergence.step()
    assert metrics(client)("plan_in_force") == metrics(client)("healthy") == 0
    site.switches.gone = False
    site.converge()
    assert metrics(client)("plan_in_force") == 1


def test_what_strangers_and_promises_are_called_is_no_label(client, site):
    site.wire()
    client.post("/v1/announcements", json=IMAGE)
    site.converge()
    for dpid in (0x98, 0x99):
        site.switch_reports.switch_up(dpid, "192.0.2.9:4711", {})
    site.reports.host_down("base20")
    found = metrics(client)
    assert (found("troubles", "switch-unknown", ""), found("troubles", "announcement", "")) == (2, 1)
    assert found("troubles", "announcement", "image") is None


def test_metrics_show_what_is_planned_beside_what_is_delivered_and_when_certificates_end(site):
    ends = {"certificates": lambda: {"base20": 1_790_000_000.0}, "switch_certificates": lambda: {"ls1": 1_795_000_000}}
    dependencies = dependencies_of(site, **ends)
    found = metrics(TestClient(api(dependencies, all_may(lambda: datetime.now(UTC)))))
    entry = next(e for e in site.value.desired.plan.entries if e.flow.host == "base23")
    assert found("planned_bps", "base23", entry.flow.name, entry.flow.flow_class) == entry.payload_bps > 0
    assert found("delivered_bps", "base23", entry.flow.name) == 0
    assert found("agent_certificate_ends_seconds", "base20") == 1_790_000_000
    assert found("switch_certificate_ends_seconds", "ls1") == 1_795_000_000


@pytest.mark.parametrize("standing", [None, PairStanding.STANDBY])
def test_metrics_show_when_the_controllers_own_certificates_end_the_first_of_a_name(site, standing):
    own = tuple(EndingCertificate("controller", "ctl", end_s) for end_s in (1_790_000_000.0, 1_800_000_000.0))
    leader = LeaderView(standing, takes=standing is None)
    behind = dependencies_of(site, own_certificates=lambda: own, leader=lambda: leader)
    found = metrics(TestClient(api(behind, all_may(lambda: datetime.now(UTC)))))
    assert found("own_certificate_ends_seconds", "controller", "ctl") == 1_790_000_000


def test_two_apis_in_one_process_count_apart(client, site):
    client.post("/v1/announcements", json=IMAGE)
    assert metrics(client)("decisions_total", "granted", "announcement") == 1
    assert metrics(TestClient(api_of(site)))("decisions_total", "granted", "announcement") is None


# What goes wrong.


@pytest.mark.parametrize(
    ("content", "kind", "status", "problem"),
    [
        (b"{", "application/json", 400, "malformed"),
        (b"\xff\xfe", "application/json", 400, "malformed"),
        (b'{"bytes": ' + b"9" * 5_000 + b"}", "application/json", 400, "malformed"),
        (b"[" * 100_000, "application/json", 400, "malformed"),
        (b"[]", "application/json", 422, "not-valid"),
        (b"", "application/json", 422, "not-valid"),
        (b"5", "application/json", 422, "not-valid"),
        (b'{"bytes": NaN, "from": ["a"], "to": "b"}', "application/json", 422, "not-valid"),
        (b'{"bytes": 1, "from": ["a"], "to": "b", "deadline_s": Infinity}', "application/json", 422, "not-valid"),
        (b'{"bytes": 1, "from": ["\\ud800"], "to": "b"}', "application/json", 422, "not-valid"),
        (b'{"bytes": 1, "from": ["a\\u0000"], "to": "b"}', "application/json", 404, "not-known"),
        (json.dumps(IMAGE).encode(), "application/x-www-form-urlencoded", 415, "media-type"),
        (json.dumps(IMAGE).encode(), "text/plain", 415, "media-type"),
        (b" " * (MOST_BODY_BYTES + 1), "application/json", 413, "too-large"),
    ],
)
def test_a_body_that_is_none_is_a_problem_and_never_our_fault(idle, content, kind, status, problem):
    answer = idle.post("/v1/announcements", content=content, headers={"content-type": kind})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert (answer.json()["type"], answer.json()["status"]) == (f"/problems/{problem}", status)


def test_a_body_without_a_length_is_counted_as_it_comes(idle):
    pieces = (b" " * 65_536 for _ in range(100))
    answer = idle.post("/v1/announcements", content=pieces, headers={"content-type": "application/json"})
    assert answer.status_code == 413


def test_a_path_nobody_serves_and_a_method_nobody_takes_are_problems(idle):
    assert idle.get("/v1/nothing").json()["type"] == "/problems/not-known"
    answer = idle.put("/v1/plan")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert answer.json()["type"] == "/problems/method-not-allowed"
    assert idle.put("/v1/reservations/any").headers["allow"] == "DELETE, GET, PATCH"


def test_our_own_fault_is_a_problem_without_its_inside(client, site):
    site.reports.view = None  # calling it fails
    answer = client.get("/v1/plan")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["type"] == "/problems/fault"


# The API's description of itself.


def explains_itself(schema):
    """Whether a value needs no example: it is one of few, or its default shows what it is."""
    return "default" in schema or any(word in str(schema) for word in ("examples", "enum", "boolean", "$ref"))


def test_every_operation_is_described_with_all_that_it_takes(idle):
    schema = idle.get("/openapi.json").json()
    operations = [operation for path in schema["paths"].values() for operation in path.values()]
    assert len(operations) == len(OPERATION_IDS)
    for operation in operations:
        assert operation["summary"] != ""
        for parameter in operation.get("parameters", []):
            assert parameter["description"] != "", (operation["operationId"], parameter)
            assert explains_itself(parameter["schema"]), (operation["operationId"], parameter)


def test_every_field_is_described_and_what_a_client_sends_has_an_example(idle):
    for name, model in idle.get("/openapi.json").json()["components"]["schemas"].items():
        for field, described in model.get("properties", {}).items():
            assert "description" in described or "$ref" in described, (name, field)
            assert explains_itself(described) or not name.endswith(("In", "Change")), (name, field)


def test_every_error_is_described_as_a_problem(idle):
    schema = idle.get("/openapi.json").json()
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            for status, response in operation["responses"].items():
                if status >= "400" and (path, status) != ("/healthz", "503"):
                    assert list(response["content"]) == ["application/problem+json"], (method, path, status)
