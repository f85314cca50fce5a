"""Numbers in the configuration: what is written is what counts, and what is wrong is said as people write it."""

import pytest

from apps.configuration import parsed
from apps.tests.test_configuration import GOOD, problems
from topology.protocol import FlowClass

CIRCUIT = "chile-illinois"
OIDC = {"issuer": "https://login.example", "audience": "headway"}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"circuits": {CIRCUIT: {"vlan_vid": True}}}, f"circuits.{CIRCUIT}.vlan_vid"),
        ({"access": {"requests_per_s": True}}, "access.requests_per_s"),
        ({"access": {"quotas": {"default": {"entries": True}}}}, "access.quotas.default.entries"),
        ({"audit": {"ignore": [{"table": True, "priority": 7}]}}, "audit.ignore[0].table"),
    ],
)
def test_yes_is_no_count(change, place):
    assert problems(GOOD | change) == (f"{place}: is not a whole number",)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"lease": "299 ms"}, "lease: must be between 300 ms and 10 min"),
        ({"lease": "11 min"}, "lease: must be between 300 ms and 10 min"),
        ({"audit": {"interval": "0 s"}}, "audit.interval: must be between 1 s and 1 h"),
        ({"failover": {"return_after": "2 h"}}, "failover.return_after: must be between 0 s and 1 h"),
        ({"pair": {"address": "http://127.0.0.1", "ttl": "2 min"}}, "pair.ttl: must be between 200 ms and 1 min"),
        ({"lease": "3"}, 'lease: "3" is not a duration'),
        ({"access": {"oidc": OIDC | {"groups": {}}}}, "access.oidc.groups: must not be empty"),
    ],
)
def test_bounds_are_said_as_people_write_them(change, problem):
    (said,) = problems(GOOD | change)
    assert said.startswith(problem)


def test_the_bounds_themselves_are_within():
    for text, lease_ms in (("300 ms", 300), ("10 min", 600_000)):
        assert parsed(GOOD | {"lease": text}, "test.yaml").site.lease_ms == lease_ms


def test_a_small_fraction_is_one_however_python_writes_it():
    policy = {"urgent": {"guarantee": 0.00005, "cap": 1}}
    urgent = parsed(GOOD | {"policy": policy}, "test.yaml").site.policy.classes[FlowClass.URGENT]
    assert urgent.guarantee_ppm == 50


def test_capacities_at_one_time_and_an_end_before_the_start_are_said_in_times():
    first = {"from": "2026-12-24T10:00:00Z", "until": "2026-12-24T12:00:00Z", "rate": "5 Gbit/s"}
    second = {"from": "2026-12-24T11:00:00Z", "until": "2026-12-24T13:00:00Z", "rate": "4 Gbit/s"}
    backwards = {"from": "2026-12-25T11:00:00Z", "until": "2026-12-25T10:00:00Z", "rate": "4 Gbit/s"}
    place = f"circuits.{CIRCUIT}.schedule"
    assert problems(GOOD | {"circuits": {CIRCUIT: {"schedule": [first, second, backwards]}}}) == (
        f"{place}: the end, 2026-12-25T10:00:00Z, must come after the start",
        f"{place}: two capacities from 2026-12-24T11:00:00Z until 2026-12-24T12:00:00Z",
    )
