"""The client against the controller's own API, and against controllers that break off, wait, or are none."""

import ssl
import subprocess
import time
from pathlib import Path

import pytest

from controller.northbound.tests.site import api_of
from controller.tests.fakes import FakeSite
from controller.tests.serving import served
from headway import ApiProblem, ApiRefusal, Client, NoAnswer, NoSuchName, NotAController, NotAToken, NotAUrl, NotTrusted
from headway.tests.scripted import PROBLEM, scripted
from mininet_tests.testing.networks import chile_illinois

ASKED = {"from": "la-serena", "to": "champaign", "rate_bps": 600_000_000, "duration_s": 3600}


@pytest.fixture
def controller():
    """A client of an idle site of 1 Gbit/s, all well, whose clock stands at this moment."""
    site = FakeSite(chile_illinois(), standing=())
    site.clock.now_us = time.time_ns() // 1000
    site.attach_all()
    site.wire()
    with served(api_of(site)) as url:
        yield Client(url)


def test_bandwidth_is_held_committed_changed_seen_and_given_back(controller):
    held = controller.hold_reservation(ASKED)
    one = controller.commit_reservation(held["id"])
    changed = controller.change_reservation(one["id"], {"rate": "700 Mbit/s"}, if_match=f'"{one["version"]}"')
    assert (held["state"], one["state"], changed["rate_bps"]) == ("held", "provisioning", 700_000_000)
    found = controller.all_reservations(state=["provisioning"], from_="la-serena")
    assert [each["id"] for each in found] == [one["id"]]
    assert controller.release_reservation(one["id"])["state"] == "released"
    assert controller.get_reservation(one["id"])["state"] == "released"


def test_all_pages_are_gone_through(controller, monkeypatch):
    monkeypatch.setattr("headway.client.PAGE", 2)
    made = [controller.hold_reservation({**ASKED, "rate_bps": 1_000_000})["id"] for _ in range(5)]
    assert [each["id"] for each in controller.all_reservations()] == made
    names = [controller.announce({"from": ["base20"], "to": "arch", "bytes": 1000})["id"] for _ in range(3)]
    assert {each["id"] for each in controller.all_announcements()} == set(names)


def test_pages_may_be_smaller_and_begin_after_a_cursor(controller):
    made = [controller.hold_reservation({**ASKED, "rate_bps": 1_000_000})["id"] for _ in range(5)]
    first = controller.list_reservations(limit=1)["next"]
    assert [each["id"] for each in controller.all_reservations(limit=2, cursor=first)] == made[1:]
    assert list(controller.all_announcements(limit=2, cursor=None)) == []
    assert [each["id"] for each in controller.all_changes(limit=2)] == made


@pytest.mark.parametrize("listed", ["reservations", "announcements"])
def test_a_list_without_what_has_ended_warns_of_that_once(listed):
    lacking = {listed: [{"id": "a"}], "next": "1", "lacks": "the disk is full"}
    with scripted((200, {}, lacking), (200, {}, lacking | {"next": None})) as server:
        found = getattr(Client(server.url), f"all_{listed}")()
        with pytest.warns(RuntimeWarning, match="are not all here.*: the disk is full$") as warned:
            assert [each["id"] for each in found] == ["a", "a"]
    assert ([Path(one.filename).name for one in warned]) == ["test_client.py"]


def test_a_refusal_has_its_offers_and_a_problem_its_kind(controller):
    with pytest.raises(ApiRefusal) as refused:
        controller.hold_reservation({**ASKED, "rate_bps": 10**12})
    assert refused.value.problem["resource"] == "ls1->ch1"
    assert {offer["kind"] for offer in refused.value.offers} >= {"highest-rate"}
    with pytest.raises(ApiProblem) as wrong:
        controller.get_reservation("a/b?c")
    assert (wrong.value.status, wrong.value.kind) == (404, "/problems/not-known")


def test_a_site_that_is_not_well_is_an_answer_and_no_error(slept):
    unwell = {"ok": False, "reasons": ["base20: its agent is not connected"]}
    answers = [(503, {"Content-Type": "application/json"}, unwell)]
    with scripted(*answers) as server:
        assert Client(server.url).get_health() == unwell
    problem = (503, {"Content-Type": "application/problem+json"}, PROBLEM)
    with scripted(problem) as server, pytest.raises(ApiProblem, match="the disk is full"):
        Client(server.url, waits_s=()).get_health()


def test_metrics_are_text(controller):
    assert "headway_" in controller.get_metrics()


def test_what_is_sent_again_has_the_same_key(slept):
    with scripted(None, (503, {}, PROBLEM), (201, {}, {"id": "x"})) as server:
        assert Client(server.url).hold_reservation(ASKED) == {"id": "x"}
    keys = [headers["Idempotency-Key"] for _, _, headers in server.asked]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert slept == [0.5, 1.0]


def test_a_change_is_sent_once_for_nobody_knows_whether_it_was_done(slept):
    with scripted(None) as server, pytest.raises(NoAnswer):
        Client(server.url).change_reservation("r", {"rate": "1 Mbit/s"}, if_match='"1"')
    assert (len(server.asked), slept) == (1, [])


@pytest.mark.parametrize("status", [429, 503])
def test_it_is_asked_again_no_sooner_than_the_controller_says(slept, status):
    with scripted((status, {"Retry-After": "7"}, PROBLEM | {"status": status}), (200, {}, [])) as server:
        assert Client(server.url).list_hosts() == []
    assert slept == [7.0]


