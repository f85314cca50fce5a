"""That the stand-in has the quirks of OSCARS that our client relies on: asked as anybody would, by plain HTTP."""

import httpx
import pytest

from controller.providers.tests.buying import START_S
from controller.providers.tests.fake_oscars import TOKEN

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


def new(http, *args, **kwargs):
    """The status of asking for a circuit."""
    return http.post("/protected/l2vpn/new", json=vpn(*args, **kwargs)).status_code


def reason(http, *args, **kwargs):
    """What validation says of it."""
    return http.post("/api/l2vpn/validate", json=vpn(*args, **kwargs)).json()


def shown(http, name="CXA5"):
    """The circuit."""
    return http.get(f"/api/l2vpn/get/{name}").json()


def test_what_is_protected_wants_a_token_and_its_group(fake, http):
    for headers, status in (({}, 401), ({"Authorization": f"Bearer {fake.stranger}"}, 403)):
        answer = httpx.delete(http.base_url.join("/protected/l2vpn/release/CXA5"), headers=headers)
        assert (answer.status_code, answer.text) == (status, "")
    assert httpx.get(http.base_url.join("/api/l2vpn/get/CXA5")).status_code == 404


def test_a_refusal_is_a_500_without_a_reason_and_validation_has_it(http):
    refused = http.post("/protected/l2vpn/new", json=vpn(mbps=200_000))
    assert refused.status_code == 500
    assert set(refused.json()) == {"timestamp", "status", "error", "path"}
    assert "bandwidth 200000 not available" in reason(http, mbps=200_000)["message"]


def test_a_begin_at_once_becomes_half_a_minute_from_now_without_a_word(http):
    assert new(http, begin=START_S - 299) == 200
    assert shown(http)["schedule"]["beginning"] == START_S + 30


def test_less_than_fifteen_minutes_are_refused(http):
    assert new(http, end=START_S + 100 + 899) == 500
    assert new(http, end=START_S + 100 + 900) == 200


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


def test_the_archived_times_of_what_was_modified_are_wrong(fake, http):
    deployed(fake, http)
    modified(http, START_S + 2 * DAY)
    http.delete("/protected/l2vpn/release/CXA5")
    assert shown(http)["schedule"] == {"beginning": START_S + 2 * DAY, "ending": START_S + 2 * DAY}


def test_what_begins_when_another_ends_is_refused_and_a_second_later_not(http):
    end = START_S + 5_000
    assert new(http, "CXA5", end=end, mbps=100_000, vlan=2) == 200
    assert new(http, "CXA6", begin=end, mbps=1, vlan=3) == 500
    assert "vlan 2 not available" in reason(http, "CXA6", begin=end, mbps=0, vlan=2)["message"]
    assert new(http, "CXA6", begin=end + 1, mbps=100_000, vlan=2) == 200


def test_release_deletes_before_the_begin_and_archives_after(fake, http):
    new(http)
    assert http.delete("/protected/l2vpn/release/CXA5").status_code == 200
    assert http.get("/api/l2vpn/get/CXA5").status_code == 404
    deployed(fake, http)
    assert http.delete("/protected/l2vpn/release/CXA5").status_code == 200
    assert shown(http)["status"]["phase"] == "ARCHIVED"
    assert http.delete("/protected/l2vpn/release/CXA5").status_code == 200


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
