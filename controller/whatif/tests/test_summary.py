"""What runs show together, and what nobody holds, as a range."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from controller.whatif.outcomes import CircuitUse, RunOutcome, TransferOutcome
from controller.whatif.response import Unheld, takes_us
from controller.whatif.results import plain, run_of
from controller.whatif.simulation import Simulation
from controller.whatif.summary import MOST_BROKEN, broken, broken_count, strangers_us, summary_of
from controller.whatif.supposed import Stranger
from controller.whatif.tests.supposing import T0, S, image, site, supposed
from mininet_tests.testing.networks import chile_illinois, described
from topology.network_text import section_of

US = 1_000_000
GBIT_BPS = 941_482_444


def outcome(number, took_s, promised_s=10, **more):
    """A transfer."""
    done = None if took_s is None else T0 + round(took_s * S)
    return TransferOutcome("image", number, T0, T0 + promised_s * S, done, 100, 0, **more)


def run(*outcomes):
    """A run of a minute."""
    return RunOutcome(1, T0 + 60 * S, outcomes, CircuitUse(T0, S), {}, {}, 0)


def test_each_kind_of_end_is_counted_once():
    refused = TransferOutcome("image", 5, T0, None, None, 0, 0, "full", is_refused=True)
    unfinished = outcome(4, None, promised_s=90)
    (row,) = summary_of([run(outcome(0, 2), outcome(1, 3), outcome(2, 12), outcome(3, None), unfinished, refused)], {})
    assert (row.asked, row.refused, row.late, row.unfinished, row.over) == (6, 1, 2, 1, None)
    assert (row.low_us, row.median_us, row.high_us, row.worst_us) == (2 * S, 3 * S, 12 * S, 12 * S)
    assert row.done_by_us == T0 + 12 * S


def test_what_was_refused_or_never_came_is_over_its_time():
    refused = TransferOutcome("image", 2, T0, None, None, 0, 0, "full", is_refused=True)
    (row,) = summary_of([run(outcome(0, 4.9), outcome(1, 5.1), refused, outcome(3, None))], {"image": 5 * S})
    assert row.over == 3


def test_promises_that_break_are_told_with_their_reason():
    (one,) = broken([run(outcome(0, 2), outcome(1, 12, why="north down"))])
    assert (one["number"], one["why"], one["refused"]) == (1, "north down", False)


def test_more_than_a_thousand_broken_promises_are_all_told_and_those_beyond_the_most_are_counted():
    runs = [run(*(outcome(number, 12) for number in range(1_014)), outcome(2_000, 2))]
    assert [one["number"] for one in broken(runs)] == list(range(1_014))
    assert MOST_BROKEN > 1_014
    assert (len(broken(runs, 20)), broken_count(runs)) == (20, 1_014)


def test_a_run_is_the_same_after_it_was_written_down_as_json():
    found = Simulation(supposed(image(every_us=17 * S))).run()
    assert run_of(json.loads(json.dumps(plain(found)))) == found


@pytest.mark.parametrize("algorithm", ["reno", "cubic", "highspeed"])
def test_streams_that_share_a_file_wait_for_the_one_that_loses_most(algorithm):
    """Each of 64 streams loses 0.29 segments in the mean, and one in 64 more than two."""
    ways = [Unheld(180_000, 1448, 1e-4, streams) for streams in (1, 8, 27, 64)]
    at_mean_us = [takes_us(algorithm, 268_802_458, replace(way, streams=1), GBIT_BPS)[1] for way in ways]
    spans_us = [takes_us(algorithm, 268_802_458, way, GBIT_BPS) for way in ways]
    assert spans_us[0][1] == at_mean_us[0]  # a single one has what all have
    assert all(least < most for least, most in spans_us)
    assert all(one[1] > other[1] for one, other in pairwise(spans_us))
    assert spans_us[3][1] > 2 * spans_us[3][0]


def test_who_is_not_held_has_what_the_plan_leaves_to_the_unplanned():
    stranger = Stranger("copy", "base20", "arch", 10**9, "bbr", 1, 1e-4)
    least_us, most_us = strangers_us(supposed(image(), strangers=(stranger,)))["copy"]
    assert 8_000 * S < least_us < most_us  # 0.1% of 1 Gbit/s


def copies_us(*ends, network=None):
    """How long a copy of each pair of hosts takes, at the least and the most."""
    strangers = tuple(Stranger(f"{a}-{z}", a, z, 10**9, "bbr", 1, 1e-4) for a, z in ends)
    return strangers_us(supposed(of=site(network, standing=()), strangers=strangers))


def test_those_who_are_not_held_share_what_they_both_cross():
    there, too, back = ("base20", "arch"), ("base22", "arch"), ("arch", "base23")
    alone = copies_us(there)["base20-arch"]
    assert copies_us(there, back)["base20-arch"] == alone  # the other direction
    assert copies_us(there, too)["base20-arch"] == tuple(pytest.approx(2 * us, rel=0.001) for us in alone)


def test_who_is_not_held_and_has_no_ipv6_sends_as_if_nobody_had():
    said = section_of(chile_illinois())
    hosts = {name: host for section in said["sites"].values() for name, host in section["hosts"].items()}
    for number, name in enumerate(("base21", "arch")):
        hosts[name]["addresses"] = [hosts[name].pop("address"), f"2001:db8::{number + 1}"]
    both, ipv4 = ("base21", "arch"), ("base20", "arch")
    with_ipv6, without = copies_us(both, network=described(said)), copies_us(ipv4, network=described(said))
    assert without == copies_us(ipv4)
    assert with_ipv6["base21-arch"] > without["base20-arch"]