def test_nobody_waits_for_a_controller_that_wants_an_hour(slept):
    with scripted((503, {"Retry-After": "3600"}, PROBLEM)) as server, pytest.raises(ApiProblem) as wrong:
        Client(server.url).list_hosts()
    assert (wrong.value.retry_after_s, slept) == (3600.0, [])


def test_a_token_is_shown_with_each_call_and_asked_for_anew():
    tokens = iter(["hw_1", None])
    with scripted((200, {}, []), (200, {}, [])) as server:
        client = Client(server.url, token=lambda: next(tokens))
        client.list_hosts()
        client.list_hosts()
    assert [headers.get("Authorization") for _, _, headers in server.asked] == ["Bearer hw_1", None]


@pytest.mark.parametrize("token", ["hw_1\nX: y", "h\u00fc", ""])
def test_what_is_no_token_is_not_sent(token):
    with scripted() as server, pytest.raises(NotAToken):
        Client(server.url, token=lambda: token).list_hosts()
    assert server.asked == []


@pytest.mark.parametrize("name", ["", ".", "..", "\udce4"])
def test_what_is_no_name_is_not_asked_for(name):
    with scripted() as server, pytest.raises(NoSuchName, match="is no name"):
        Client(server.url).get_reservation(name)
    assert server.asked == []


def test_a_controller_behind_a_path_is_asked_there():
    with scripted((200, {}, [])) as server:
        Client(f"{server.url}/headway/").list_hosts()
    assert server.asked[0][1] == "/headway/v1/hosts"


def test_a_query_has_what_was_said_and_a_list_as_often_as_it_is_long():
    with scripted((200, {}, {})) as server:
        Client(server.url).list_reservations(state=["held", "active"], class_=["urgent"], description="a b&c")
    assert server.asked[0][1] == "/v1/reservations?class=urgent&state=held&state=active&description=a+b%26c"


@pytest.mark.parametrize("body", [b"<html>", b"[1]", {"status": 500}])
def test_who_is_no_controller_is_told_from_one(body):
    with scripted((500, {}, body)) as server, pytest.raises(NotAController, match="answers 500"):
        Client(server.url).list_hosts()


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_reverse_proxy_whose_controller_is_away_is_asked_again(slept, status):
    away = (status, {"Content-Type": "text/html"}, b"<html>Bad Gateway</html>")
    with scripted(away, away, (200, {}, [])) as server:
        assert Client(server.url).list_hosts() == []
        assert slept == [0.5, 1.0]
    with scripted(away) as server, pytest.raises(NoAnswer, match=f"answers {status}: nobody answers behind it"):
        Client(server.url).change_reservation("r", {"rate": "1 Mbit/s"}, if_match='"1"')
    event = b'id: 7\nevent: reservation.held\ndata: {"at": "now"}\n\n'
    stream = (200, {"Content-Type": "text/event-stream"}, event)
    with scripted(stream, away, stream) as server:
        events = Client(server.url).follow_events()
        assert [next(events).event_id, next(events).event_id] == ["7", "7"]


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "http://", "http://a:b", "http://a b", "http://me:pw@x"])
def test_what_is_no_address_is_said_before_anything_is_sent(url):
    with pytest.raises(NotAUrl):
        Client(url)


@pytest.mark.parametrize(("url", "where"), [("http://[::1]", ("::1", 80)), ("https://[fd00::a]", ("fd00::a", 443))])
def test_an_address_of_ipv6_needs_no_port(monkeypatch, url, where):
    asked = []

    def connect(address, *_, **__):
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr("socket.create_connection", connect)
    with pytest.raises(NoAnswer):
        Client(url, waits_s=()).get_plan()
    assert asked == [where]


def test_nobody_listens():
    with pytest.raises(NoAnswer, match="refused"):
        Client("http://127.0.0.1:1", waits_s=()).list_hosts()


DENIED = PROBLEM | {"status": 401}
EVENT_STREAM = {"Content-Type": "text/event-stream"}


def test_after_a_broken_connection_events_go_on_behind_the_last(slept):
    first = b'id: 7\nevent: a\ndata: {}\n\nid: 8\n\ndata: {"cut'
    second = b'id: 9\nevent: b\ndata: {"x": 1}\n\n'
    with scripted(
        (200, EVENT_STREAM, first), None, (503, {}, PROBLEM), (200, EVENT_STREAM, second), (401, {}, DENIED)
    ) as server:
        told = Client(server.url).follow_events()
        assert [(event.name, event.event_id, event.data) for event in (next(told), next(told))] == [
            ("a", "7", {}),
            ("b", "9", {"x": 1}),
        ]
        with pytest.raises(ApiProblem):
            next(told)
    assert [headers.get("Last-Event-ID") for _, _, headers in server.asked] == [None, "8", "8", "8", "9"]


@pytest.fixture
def certificate(tmp_path):
    """A server's certificate and key, of no authority's."""
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*made, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def test_over_tls_only_who_is_trusted_is_asked(certificate):
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(*certificate)
    with scripted((200, {}, []), tls=own) as server:
        with pytest.raises(NotTrusted, match="is not trusted: self-signed certificate"):
            Client(server.url, waits_s=()).list_hosts()
        trusted = ssl.create_default_context(cafile=str(certificate[0]))
        assert Client(server.url, tls=trusted).list_hosts() == []


def test_a_forecast_is_waited_for_as_long_as_it_may_take():
    with scripted((200, {}, {"breaks": []}), (200, {}, []), after_s=1.0) as server:
        client = Client(server.url, timeout_s=0.1, waits_s=())
        assert client.what_if("north") == {"breaks": []}
        with pytest.raises(NoAnswer):
            client.list_hosts()
    assert [path for _, path, _ in server.asked] == ["/v1/what-if/north", "/v1/hosts"]
