"""What a transfer over several circuits takes, and what the death of one of them costs it."""

import pytest

from controller.whatif.movers import Mover
from controller.whatif.simulation import Simulation
from controller.whatif.supposed import CircuitDeath, WorkItem
from controller.whatif.tests.supposing import T0, S, image, site, supposed
from mininet_tests.testing.networks import FILES, four_lanes, loaded
from topology.protocol import FlowClass
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


def moved_s(mover, lanes, size_bytes=4_000_000_000, file_bytes=0):
    """How long a mover takes over so many of four lanes, of 1 Gbit/s and 40 ms each."""
    network = four_lanes()
    item = WorkItem("dump", FlowClass.URGENT, ("albu",), "live", size_bytes, T0, file_bytes, mover, lanes=lanes)
    (transfer,) = Simulation(supposed(item, of=site(network, ()), lasts_s=600)).run().transfers
    return transfer.took_us / S


def test_streams_in_lock_step_are_dealt_to_the_lanes():
    """Four of sixteen are on each; one connection is on no more than one, so each of four carries a quarter."""
    in_lock_step = [Mover(streams, 16_000_000, lock_step=True) for streams in (1, 4, 16)]
    assert moved_s(in_lock_step[2], 4) == pytest.approx(moved_s(in_lock_step[1], 1, 10**9), rel=0.01)
    assert moved_s(in_lock_step[1], 4) == pytest.approx(moved_s(in_lock_step[0], 1, 10**9), rel=0.01)


def test_what_each_file_costs_is_not_less_over_several_lanes():
    """The lanes have a part of each file, and all of them wait."""
    per_file = Mover(per_file_us=2 * S)
    assert moved_s(per_file, 4, 10**10, 10**9) > 20 + 21
    checkpoints = Mover(checkpoint_bytes=10**8)
    pauses_s = moved_s(checkpoints, 1) - moved_s(Mover(), 1)
    assert moved_s(checkpoints, 4) - moved_s(Mover(), 4) == pytest.approx(pauses_s, rel=0.01)
