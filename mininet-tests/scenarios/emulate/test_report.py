"""What an emulated play comes to: stretches in which the plan did not change, and what was delivered in them."""

import pytest

from mininet_tests.scenarios.emulate.figure import rates
from mininet_tests.scenarios.emulate.play import Play, Transfer
from mininet_tests.scenarios.emulate.report import PlanSeen, TransferSeen, report, steady
from topology.protocol import FlowClass

RTT_S = 0.1
PLAY = Play((), (Transfer("a", "x", "y", lasts_s=10.0),))


def seen_at(bps, until_us=10_000_000, step_us=10_000, **more):
    """A transfer from the first second on that arrives at a rate."""
    received = [(at_us, bps * (at_us - 1_000_000) // 8_000_000) for at_us in range(1_000_000, until_us, step_us)]
    return TransferSeen("a", 1, RTT_S, began_us=1_000_000, ended_us=until_us, received=received, **more)


def plans_of(*rates_bps, violations=()):
    """The plan in force, one rate each two seconds, asked for five times a second."""
    return [
        PlanSeen(1_000_000 + 2_000_000 * n + 200_000 * k, {"a": bps}, violations)
        for n, bps in enumerate(rates_bps)
        for k in range(10)
    ]


def test_a_stretch_begins_when_a_change_has_reached_the_receiver_and_ends_before_the_next():
    first, second = steady(seen_at(8_000_000), plans_of(8_000_000, 8_000_000, 9_000_000))
    assert (first.from_us, first.to_us) == (1_500_000, 4_800_000)
    assert (second.from_us, second.to_us, second.planned_bps) == (5_500_000, 6_800_000, 9_000_000)
    assert first.delivered_bps == pytest.approx(8_000_000, rel=1e-3)


def test_nothing_is_told_of_what_is_not_in_the_plan():
    assert list(steady(seen_at(8_000_000), plans_of(None, None))) == []
    told = report(PLAY, {"a": seen_at(8_000_000)}, plans_of(None, None), 0.5)
    assert told["transfers"]["a"]["delivered_share"] is None
    assert "a: delivered of what was planned" not in told["aims"]


@pytest.mark.parametrize(("bps", "falls"), [(8_000_000, False), (7_900_000, True), (8_100_000, True)])
def test_what_is_delivered_is_what_was_planned_to_half_a_percent(bps, falls):
    told = report(PLAY, {"a": seen_at(bps)}, plans_of(8_000_000, 8_000_000), 0.5)
    assert told["falls_short"] == (["a: delivered of what was planned"] if falls else [])


def test_a_promise_that_is_not_kept_and_a_layer_above_the_next_fall_short():
    play = Play((), (Transfer("a", "x", "y", size_bytes=1, announced=FlowClass.URGENT),))
    late = seen_at(8_000_000, until_us=9_000_000, promised_us=8_900_000)
    told = report(play, {"a": late}, plans_of(8_000_000, 8_000_000, violations=("meter above queue",)), 0.5)
    assert told["falls_short"] == ["layers above the next", "a: later than promised, ms"]
    assert told["transfers"]["a"]["late_ms"] == 100


def test_a_full_cpu_falls_short():
    assert report(PLAY, {"a": seen_at(8_000_000)}, plans_of(8_000_000), 0.0)["falls_short"] == ["CPU idle"]


def test_the_figure_has_a_rate_for_each_bin():
    times_s, rates_bps = rates([[n / 64, n * 1000] for n in range(66)])
    assert rates_bps == [512_000] * 5
    assert times_s == [13 / 128 + n * 13 / 64 for n in range(5)]
