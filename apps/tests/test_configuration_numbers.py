"""Numbers in the configuration: what is written is what counts, and what is wrong is said as people write it."""

import pytest

from apps.tests.test_configuration import GOOD, problems

CIRCUIT = "chile-illinois"


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
