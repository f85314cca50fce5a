"""What a transfer over several circuits takes, and what the death of one of them costs it."""

import pytest

from controller.whatif.simulation import Simulation
from controller.whatif.supposed import CircuitDeath
from controller.whatif.tests.supposing import T0, S, image, site, supposed
from mininet_tests.testing.networks import FILES, loaded
from topology.wire import Framing, Layer, converted_bps

SIZE_BYTES = 2_688_000_000
TWO_LANES = loaded(FILES["two-lanes"])


def run(lanes, **more):
    """What becomes of it."""
    asked = image(SIZE_BYTES, lanes=lanes)
    return Simulation(supposed(asked, of=site(TWO_LANES, ()), **more)).run()


def took_s(lanes, **more):
    (transfer,) = run(lanes, **more).transfers
    return transfer.took_us / S


def test_two_lanes_take_what_the_formula_says():
    free_bps = 938_800_000, 469_400_000  # of 1 Gbit/s and half of it, beside what other classes are guaranteed
    rates = [converted_bps(bps, Layer.WIRE, Layer.PAYLOAD, Framing()) for bps in free_bps]
    confirmed = rates[0] * 0.18 + rates[1] * 0.2
    assert took_s(1) == pytest.approx((8 * SIZE_BYTES) / rates[0] + 0.18, abs=0.09)
    assert took_s(2) == pytest.approx((8 * SIZE_BYTES + confirmed) / sum(rates), abs=0.09)


def test_a_lane_that_dies_leaves_its_rest_to_the_other_and_the_promise_breaks():
    death = CircuitDeath("south", T0 + 6 * S, T0 + 600 * S)
    found = run(2, deaths=(death,))
    (transfer,) = found.transfers
    assert transfer.is_late(found.until_us)
    assert took_s(2) + 2 < transfer.took_us / S < took_s(1)  # five seconds by both, the rest by the better one alone
