"""That the stand-in has the quirks of OSCARS that our client relies on: asked as anybody would, by plain HTTP."""

import httpx
import pytest

from controller.providers.tests.buying import START_S
from controller.providers.tests.fake_oscars import TOKEN

DAY = 86_400
A, B = "chic-cr6:1/1/c9/1", "nash-cr6:1/1/c17/2"
WAY = ("chic-cr6", "chic-cr6:1/1/b1", "nash-cr6:1/1/b1", "nash-cr6")
PATH = [{"urn": urn} for urn in WAY]


@pytest.fixture
def http(fake, url):
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=5) as client:
        yield client


def vpn(name="CXA5", begin=START_S + 100, end=START_S + DAY, mbps=1000, vlan=2, path=None, **other):
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
                "lsps": [{"path": PATH if path is None else path, "role": "PRIMARY"}],
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


def status(http, name="CXA5"):
    """Phase, state, deployment and intent."""
    return tuple(shown(http, name)["status"].values())


def fits(http, mbps, end=START_S + DAY):
    """The path that the provider finds for a rate."""
    ends = ["chic-cr6", "nash-cr6"]
    body = {"a": ends[0], "z": ends[1], "azBw": mbps, "zaBw": mbps, "include": ends, "exclude": []}
    found = http.post("/api/pce/paths", json={**body, "interval": {"beginning": START_S + 100, "ending": end}}).json()
    return found["fits"] and tuple(hop["urn"] for hop in found["fits"]["azEro"])


@pytest.mark.parametrize(("token", "code"), [("", 401), ("stranger", 403), ("groupless", 500)])
def test_what_is_protected_wants_a_token_its_group_and_its_claim_of_groups(fake, http, token, code):
    headers = {"Authorization": f"Bearer {getattr(fake, token)}"} if token else {}
    assert httpx.get(http.base_url.join("/protected/ping"), headers=headers).status_code == code
    assert httpx.get(http.base_url.join("/api/l2vpn/get/CXA5")).status_code == 404


def test_a_refusal_is_a_500_without_a_reason_and_validation_says_one_cause_again_and_again(http):
    refused = http.post("/protected/l2vpn/new", json=vpn(mbps=200_000))
    assert refused.status_code == 500
    assert isinstance(refused.json()["timestamp"], int)
    sentences = reason(http, mbps=200_000, path=[])["message"].splitlines()
    assert f"total port ingress bw exceeds available: {A} 200000(req) / 100000 (avail)" in sentences
    assert len(sentences) == 10


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"end": START_S + 100 + 899}, "duration is too short"),
        ({"vlan": 1}, f"{A} : vlan 1 not available"),
        ({"endpoints": [{"device": "x", "port": "x:1", "vlan": 2}] * 2}, "x:1 not in topology"),
    ],
)
def test_what_is_refused_and_how(http, asked, why):
    assert new(http, **asked) == 500
    assert why in reason(http, **asked)["message"]


def test_a_begin_at_once_becomes_half_a_minute_from_now_without_a_word(http):
    assert new(http, begin=START_S - 299) == 200
    assert shown(http)["schedule"]["beginning"] == START_S + 30


def test_nobody_sees_what_the_routers_are_being_told(fake, http):
    new(http)
    seen = {}
    for ahead in (100, 119, 120, 86_400, 86_419, 86_420, 86_422):
        fake.ahead_s = ahead
        seen[ahead] = status(http)
    waiting, up = ("WAITING", "UNDEPLOYED", "SHOULD_BE_UNDEPLOYED"), ("ACTIVE", "DEPLOYED", "SHOULD_BE_DEPLOYED")
    assert [seen[at] for at in (100, 119, 120)] == [("RESERVED", *w) for w in (waiting, waiting, up)]
    assert [seen[at] for at in (86_400, 86_419)] == [("RESERVED", *up)] * 2
    assert [seen[at] for at in (86_420, 86_422)] == [("RESERVED", *waiting), ("ARCHIVED", *waiting)]


def test_a_path_that_is_empty_takes_nothing_of_the_backbone_and_one_that_is_said_does(fake, http):
    fake.rules.ports_mbps = {"chic-cr6:1/1/b1": 90_000}
    assert new(http, mbps=80_000, path=[]) == 200
    assert fits(http, 80_000) == WAY
    http.delete("/protected/l2vpn/release/CXA5")
    assert new(http, mbps=80_000) == 200
    assert "stlo-cr5" in fits(http, 80_000)
    assert fits(http, 900_000) is None


