"""An announcement over several circuits at once: in the API, in the plan, in the database, and when a circuit dies."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient

from controller.database.announcements import announcement_of, announcement_text
from controller.northbound.rest import announcements
from controller.northbound.tests.site import api_of, send_by_both_lanes
from controller.plan.flows import flow_on
from controller.plan.invariant import violations
from controller.promise_watch import PromiseWatch
from controller.tests.fakes import FakeSite
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import FILES, described, loaded
from topology.network_text import section_of
from topology.protocol import FlowClass, Hello

NETWORK = loaded(FILES["two-lanes"])
IMAGE = {"id": "image", "bytes": 2_688_000_000, "from": ["base20"], "to": "arch", "lanes": 2}
NORTH_AT_LS1 = (1, 8)


@pytest.fixture
def site():
    """A site whose plan is in force."""
    standing = flow_on(NETWORK, "raw", FlowClass.BACKGROUND, NETWORK.path("base21", "arch"))
    site = FakeSite(NETWORK, (standing,))
    site.attach_all()
    site.converge()
    return site


@pytest.fixture
def client(site):
    return TestClient(api_of(site))


def entries(site):
    """The plan's entries of the image, by interface."""
    return {
        e.flow.host: e
        for e in site.reports.view().desired.entries
        if e.flow.target == "arch" and "image" in e.flow.name
    }


def test_a_promise_over_two_circuits_says_what_goes_by_each(client):
    one = client.post("/v1/announcements", json={**IMAGE, "id": "one", "lanes": 1}).json()
    client.delete("/v1/announcements/one")
    answer = client.post("/v1/announcements", json=IMAGE)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["from"] == ["base20"]
    assert [lane["host"] for lane in made["lanes"]] == ["base20", "base20.eth1"]
    assert ["north" in lane["path"] for lane in made["lanes"]] == [True, False]
    assert sum(lane["bytes"] for lane in made["lanes"]) == IMAGE["bytes"]
    assert made["promised_in_s"] < 0.68 * one["promised_in_s"]
    assert (one["lanes"], made["carried"]) == ([], True)
    assert client.post("/v1/announcements", json=IMAGE).status_code == 200
    assert client.post("/v1/announcements", json={**IMAGE, "lanes": 3}).status_code == 409


def test_the_answer_waits_until_the_host_deals_connections_to_the_lanes(client, site, monkeypatch):
    monkeypatch.setattr(announcements, "DEALT_WITHIN_S", 60)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(client.post, "/v1/announcements", json=IMAGE)
        eventually(site.use_cases.announcements, within_s=20, what="it is promised")
        (known,) = site.use_cases.announcements()
        assert not site.use_cases.is_dealt(known)
        assert not answer.done()
        site.converge()
        assert site.use_cases.is_dealt(known)
        assert answer.result().status_code == 201


def test_a_host_whose_agent_is_away_is_not_waited_for(client, site):
    site.reports.host_down("base20")
    assert client.post("/v1/announcements", json=IMAGE).status_code == 201
    (known,) = site.use_cases.announcements()
    assert site.use_cases.is_dealt(known)


def called(site, host="arch"):
    """What a host was told last of lanes that its connections are dealt to: announcement, first address, bytes."""
    told = [told for name, told in site.hosts.sent if name == host]
    return [(one.lanes, str(one.addresses[0]), one.size_bytes) for one in told[-1].called] if told else []


def test_a_receiver_that_connects_is_told_the_lanes_before_the_answer_and_that_they_are_over(client, site, monkeypatch):
    monkeypatch.setattr(announcements, "DEALT_WITHIN_S", 60)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(client.post, "/v1/announcements", json=IMAGE | {"connects": "receiver"})
        eventually(site.use_cases.announcements, within_s=20, what="it is promised")
        (known,) = site.use_cases.announcements()
        assert not site.use_cases.is_dealt(known)
        site.converge()
        made = answer.result().json()
    assert called(site) == [
        ("image", f"{address}/32", lane["bytes"])
        for address, lane in zip(("10.20.20.20", "10.20.20.120"), made["lanes"], strict=True)
    ]
    assert called(site, "base20") == []
    client.delete("/v1/announcements/image")
    site.converge()
    assert called(site) == []


def test_a_receiver_that_does_not_connect_is_told_of_no_lanes(client, site):
    client.post("/v1/announcements", json=IMAGE)
    site.converge()
    assert called(site) == []


