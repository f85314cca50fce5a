"""What a controller is told of a plan that its agent does not act on."""

import json

import pytest

from hostagent.agent.declining import MOST_WHY, not_understood
from topology.protocol import Allocation, Allocations, Declined, FlowClass, parsed_allocations, to_bytes

ENTRY = Allocation("urgent/base20", FlowClass.URGENT, "192.0.2.7/32", 470_000_000, 7_000)


def _declined(data, in_force=5):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (whatever pydantic says)
        parsed_allocations(data)
    return not_understood(data, in_force, "0.1", caught.value)


def test_what_a_newer_controller_says_is_declined_with_the_part_that_is_not_known():
    told = json.loads(to_bytes(Allocations(7, 3_000, (ENTRY,))))
    told["entries"][0]["only_on_sundays"] = True
    declined = _declined(json.dumps(told).encode())
    assert (declined.epoch, declined.in_force) == (7, 5)
    assert declined.why.startswith("not understood by an agent of version 0.1: ")
    assert "only_on_sundays" in declined.why
    assert "\n" not in declined.why


def test_hundreds_of_mistakes_are_not_all_said():
    told = {"epoch": 7, "entries": [{} for _ in range(500)]}
    assert len(_declined(json.dumps(told).encode()).why) == MOST_WHY


@pytest.mark.parametrize(
    "data", [b"", b"[", b"[1]", b"7", b"{}", b'{"epoch": true}', b'{"epoch": "7"}', b'{"epoch": 4}', b"[" * 100_000]
)
def test_what_is_no_plan_of_now_is_not_declined(data):
    assert _declined(data) is None


def test_it_can_be_said():
    huge = json.dumps({"epoch": 1 << 63}).encode()
    assert _declined(huge) is None
    assert isinstance(_declined(json.dumps({"epoch": (1 << 63) - 1}).encode()), Declined)