def deployed(fake, http, **kwargs):
    """A circuit in the routers."""
    assert new(http, **kwargs) == 200
    fake.ahead_s = 125


def modified(http, end):
    """The answer to a new end."""
    body = {"connectionId": "CXA5", "type": "END", "timestamp": end}
    return http.post("/protected/modify/schedule", json=body)


def test_the_end_of_what_was_never_deployed_cannot_be_moved(http):
    new(http)
    assert modified(http, START_S + 2 * DAY).status_code == 500


def test_an_end_at_once_becomes_a_minute_from_now_and_is_no_whole_second(fake, http):
    deployed(fake, http)
    fake.ahead_s = 5_000
    answer = modified(http, START_S + 5_010).json()
    assert (answer["success"], answer["connection"]["deployment-state"]) == (True, "DEPLOYED")
    assert START_S + 5_060 < shown(http)["schedule"]["ending"] < START_S + 5_061


def test_an_end_that_conflicts_is_done_and_called_a_success(fake, http):
    deployed(fake, http, end=START_S + 5_000)
    assert new(http, "CXA6", begin=START_S + 6_000, mbps=95_000) == 200
    assert modified(http, START_S + 7_000).json()["success"] is True
    assert shown(http)["schedule"]["ending"] == START_S + 7_000


def test_a_second_rate_is_lost_while_the_routers_are_told_of_the_first(fake, http):
    deployed(fake, http)
    for mbps, ahead in ((1100, 126), (1200, 160)):
        assert http.post("/protected/modify/bandwidth", json={"connectionId": "CXA5", "bandwidth": mbps}).json()
        fake.ahead_s = ahead
        shown(http)
    assert (shown(http)["qos"]["bandwidth"], fake.oscars.rows[0].routers_mbps) == (1200, 1100)
    assert status(http) == ("RESERVED", "ACTIVE", "DEPLOYED", "SHOULD_BE_DEPLOYED")


def lost(http, *args, **kwargs):
    """Ask for a circuit while the lock is held; whoever asks gives up."""
    with pytest.raises(httpx.HTTPError):
        new(http, *args, **kwargs)


def test_the_same_name_twice_over_the_lock_is_two_rows_and_the_end_of_everybodys_deployments(fake, http):
    new(http)
    new(http, "CXA8", vlan=4, begin=START_S + 900)
    fake.ahead_s = 110  # the routers are told of CXA5
    for _ in range(2):
        lost(http, "CXA6", vlan=3, begin=START_S + 800)
    assert http.get("/api/l2vpn/get/CXA6").status_code == 404
    fake.ahead_s = 2_000
    assert http.get("/api/l2vpn/get/CXA6").status_code == 500
    assert http.delete("/protected/l2vpn/release/CXA6").status_code == 500
    assert status(http, "CXA8")[1] == "WAITING"  # its begin is long past


def test_a_release_before_the_create_that_waits_leaves_an_orphan(fake, http):
    new(http)
    fake.ahead_s = 110
    lost(http, "CXA6", vlan=3, begin=START_S + 800)
    assert http.delete("/protected/l2vpn/release/CXA6").status_code == 404
    fake.ahead_s = 121
    assert status(http, "CXA6")[0] == "RESERVED"


def test_what_begins_when_another_ends_is_refused_and_a_second_later_not(http):
    end = START_S + 5_000
    assert new(http, "CXA5", end=end, mbps=100_000) == 200
    assert new(http, "CXA6", begin=end, mbps=1, vlan=3) == 500
    assert new(http, "CXA6", begin=end + 1, mbps=100_000) == 200


def test_a_commit_that_is_refused_leaves_a_hold_that_hides_what_is_reserved(http):
    new(http, mbps=1000)
    assert http.put("/protected/l2vpn/replace", json=vpn(mbps=2000, bundles=[])).status_code == 500
    assert (status(http)[0], shown(http)["qos"]["bandwidth"]) == ("HELD", 2000)
    http.get("/protected/held/clear/CXA5")
    assert (status(http)[0], shown(http)["qos"]["bandwidth"]) == ("RESERVED", 1000)