def test_an_agent_that_comes_back_is_told_the_lanes_that_it_connects_to(client, site):
    client.post("/v1/announcements", json=IMAGE | {"connects": "receiver"})
    site.converge()
    site.reports.host_down("arch")
    again = site.reports.host_up(Hello("arch", "0", "6.12", epoch=0))
    assert [(one.lanes, str(one.addresses[0]), one.size_bytes) for one in again.called] == called(site) != []


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_promise_counts_the_session_that_comes_before_the_first_byte(client, lanes):
    promised_s = []
    for session_s in (0, 2.5):
        asked = IMAGE | {"id": "one", "lanes": lanes, "session_s": session_s}
        promised_s.append(client.post("/v1/announcements", json=asked).json()["promised_in_s"])
        client.delete("/v1/announcements/one")
    assert promised_s[1] - promised_s[0] == pytest.approx(2.5, abs=0.001)
    asked = IMAGE | {"lanes": lanes, "deadline_s": promised_s[0] + 1}
    assert client.post("/v1/announcements", json=asked | {"session_s": 2.5}).status_code == 409
    assert client.post("/v1/announcements", json=asked).status_code == 201


def test_who_connects_matters_to_lanes_alone(client):
    answer = client.post("/v1/announcements", json=IMAGE | {"connects": "receiver", "lanes": 1})
    assert (answer.status_code, answer.json()["field"]) == (422, "connects")
    assert client.post("/v1/announcements", json=IMAGE).status_code == 201
    assert client.post("/v1/announcements", json=IMAGE | {"connects": "receiver"}).status_code == 409


@pytest.mark.parametrize(
    ("change", "said"),
    [({"from": ["base21"]}, "base21 has one interface"), ({"from": ["base20", "base21"]}, "need one sending host")],
)
def test_lanes_that_cannot_be_are_refused_with_what_is_needed(client, change, said):
    answer = client.post("/v1/announcements", json=IMAGE | change)
    assert (answer.status_code, answer.json()["field"]) == (422, "lanes")
    assert said in answer.json()["detail"]


def test_lanes_of_a_host_without_an_agent_are_refused_for_nobody_could_deal_its_connections():
    said = section_of(NETWORK)
    said["sites"]["la-serena"]["hosts"]["base20"]["agent"] = False
    answer = TestClient(api_of(FakeSite(described(said)))).post("/v1/announcements", json=IMAGE)
    assert (answer.status_code, answer.json()["field"]) == (422, "lanes")
    assert "base20 has no agent" in answer.json()["detail"]


def test_each_lane_has_its_own_rate_window_and_rule_and_one_agent_holds_both(client, site):
    made = client.post("/v1/announcements", json=IMAGE).json()
    send_by_both_lanes(site)
    planned = entries(site)
    assert {e.flow.machine for e in planned.values()} == {"base20"}
    assert [planned[lane["host"]].flow.path for lane in made["lanes"]] == [
        tuple(lane["path"]) for lane in made["lanes"]
    ]
    north, south = planned["base20"], planned["base20.eth1"]
    assert [e.flow.floor_bps for e in (north, south)] == [lane["rates"][0]["rate_bps"] for lane in made["lanes"]]
    assert north.flow.floor_bps == 2 * south.flow.floor_bps > 900_000_000
    assert north.window_segments > south.window_segments > 0
    told = [told for host, told in site.hosts.sent if host == "base20"][-1]
    dealt = {one.name: (one.lanes, [str(own) for own in one.sources]) for one in told.entries}
    assert dealt == {
        "image/base20": ("image", ["10.20.20.20/32"]),
        "image/base20.eth1": ("image", ["10.20.20.120/32"]),
    }
    assert not violations(site.reports.view().layers)


def test_a_lane_whose_circuit_dies_goes_on_by_the_other_and_the_promise_is_late_at_once(client, site):
    made = client.post("/v1/announcements", json=IMAGE).json()
    send_by_both_lanes(site)
    site.port_said(*NORTH_AT_LS1, is_live=False)
    site.converge()
    planned = entries(site)
    assert all("south" in e.flow.path for e in planned.values())
    assert len(planned) == 2
    site.use_cases.tick()
    PromiseWatch(site.state).look()
    (late,) = [e for e in site.state.events.since(0).events if e.name == "announcement.late"]
    fields = dict(late.fields)
    assert fields["announcement"] == made["id"]
    assert fields["promised"] == made["promised"] < fields["expected"]
    assert client.get("/v1/announcements/image").json()["carried"] is False


def test_lanes_are_the_same_once_they_were_kept(client, site):
    client.post("/v1/announcements", json=IMAGE)
    (known,) = site.value.wished.ledger.announcements.values()
    text = announcement_text(known)
    assert announcement_of(text) == known
    older = {name: value for name, value in json.loads(text).items() if name != "lanes"}
    assert announcement_of(json.dumps(older)).lanes == ()
