"""Numbers in the configuration: what is written is what counts, and what is wrong is said as people write it."""

import pytest

from apps.configuration import parsed
from apps.tests.test_configuration import GOOD, problems

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
