"""When a fallback is over because none of its connections is left."""

from dataclasses import replace

import pytest

from hostagent.agent.fallen import Fallen, deserted, fallen_after
from hostagent.kernel.image import object_image
from hostagent.kernel.layout import EntryCounters, layout_of

S_NS = 1_000_000_000
HOLD_NS = 10 * S_NS
FELL_NS = 100 * S_NS
LAYOUT = layout_of(object_image())
FELL = replace(LAYOUT.counters(LAYOUT.zero_counters), fallback_since_ns=FELL_NS, fallbacks=1, accounted_ns=FELL_NS)


def over_after_s(seen: list[EntryCounters], *, is_leased: bool = True) -> int | None:
    """How many seconds after the fall it is over, one look a second from then on; None if it is not."""
    fallen: dict[str, Fallen] = {}
    for after_s, one in enumerate(seen):
        fallen = fallen_after(fallen, {"image": one}, is_leased=is_leased)
        if list(deserted(fallen, FELL_NS + after_s * S_NS, HOLD_NS)):
            return after_s
    return None


@pytest.mark.parametrize(("fallbacks", "hold_s"), [(1, 10), (2, 20), (4, 80)])
def test_it_is_over_after_the_hold_which_doubles_as_in_the_kernel_part(fallbacks, hold_s):
    assert over_after_s([replace(FELL, fallbacks=fallbacks)] * 100) == hold_s


def test_it_is_not_over_while_a_connection_is_looked_at():
    assert over_after_s([replace(FELL, accounted_ns=FELL_NS + at) for at in range(60)]) is None


def test_three_looks_in_a_row_must_find_none():
    there = [replace(FELL, accounted_ns=FELL_NS + at) for at in range(30)]
    assert over_after_s(there + there[-1:] * 10) == 32


def test_it_is_not_over_while_no_lease_runs_for_no_connection_is_looked_at_then():
    assert over_after_s([FELL] * 60, is_leased=False) is None


def test_what_the_kernel_part_has_ended_has_not_fallen():
    assert fallen_after({"image": Fallen(FELL, 9)}, {"image": replace(FELL, fallback_since_ns=0)}, is_leased=True) == {}
