"""What is measured about bursts is chosen and kept as it should be; no lab is needed for this."""

from mininet_tests.papers.antony import points, run, tcp
from mininet_tests.papers.antony.formulas import forbidden_bps
from mininet_tests.papers.antony.points import BUFFER_BYTES, GIGABIT, speeds_bps


def test_every_point_has_a_name_of_its_own_and_the_quick_ones_are_few():
    names = [point["name"] for point in points.points(run.STARTS, quick=False)]
    assert len(set(names)) == len(names)
    assert len(points.points(run.STARTS, quick=True)) <= 20


def test_no_buffer_is_tried_that_is_smaller_than_the_ports_bucket_of_tokens():
    for point in points.points(run.STARTS, quick=False):
        least = point["search"]["least"] if "search" in point else point["buffer_bytes"]
        assert least > point.get("start", point)["port_bps"] / 8 * tcp.PORT_BURST_S


def test_speeds_are_tried_on_both_sides_of_both_roots():
    for rtt_ms in points.RTTS_MS[1:]:
        low, high = forbidden_bps(GIGABIT, rtt_ms * 1000, BUFFER_BYTES)
        below, *inside, above = speeds_bps(rtt_ms)
        assert below < low < min(inside)
        assert max(inside) < high < above < GIGABIT


def test_a_value_that_is_looked_for_is_found_from_either_end():
    for threshold in (0, 1, 499, 1000):
        assert tcp.smallest(lambda value, t=threshold: value >= t, least=0, most=1000, resolution=1) == threshold
    assert tcp.smallest(lambda value: value > 1000, least=0, most=1000, resolution=1) is None
