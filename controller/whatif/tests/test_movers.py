"""What movers make of a rate: Wertz et al., figure 11, and MPSCP beside PFTP."""

import pytest

from controller.whatif.movers import Mover
from topology.wire import Framing, Layer, converted_bps

JUMBO = Framing(9000)
LANE_BPS = converted_bps(10**9, Layer.WIRE, Layer.PAYLOAD, JUMBO)  # four encryptors of 1 Gbit/s each
RTT_US = 40_000


def pftp_bps(streams):
    """PFTP with so many streams, dealt over four lanes, each with as many as another."""
    lanes = min(4, streams)
    on_lane = Mover(streams // lanes, 16_000_000, lock_step=True)
    return lanes * on_lane.effective_bps(LANE_BPS, RTT_US, 0)


@pytest.mark.parametrize(("streams", "mbytes"), [(1, 94.5), (2, 189.0), (4, 378.2), (8, 428.7), (16, 459.5)])
def test_streams_in_lock_step_have_what_the_formula_says(streams, mbytes):
    """In the long run; a file of 4 GB has a last round that is not whole, see test_figure_11."""
    assert pftp_bps(streams) / 8e6 == pytest.approx(mbytes, rel=0.002)


@pytest.mark.parametrize(("streams", "block", "share"), [(1, 16, 0.43), (4, 64, 0.92)])
def test_what_users_are_told_of_blocks_at_180_ms(streams, block, share):
    rate_bps = converted_bps(10**9, Layer.WIRE, Layer.PAYLOAD, Framing())
    mover = Mover(streams, block * 10**6, lock_step=True)
    assert mover.effective_bps(rate_bps, 180_000, 0) / rate_bps == pytest.approx(share, abs=0.01)


def test_files_that_cost_ten_seconds_each_make_pftp_twelve_times_slower_than_mpscp():
    mpscp_bps = round(90e9 * 8 / 483)
    small, large = (
        Mover(per_file_us=10_240_000).effective_bps(mpscp_bps, RTT_US, size) for size in (10**8, 16 * 10**8)
    )
    pftp_s = 500 * 8e8 / small + 25 * 16 * 8e8 / large
    assert pftp_s / 483 == pytest.approx(12.13, rel=0.01)


def test_a_checkpoint_costs_a_round_trip_and_what_streams_are_behind():
    mover = Mover(streams=4, block_bytes=10**6, checkpoint_bytes=10**8)
    seconds = 10**8 * 8 / mover.effective_bps(10**9, 100_000, 0)
    assert seconds == pytest.approx(0.8 + 0.1 + 0.032)


@pytest.mark.parametrize("at_once", [1, 4])
def test_files_under_way_together_share_what_each_costs(at_once):
    mover = Mover(per_file_us=1_000_000, files_at_once=at_once)
    seconds = at_once * 10**8 * 8 / mover.effective_bps(10**9, 0, 10**8)
    assert seconds == pytest.approx(at_once * 0.8 + 1.0)
