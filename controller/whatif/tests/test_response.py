"""How many losses the unluckiest of several streams has."""

import pytest

from controller.whatif.response import NORMAL_FROM, Unheld, unluckiest_loss

MSS_BYTES, LOSS = 1448, 1e-3


def unluckiest(mean, streams):
    """Its loss, by that of all, where each stream loses so many segments in the mean."""
    size_bytes = round(mean / LOSS * MSS_BYTES * streams)
    return unluckiest_loss(size_bytes, Unheld(100_000, MSS_BYTES, LOSS, streams)) / LOSS


@pytest.mark.parametrize("streams", [2, 8, 64])
def test_from_poisson_s_to_the_normal_quantile_there_is_no_step(streams):
    assert unluckiest(NORMAL_FROM * 0.999, streams) == pytest.approx(unluckiest(NORMAL_FROM * 1.001, streams), rel=3e-3)


@pytest.mark.parametrize("mean", [700, 750, 1e4, 1e6])
@pytest.mark.parametrize("streams", [2, 8, 64])
def test_the_more_a_stream_sends_the_nearer_it_is_to_the_mean(mean, streams):
    assert 1 <= unluckiest(mean, streams) <= 1 + 3 / mean**0.5


def test_a_single_stream_loses_what_all_lose():
    assert [unluckiest(mean, 1) for mean in (1, 100, 1e4)] == [1, 1, 1]
