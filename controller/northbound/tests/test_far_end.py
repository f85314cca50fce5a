"""One site of ours, and one beyond that is not: this side is planned, and what cannot be known is said."""

import pytest
from fastapi.testclient import TestClient

from controller.northbound.tests.site import NIGHT, api_of
from controller.plan.flows import flow_on
from controller.plan.invariant import violations
from controller.tests.fakes import ready_site
from topology.network_file import network_of
from topology.problems import Problems
from topology.protocol import FlowClass

SECTION = {
    "name": "alone",
    "sites": {
        "here": {
            "switch": {"name": "br0", "dpid": "0000000000000001"},
            "hosts": {
                "dtn1": {
                    "addresses": ["192.0.2.10", "2001:db8:1::10"],
                    "port": "eth1",
                    "number": 1,
                    "rate": "10 Gbit/s",
                },
                "dtn2": {"address": "192.0.2.11", "port": "eth2", "number": 2, "rate": "10 Gbit/s"},
            },
        },
        "cern": {"prefixes": ["198.51.100.0/24", "2001:db8:5::/48"]},
    },
    "circuits": {
        "leased": {
            "rate": "1 Gbit/s",
            "delay": "40 ms",
            "a": {"switch": "br0", "port": "eth9", "number": 9},
            "z": {"site": "cern"},
        }
    },
}
IMAGE = {"id": "image", "bytes": 1_000_000_000, "from": ["dtn1"], "to": "cern"}


@pytest.fixture(scope="module")
def site():
    network = network_of(SECTION, Problems())
    assert network is not None
    standing = flow_on(network, "standing", FlowClass.BACKGROUND, network.path("dtn2", "cern"))
    site = ready_site(network=network, standing=(standing,))
    site.wire()
    return site


@pytest.fixture(scope="module")
def client(site):
    return TestClient(api_of(site))


def test_one_site_alone_has_a_plan_in_force_with_nobody_missing(client):
    health = client.get("/healthz").json()
    assert (health["ok"], health["hosts_missing"], health["hosts_unconfirmed"]) == (True, [], [])
    plan = client.get("/v1/plan").json()
    assert [*plan["installed"]["links"]] == ["br0->cern-edge"]
    assert [one["to"] for one in plan["installed"]["allocations"]] == ["cern"]
    assert plan["violations"] == []


def test_what_is_announced_to_it_is_promised_and_sent_to_all_its_prefixes_of_the_senders_families(client, site):
    assert client.post("/v1/announcements", json=IMAGE).status_code == 201
    site.converge()
    site.demand("dtn1")
    site.converge()
    sent = {entry.name: entry for host, told in site.hosts.sent for entry in told.entries if host in {"dtn1", "dtn2"}}
    assert [str(p) for p in (sent["image/dtn1"].dest, *sent["image/dtn1"].also)] == SECTION["sites"]["cern"]["prefixes"]
    assert (str(sent["standing"].dest), sent["standing"].also) == ("198.51.100.0/24", ())
    assert not violations(site.reports.view().layers)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/announcements", IMAGE | {"id": "back", "from": ["cern"], "to": "dtn1"}),
        ("/v1/reservations", {"from": "cern", "to": "dtn1", "class": "urgent", "rate_bps": 64_000, "duration_s": 60}),
    ],
)
def test_nothing_is_promised_that_it_would_send(client, path, body):
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    assert "cern is not ours: nothing there holds a rate" in answer.text


def test_what_is_reserved_to_it_is_a_hosts(client):
    asked = NIGHT | {"to": "cern"}
    assert client.post("/v1/reservations", json=asked | {"from": "dtn1"}).status_code == 201
    refused = client.post("/v1/reservations", json=asked | {"from": "here"})
    assert (refused.status_code, "name one of here" in refused.text) == (422, True)


def test_api_page_and_metrics_say_what_is_not_ours(client):
    hosts = {host["name"]: host["ours"] for host in client.get("/v1/topology").json()["hosts"]}
    assert hosts == {"dtn1": True, "dtn2": True, "cern": False}
    assert "cern: not ours, what is sent from there is not planned" in client.get("/").text
    assert "what comes in by it: its far end is not ours" in client.get("/circuits/leased").text
    assert "cern-edge-&gt;" not in client.get("/circuits/leased").text
    metrics = client.get("/metrics").text
    assert 'link="br0->cern-edge"' in metrics
    assert 'link="cern-edge->br0"' not in metrics
