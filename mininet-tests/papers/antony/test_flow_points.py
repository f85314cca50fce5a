"""The points of Antony's later figures, and what is read off a flow; no lab is needed for this."""

from mininet_tests.papers.antony import flow_figure, flow_points, flow_report
from mininet_tests.papers.antony.flow_points import again_after_s, mean_mbps
from mininet_tests.papers.antony.flow_points import flow_points as points
from mininet_tests.papers.antony.flows import TimedFlow
from mininet_tests.papers.antony.points import BUFFER_BYTES, FIG2_PORT_BPS

EVERY = [point for figure in flow_points.EXPERIMENTS for point in points(figure, quick=False)]


def flow(mbps, *, flood=None, every_s=1.0):
    """What is seen of a flow with a rate in each interval."""
    arrived = [0]
    for rate in mbps:
        arrived.append(arrived[-1] + rate * 125_000 * every_s)
    return {"arrived_bytes": arrived, "flow": {"every_s": every_s, "flood": flood}}


def test_every_point_is_a_flow_with_a_name_of_its_own_and_the_quick_ones_are_few():
    assert len({point["name"] for point in EVERY}) == len(EVERY)
    for point in EVERY:
        assert TimedFlow(**point["flow"]).payload_bps < FIG2_PORT_BPS
    assert sum(len(points(figure, quick=True)) for figure in flow_points.EXPERIMENTS) <= 20


def test_the_interface_overruns_the_port_in_every_figure_but_where_its_delay_is_long():
    slow = [point["name"] for point in EVERY if point["flow"]["nic_bps"] <= FIG2_PORT_BPS]
    assert slow
    assert all(name.startswith("fig11-") for name in slow)
    assert {point["flow"]["buffer_bytes"] for point in EVERY} == {BUFFER_BYTES}


def test_a_mean_is_over_the_intervals_between_two_times():
    seen = flow([100, 200, 300, 400])
    assert mean_mbps(seen) == 250
    assert mean_mbps(seen, 1, 3) == 250
    assert mean_mbps(seen, 3) == 400


def test_a_flow_is_as_before_in_the_first_interval_that_has_the_share_again():
    flood = [4.0, 1.0, 800_000_000]
    assert again_after_s(flow([0, 0, 100, 100, 5, 50, 94, 96, 100], flood=flood)) == 3
    assert again_after_s(flow([0, 0, 100, 100, 5, 100], flood=flood)) == 1
    assert again_after_s(flow([0, 0, 100, 100, 5, 50, 60], flood=flood)) is None


def at_plan(point):
    """What is seen of a point if its flow always has all of its plan; all others lose in the host and at the port."""
    wanted = point["flow"]
    steps = range(round(wanted["lasts_s"] / wanted["every_s"]) + 1)
    held = wanted["sender"] == "headway"
    payload_bps = TimedFlow(**wanted).payload_bps * (1 if held else 0.5)
    losses = dict.fromkeys(("dropped_in_host", "dropped_at_port", "sent_again"), 0 if held else 7)
    seen = {"arrived_bytes": [payload_bps / 8 * wanted["every_s"] * step for step in steps], "idle_share": 0.5}
    lost_ms = None if held else 970.7
    trace = {"segments_by_round": [1, 2], "at_port": [[0.0, 0], [96.0, 1448]], "first_lost_ms": lost_ms}
    return point | seen | losses | ({"trace": trace} if wanted.get("is_traced") else {})


def test_each_figure_is_reported_drawn_and_judged(tmp_path):
    made = flow_report.reports([at_plan(point) for point in EVERY])
    assert set(made) == {f"antony_{figure}" for figure in flow_points.EXPERIMENTS} == set(flow_figure.DRAWN)
    for name, report in made.items():
        flow_figure.DRAWN[name](report, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    missed = {name for name, aim in flow_report.aims(made).items() if not aim.ok}
    assert missed == {"antony_fig11: best delay and socket, of the same without delay"}, "all delays are alike here"
