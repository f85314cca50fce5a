"""The paper's figure 11 in our fluid: the numbers that it prints, and those of SimGrid on the same fluid."""

import pytest

from controller.whatif.movers import Mover
from mininet_tests.papers.wertz.pftp import (
    BLOCK_BYTES,
    FILE_BYTES,
    LANE_BPS,
    LANES,
    RTT_US,
    Pftp,
    blocks_of,
    mbytes_per_s,
    takes_s,
)


@pytest.mark.parametrize(("streams", "printed"), [(1, 94), (16, 443)])
def test_the_model_says_what_the_paper_prints(streams, printed):
    assert mbytes_per_s(Pftp(streams)) == pytest.approx(printed, rel=0.01)


@pytest.mark.parametrize(
    ("streams", "simgrid"), [(1, 94.5138), (2, 189.0276), (4, 375.0548), (8, 424.3983), (16, 455.3159)]
)
def test_without_slow_start_and_set_up_it_says_what_simgrid_says(streams, simgrid):
    """SimGrid 3.32, CM02; ``mininet-tests/run what-if`` asks it anew."""
    assert mbytes_per_s(Pftp(streams, slow_start=False, setup=0)) == pytest.approx(simgrid, rel=1e-5)


def test_what_the_printed_443_are_below_the_long_run_is_the_last_round_the_session_and_slow_start():
    on_lane = Mover(16 // LANES, BLOCK_BYTES, lock_step=True)
    long_run_s = FILE_BYTES * 8 / (LANES * on_lane.effective_bps(LANE_BPS, RTT_US, 0))
    blocks_s, session_s, whole_s = (
        takes_s(one) for one in (Pftp(16, slow_start=False, setup=0), Pftp(16, slow_start=False), Pftp(16))
    )
    lost = (blocks_s - long_run_s, session_s - blocks_s, whole_s - session_s)
    assert [100 * each_s / long_run_s for each_s in lost] == pytest.approx([0.9, 1.4, 2.4], abs=0.06)


@pytest.mark.parametrize("streams", [1, 3, 16])
def test_out_of_step_streams_are_faster_and_every_block_is_dealt(streams):
    assert mbytes_per_s(Pftp(streams, lock_step=False)) > mbytes_per_s(Pftp(streams))
    dealt = blocks_of(Pftp(streams))
    assert sum(map(sum, dealt)) == FILE_BYTES
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
