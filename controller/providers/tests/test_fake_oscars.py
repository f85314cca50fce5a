"""That the stand-in has OSCARS' quirks: asked as anybody would, by plain HTTP."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from controller.providers.tests.buying import START_S
from controller.providers.tests.fake_oscars import TOKEN, Faults
from mininet_tests.testing.eventually import eventually

DAY = 86_400
A, B = "chic-cr6:1/1/c9/1", "nash-cr6:1/1/c17/2"


@pytest.fixture
def http(fake, url):
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=5) as client:
        yield client


def vpn(name="CXA5", begin=START_S + 100, end=START_S + DAY, mbps=1000, vlan=2, **other):
    """A request of the L2VPN API."""
    return {
        "name": name,
        "meta": {"description": "a test"},
        "schedule": {"beginning": begin, "ending": end},
        "qos": {"mode": "GUARANTEED", "excessAction": "DROP", "bandwidth": mbps},
        "tech": {"mode": "AUTOMATIC", "flavor": "VPLS", "mtu": 9000, "macsec": False},
        "endpoints": [{"device": p.split(":")[0], "port": p, "vlan": vlan, "tagged": True} for p in (A, B)],
        "bundles": [
            {
                "name": "pipe",
                "a": "chic-cr6",
                "z": "nash-cr6",
                "protection": "NONE",
                "constraints": {"include": [], "exclude": []},
                "lsps": [{"path": [], "role": "PRIMARY"}],
            }
        ],
        **other,
    }


def classic(name="CXA5", begin=START_S + 100, end=START_S + DAY, **other):
    """A request of the classic API."""
    return {
        "connectionId": name,
        "begin": begin,
        "end": end,
        "connection_mtu": 9000,
        "description": "a test",
        "junctions": [{"device": "chic-cr6"}],
        "fixtures": [{"junction": "chic-cr6", "port": A, "vlan": vlan, "mbps": 1000} for vlan in (2, 3)],
        "pipes": [],
        **other,
    }


def new(http, *args, **kwargs):
    """The status of asking for a circuit."""
    return http.post("/protected/l2vpn/new", json=vpn(*args, **kwargs)).status_code


def reason(http, *args, **kwargs):
    """What validation says of it."""
    return http.post("/api/l2vpn/validate", json=vpn(*args, **kwargs)).json()


def shown(http, name="CXA5"):
    """The circuit."""
    return http.get(f"/api/l2vpn/get/{name}").json()


def raw(http, path, text):
    """The answer to a body that is one bare word."""
    return http.post(path, content=text, headers={"Content-Type": "text/plain"})


def test_what_is_protected_wants_a_token_and_its_group(fake, http):
    for headers, status in (({}, 401), ({"Authorization": f"Bearer {fake.stranger}"}, 403)):
        answer = httpx.get(http.base_url.join("/protected/ping"), headers=headers)
        assert (answer.status_code, answer.text) == (status, "")
    assert httpx.get(http.base_url.join("/api/ping")).text == "pong"


def test_a_refusal_is_a_500_without_a_reason_and_validation_has_it(http):
    refused = http.post("/protected/l2vpn/new", json=vpn(mbps=200_000))
    assert refused.status_code == 500
    assert set(refused.json()) == {"timestamp", "status", "error", "path"}
    assert "bandwidth 200000 not available" in reason(http, mbps=200_000)["message"]


def test_identifiers_are_bare_text_and_not_json(http):
    http.post("/protected/hold", json=classic())
    assert raw(http, "/protected/conn/commit", '"CXA5"').status_code == 404
    assert raw(http, "/protected/conn/commit", "CXA5").json()["what"] == "COMMITTED"


@pytest.mark.parametrize(
    ("style", "beginning"),
    [("decimal", 1767225700.0), ("integer", 1767225700), ("iso", "2026-01-01T00:01:40Z")],
)
def test_times_are_decimals_integers_or_iso(fake, http, style, beginning):
    fake.times_as = style
    new(http)
    said = shown(http)["schedule"]["beginning"]
    assert (said, type(said)) == (beginning, type(beginning))


def test_a_begin_at_once_becomes_half_a_minute_from_now_without_a_word(http):
    assert new(http, begin=START_S - 299) == 200
    assert shown(http)["schedule"]["beginning"] == START_S + 30


def test_a_begin_more_than_five_minutes_ago_is_refused(http):
    assert "5 minutes in the past" in reason(http, begin=START_S - 301)["message"]


def test_less_than_fifteen_minutes_are_refused(http):
    assert new(http, end=START_S + 100 + 899) == 500
    assert new(http, end=START_S + 100 + 900) == 200


def test_times_beyond_2038_are_not_shown(http):
    new(http, end=2_145_916_801)
    assert shown(http)["schedule"]["ending"] == 2_145_916_800
    assert new(http, "CXA6", end=2**31 + 1000) == 500


def test_a_hold_lapses_after_fifteen_minutes(fake, http):
    http.post("/protected/hold", json=classic())
    fake.ahead_s = 899
    assert http.get("/api/conn/info/CXA5").json()["phase"] == "HELD"
    assert http.get("/protected/extend_hold/CXA5").json() == START_S + 899 + 900
    fake.ahead_s = 899 + 900
    assert http.get("/api/conn/info/CXA5").status_code == 404
    assert raw(http, "/protected/conn/commit", "CXA5").status_code == 404


def test_a_restart_loses_holds_and_keeps_reservations(fake, http):
    new(http, "CXA6", vlan=9)
    http.post("/protected/hold", json=classic())
    fake.oscars.restart()
    assert http.get("/api/conn/info/CXA5").status_code == 404
    assert shown(http, "CXA6")["status"]["phase"] == "RESERVED"


def test_who_asks_while_it_starts_gets_503_without_a_word(fake, http):
    fake.rules.start_s = 60
    fake.oscars.restart()
    assert (http.get("/api/l2vpn/get/CXA5").status_code, http.get("/api/ping").text) == (503, "")
    fake.ahead_s = 60
    assert http.get("/api/l2vpn/get/CXA5").status_code == 404


def test_what_is_held_is_not_in_the_list_of_what_is_held(http):
    http.post("/protected/hold", json=classic())
    assert http.get("/protected/held/current").json() == []
    assert http.get("/protected/held/clear/CXA5").status_code == 200
    assert http.get("/protected/held/clear/CXA5").status_code == 200


def test_the_same_hold_again_replaces_it_and_empty_lists_clear(http):
    http.post("/protected/hold", json=classic())
    again = http.post("/protected/hold", json=classic(fixtures=[], junctions=[])).json()
    assert (again["fixtures"], again["heldUntil"]) == ([], START_S + 900)
    assert raw(http, "/protected/conn/commit", "CXA5").status_code == 400


def test_a_missing_number_is_a_500(http):
    assert http.post("/protected/hold", json=classic(connection_mtu=None)).status_code == 500
    assert http.post("/protected/l2vpn/new", json=vpn(meta=None)).status_code == 500


def deployed(fake, http, **kwargs):
    """A circuit in the routers."""
    new(http, **kwargs)
    fake.ahead_s = 100 + 3 + 20
    return shown(http)["status"]


def test_what_is_reserved_carries_nothing_until_it_is_deployed(fake, http):
    new(http)
    seen = []
    for ahead in (0, 99, 100, 103, 122, 123):
        fake.ahead_s = ahead
        status = shown(http)["status"]
        seen.append((status["phase"], status["state"], status["deploymentState"]))
    assert seen == [
        ("RESERVED", "WAITING", "UNDEPLOYED"),
        ("RESERVED", "WAITING", "UNDEPLOYED"),
        ("RESERVED", "WAITING", "WAITING_TO_BE_DEPLOYED"),
        ("RESERVED", "WAITING", "BEING_DEPLOYED"),
        ("RESERVED", "WAITING", "BEING_DEPLOYED"),
        ("RESERVED", "ACTIVE", "DEPLOYED"),
    ]


def test_at_its_end_it_is_undeployed_and_archived(fake, http):
    deployed(fake, http)
    fake.ahead_s = DAY + 23
    status = shown(http)["status"]
    assert (status["phase"], status["state"], status["deploymentState"]) == ("ARCHIVED", "FINISHED", "UNDEPLOYED")


def test_deployment_can_fail(fake, http):
    fake.faults = Faults(fail_deployment=True)
    assert deployed(fake, http)["deploymentState"] == "DEPLOY_FAILED"


def test_a_new_rate_is_deployed_again(fake, http):
    deployed(fake, http)
    http.post("/protected/modify/bandwidth", json={"connectionId": "CXA5", "bandwidth": 500})
    seen = []
    for ahead in (123, 126, 129, 149):
        fake.ahead_s = ahead
        status = shown(http)["status"]
        seen.append((status["deploymentState"], status["deploymentIntent"]))
    assert seen == [
        ("DEPLOYED", "SHOULD_BE_REDEPLOYED"),
        ("WAITING_TO_BE_REDEPLOYED", "SHOULD_BE_REDEPLOYED"),
        ("BEING_REDEPLOYED", "SHOULD_BE_REDEPLOYED"),
        ("DEPLOYED", "SHOULD_BE_DEPLOYED"),
    ]
    assert shown(http)["qos"]["bandwidth"] == 500


def modified(http, end):
    """The answer to a new end."""
    body = {"connectionId": "CXA5", "type": "END", "timestamp": end}
    return http.post("/protected/modify/schedule", json=body)


def test_the_end_of_what_was_never_deployed_cannot_be_moved(http):
    new(http)
    assert modified(http, START_S + 2 * DAY).status_code == 500


def test_an_end_at_once_becomes_a_minute_from_now_without_a_word(fake, http):
    deployed(fake, http)
    fake.ahead_s = 5_000
    assert modified(http, START_S + 5_010).json()["success"] is True
    assert shown(http)["schedule"]["ending"] == START_S + 5_060


def test_success_is_said_and_shown_of_what_was_not_done(fake, http):
    deployed(fake, http)
    answer = modified(http, START_S + 500).json()  # less than 15 minutes after the begin
    assert answer["success"] is True
    assert answer["connection"]["reserved"]["schedule"]["ending"] == START_S + 500
    assert shown(http)["schedule"]["ending"] == START_S + DAY


def test_a_begin_cannot_be_moved(fake, http):
    deployed(fake, http)
    body = {"connectionId": "CXA5", "type": "BEGIN", "timestamp": START_S}
    assert http.post("/protected/modify/schedule", json=body).json()["success"] is False


def test_the_archived_times_of_what_was_modified_are_wrong(fake, http):
    deployed(fake, http)
    modified(http, START_S + 2 * DAY)
    http.delete("/protected/l2vpn/release/CXA5")
    assert shown(http)["schedule"] == {"beginning": START_S + 2 * DAY, "ending": START_S + 2 * DAY}


def test_two_equal_rates_that_begin_together_count_once(fake, http):
    fake.rules.ports_mbps[A] = 10_000
    assert new(http, "CXA5", mbps=4_000, vlan=2) == 200
    assert new(http, "CXA6", mbps=4_000, vlan=3) == 200
    assert new(http, "CXA7", mbps=6_000, vlan=4) == 200  # 14,000 of 10,000
    assert new(http, "CXA8", mbps=1, vlan=5) == 500


def test_what_begins_when_another_ends_is_refused_and_a_second_later_not(http):
    end = START_S + 5_000
    assert new(http, "CXA5", end=end, mbps=100_000, vlan=2) == 200
    assert new(http, "CXA6", begin=end, mbps=1, vlan=3) == 500
    assert "vlan 2 not available" in reason(http, "CXA6", begin=end, mbps=0, vlan=2)["message"]
    assert new(http, "CXA6", begin=end + 1, mbps=100_000, vlan=2) == 200


def test_what_is_held_counts_whatever_its_time(http):
    http.post("/protected/hold", json=classic(begin=START_S + 50 * DAY, end=START_S + 51 * DAY))
    assert "vlan 2 not available" in reason(http, "CXA6")["message"]


def test_release_deletes_before_the_begin_and_archives_after(fake, http):
    new(http)
    assert raw(http, "/protected/conn/release", "CXA5").json()["what"] == "DELETED"
    assert http.get("/api/l2vpn/get/CXA5").status_code == 404
    deployed(fake, http)
    assert raw(http, "/protected/conn/release", "CXA5").json()["what"] == "ARCHIVED"
    assert shown(http)["status"]["phase"] == "ARCHIVED"
    assert raw(http, "/protected/conn/release", "CXA5").status_code == 400
    assert http.delete("/protected/l2vpn/release/CXA5").status_code == 200


@pytest.mark.parametrize(("name", "status"), [("CXA", 500), ("5XAC", 500), ("CX-A_5", 200), ("C" * 13, 500)])
def test_identifiers_have_a_syntax(http, name, status):
    assert new(http, name) == status


def test_generated_identifiers_are_four_characters_and_not_quoted(http):
    assert re.fullmatch("[A-Z][234679CDFGHJKMNPRTWXYZ]{3}", http.get("/protected/conn/generateId").text)


def test_lists_match_vlans_by_substring(http):
    new(http, "CXA5", vlan=12)
    new(http, "CXA6", vlan=210)
    for path, key, name in (("/api/conn/list", "connections", "connectionId"), ("/api/l2vpn/list", "l2vpns", "name")):
        names = [found[name] for found in http.post(path, json={"vlans": [1]}).json()[key]]
        assert names == ["CXA5", "CXA6"]


def test_new_replaces_what_has_the_name_already(http):
    new(http, mbps=1000)
    assert new(http, mbps=2000) == 200
    assert shown(http)["qos"]["bandwidth"] == 2000


def test_a_commit_that_is_refused_leaves_a_hold_that_hides_what_is_reserved(http):
    new(http, mbps=1000)
    assert http.put("/protected/l2vpn/replace", json=vpn(mbps=2000, bundles=[])).status_code == 500
    assert (shown(http)["status"]["phase"], shown(http)["qos"]["bandwidth"]) == ("HELD", 2000)
    http.get("/protected/held/clear/CXA5")
    assert (shown(http)["status"]["phase"], shown(http)["qos"]["bandwidth"]) == ("RESERVED", 1000)


def test_what_is_above_the_rate_is_dropped_only_if_asked_for(http):
    new(http, "CXA5")
    new(http, "CXA6", vlan=3, qos={"mode": "GUARANTEED", "bandwidth": 1000})
    assert [shown(http, name)["qos"]["excessAction"] for name in ("CXA5", "CXA6")] == ["DROP", "SCAVENGER"]


@pytest.mark.parametrize(("drop", "status"), [("before", 404), ("after", 200)])
def test_a_connection_can_break_before_and_after_acting(fake, http, drop, status):
    fake.faults = Faults(only="POST", drop=drop)
    with pytest.raises(httpx.TransportError):
        new(http)
    assert http.get("/api/l2vpn/get/CXA5").status_code == status


def test_an_answer_can_be_late_after_acting(fake, http):
    fake.faults = Faults(only="POST", slow_s=0.3)
    with pytest.raises(httpx.ReadTimeout):
        http.post("/protected/l2vpn/new", json=vpn(), timeout=0.1)
    assert http.get("/api/l2vpn/get/CXA5").status_code == 200


def test_a_fault_lasts_as_often_as_it_should(fake, http):
    fake.faults = Faults(times=1, status=500)
    assert [http.get("/api/ping").status_code for _ in range(2)] == [500, 200]


def test_a_lie_changes_nothing(fake, http):
    fake.faults = Faults(lie=True)
    assert new(http) == 200
    assert http.get("/api/l2vpn/get/CXA5").status_code == 404


def test_another_process_may_set_clock_and_faults(fake, http):
    new(http)
    assert http.post("/fake/clock", json={"ahead_s": 123}).json() == {"now_s": START_S + 123}
    (circuit,) = http.get("/fake/circuits").json()
    assert circuit["deploymentState"] == "DEPLOYED"
    http.post("/fake/faults", json={"status": 503})
    assert http.get("/api/ping").status_code == 503


def test_it_serves_as_a_process_of_its_own():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    code = f"from controller.providers.tests.fake_oscars import FakeOscars, serve; serve(FakeOscars(), {port})"
    with subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[3]) as process:
        try:
            assert eventually(lambda: pong(port), within_s=20, what="an answer")
        finally:
            process.terminate()


def pong(port):
    """What it answers, as soon as it does."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/api/ping").text == "pong"
    except httpx.ConnectError:
        return False
