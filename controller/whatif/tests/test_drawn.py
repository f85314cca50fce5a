"""Whatever a scenario says: no link above its rate, no byte lost, and no order of its parts that changes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.whatif.simulation import Simulation
from controller.whatif.summary import strangers_us
from controller.whatif.tests.drawn import scenarios, turned
from controller.whatif.tests.supposing import T0, S

WIRE_OVER_PAYLOAD = 1538 / 1448


@settings(max_examples=60, deadline=None)
@given(scenarios())
def test_no_link_ever_carries_more_than_it_has_and_every_byte_is_accounted_for(scenario):
    network, left = scenario.site.network, {"bits": 0, "at_us": T0, "bps": 0}

    def watch(at_us, loads_bps):
        for hop, bps in loads_bps.items():
            assert bps <= network.link(*hop).rate_bps, (at_us, hop)
            for period in scenario.site.schedules.get(network.link(*hop).circuit, ()):
                assert bps <= period.rate_bps or not period.start_us + S <= at_us < period.end_us, (at_us, hop)
        left["bits"] += left["bps"] * (at_us - left["at_us"])
        left["at_us"] = at_us
        left["bps"] = sum(bps for hop, bps in loads_bps.items() if hop.tail in network.host_names)

    run = Simulation(scenario, 1, observe=watch).run()
    watch(run.until_us, {})
    sizes = {item.name: item.size_bytes for item in scenario.items}
    for one in (each for each in run.transfers if sizes[each.item]):
        arrived_bytes = one.sent_bytes - one.lost_bytes
        assert arrived_bytes <= sizes[one.item] + 1
        if one.done_us is not None:
            assert abs(arrived_bytes - sizes[one.item]) <= 1
            assert one.done_us > one.begun_us
    sent_bytes = sum(one.sent_bytes for one in run.transfers) + sum(run.standing_bytes.values())
    parts = len(run.transfers) + len(run.standing_bytes) + 1
    assert left["bits"] / S == pytest.approx(
        sent_bytes * 8 * WIRE_OVER_PAYLOAD, rel=1e-6, abs=10_000 * parts
    )  # the last microsecond


@settings(max_examples=40, deadline=None)
@given(scenarios().flatmap(lambda scenario: st.tuples(st.just(scenario), turned(scenario))))
def test_a_run_is_the_same_in_whatever_order_its_parts_were_said(both):
    first, other = (Simulation(scenario, 1).run() for scenario in both)
    assert other == first
    spans = [strangers_us(scenario) for scenario in both]
    assert spans[0] == spans[1]


@settings(max_examples=20, deadline=None)
@given(scenarios())
def test_what_begins_as_it_did_before_goes_as_it_would_go_if_it_were_worked_out(scenario):
    replayed, worked = (Simulation(scenario, 1, replays=replays).run() for replays in (True, False))
    assert replayed == worked


PROGRAM = """
from hypothesis import Phase, given, settings
from controller.whatif.simulation import Simulation
from controller.whatif.tests.drawn import scenarios

@settings(max_examples=8, derandomize=True, database=None, phases=[Phase.generate], deadline=None)
@given(scenarios())
def show(scenario):
    print([item.name for item in scenario.items], Simulation(scenario, 1).run())

show()
"""


def test_a_run_does_not_depend_on_how_python_orders_sets():
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert said[0].count("RunOutcome") == 8
    assert said[0].count("TransferOutcome") > 8
    assert said[1:] == said[:1] * 2
