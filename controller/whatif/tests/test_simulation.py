"""What a run shows: the figures of the lab, whatever the workload no circuit above its rate, and no byte lost."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.purchases import Period
from controller.whatif import plans
from controller.whatif.movers import Mover
from controller.whatif.simulation import Simulation
from controller.whatif.supposed import (
    CircuitDeath,
    Opening,
    RandomDeaths,
    StoreBucket,
    WorkItem,
)
from controller.whatif.tests.supposing import SLICE_BYTES, T0, S, image, site, supposed
from mininet_tests.testing.networks import chile_illinois_2, described
from topology.network import Hop
from topology.network_text import section_of
from topology.protocol import FlowClass

RTT_US = 180_000


def took_s(scenario):
    """How long each transfer took, seconds."""
    return [one.took_us / S for one in Simulation(scenario).run().transfers]


def test_a_slice_on_a_warm_connection_alone_takes_what_the_lab_measured():
    alone = site(standing=())
    (seconds,) = took_s(supposed(image(), of=alone))
    assert seconds == pytest.approx(2.573 + 0.0, abs=RTT_US / S / 2)  # docs/results/summary.json, headway x 1


def test_a_slice_beside_database_and_background_takes_what_a_night_in_the_lab_took():
    night = supposed(image(every_us=17 * S), lasts_s=12 * 17)
    run = Simulation(night).run()
    assert [one.is_late(run.until_us) for one in run.transfers] == [False] * 12
    assert all(one.took_us / S == pytest.approx(2.655, abs=RTT_US / S / 2) for one in run.transfers)


def test_an_announcement_is_done_in_time_beside_one_of_a_higher_class_made_at_the_same_instant():
    standing = (("replication", FlowClass.PREDICTABLE, "base22"), ("raw", FlowClass.BACKGROUND, "base23"))
    bulk = WorkItem("a-bulk", FlowClass.BACKGROUND, ("base20",), "arch", 30 * 10**9, T0 + S)
    beside = WorkItem("b-image", FlowClass.URGENT, ("base21",), "arch", 10**9, T0 + S)
    run = Simulation(supposed(bulk, beside, of=site(chile_illinois_2(), standing), lasts_s=600)).run()
    assert [(one.item, one.is_late(run.until_us)) for one in run.transfers] == [("a-bulk", False), ("b-image", False)]


def test_hosts_without_an_agent_send_what_their_meters_let_through():
    said = section_of(chile_illinois_2())
    for host in ("base20", "base23"):
        said["sites"]["la-serena"]["hosts"][host]["agent"] = False
    held, metered = (Simulation(supposed(image(), of=site(of))).run() for of in (chile_illinois_2(), described(said)))
    (with_agent,), (without,) = held.transfers, metered.transfers
    assert (without.is_late(metered.until_us), without.sent_bytes) == (False, with_agent.sent_bytes)
    assert abs(without.took_us - with_agent.took_us) < 50_000
    sent = {name: one / held.standing_bytes[name] for name, one in metered.standing_bytes.items()}
    assert sent["background"] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("opening", "more_s"), [(Opening.RECEIVER, 0.18), (Opening.SENDER, 0.36)])
def test_a_new_connection_costs_a_round_trip_or_two(opening, more_s):
    (warm,) = took_s(supposed(image()))
    (new,) = took_s(supposed(image(opening=opening)))
    assert new - warm == pytest.approx(more_s, abs=0.02)


def test_each_of_several_hosts_has_files_of_its_own_which_cost_what_they_cost():
    per_file = Mover(per_file_us=10 * S)
    (one,) = took_s(supposed(image(file_bytes=SLICE_BYTES, mover=per_file)))
    (of_two,) = took_s(supposed(image(file_bytes=SLICE_BYTES, mover=per_file, senders=("base20", "base21"))))
    assert one > of_two - 0.1 > 10


def test_a_hand_over_in_the_simulation_takes_as_long_as_in_the_lab():
    seen = {}

    def watch(at_us, loads_bps):
        seen[at_us] = loads_bps.get(Hop("base20", "ls1"), 0)

    Simulation(supposed(image()), observe=watch).run()
    full_us = min(at_us for at_us, bps in seen.items() if bps > 900_000_000)
    assert 12_000 <= full_us - (T0 + S) <= 20_000  # docs/handover.md: 15 ms


def test_flows_of_a_circuit_that_dies_go_on_by_the_other_as_soon_as_in_the_lab():
    died_us = T0 + 5 * S
    big = image(1_000_000_000, senders=("base20",))
    seen = {}

    def watch(at_us, loads_bps):
        seen[at_us] = loads_bps.get(Hop("ls1", "south"), 0)

    scenario = supposed(big, of=site(chile_illinois_2()), deaths=(CircuitDeath("north", died_us, 20 * S),), lasts_s=120)
    run = Simulation(scenario, observe=watch).run()
    full_us = min(at_us for at_us, bps in seen.items() if bps > 450_000_000)
    assert full_us - died_us + 100_000 == pytest.approx(157_333, abs=RTT_US / 2)  # docs/results/failover.json
    (one,) = run.transfers
    assert one.is_late(run.until_us)
    assert "north down" in one.why
    assert one.sent_bytes - one.lost_bytes == 1_000_000_000
    assert one.lost_bytes > 5_000_000


def test_a_tail_that_was_on_a_circuit_as_it_died_is_sent_again():
    (before,) = Simulation(supposed(image(), of=site(chile_illinois_2()))).run().transfers
    ends_us = before.done_us - RTT_US
    death = CircuitDeath("north", ends_us + 20_000, 10 * S)
    (after,) = Simulation(supposed(image(), of=site(chile_illinois_2()), deaths=(death,))).run().transfers
    assert after.done_us > before.done_us
    assert after.sent_bytes - after.lost_bytes == before.sent_bytes
    assert after.lost_bytes > 0


def test_a_full_store_lets_in_what_it_drains():
    store = StoreBucket(400_000_000, 50_000_000)
    (one,) = Simulation(supposed(image(), of=site(standing=()), stores={"arch": store})).run().transfers
    filled_s = 50_000_000 * 8 / (934e6 - 400e6)
    expected_s = filled_s + (268_802_458 * 8 - filled_s * 934e6) / 400e6 + 0.18
    assert one.took_us / S == pytest.approx(expected_s, rel=0.01)


def test_nothing_is_sent_over_a_circuit_in_its_maintenance_and_what_has_no_time_for_it_is_refused():
    closed = site(schedules={"chile-illinois": (Period(T0 + 10 * S, T0 + 40 * S, 0),)}, standing=())
    seen = {}

    def watch(at_us, loads_bps):
        seen[at_us] = loads_bps.get(Hop("ls1", "ch1"), 0)

    run = Simulation(supposed(image(2_000_000_000), of=closed), observe=watch).run()
    assert T0 + 40 * S < run.transfers[0].done_us < T0 + 60 * S
    assert {bps for at_us, bps in seen.items() if T0 + 10 * S <= at_us < T0 + 40 * S} == {0}
    assert max(seen.values()) > 900_000_000
    due = Simulation(supposed(image(2_000_000_000, deadline_us=20 * S), of=closed)).run()
    assert [one.is_refused for one in due.transfers] == [True]
    assert "ls1->ch1" in due.transfers[0].why


def test_flows_go_by_the_other_circuit_while_theirs_is_in_its_maintenance():
    closed = site(chile_illinois_2(), schedules={"north": (Period(T0 + 10 * S, T0 + 300 * S, 0),)}, standing=())
    seen = {}

    def watch(at_us, loads_bps):
        seen[at_us] = tuple(loads_bps.get(Hop("ls1", line), 0) for line in ("north", "south"))

    run = Simulation(supposed(image(2_000_000_000), of=closed, lasts_s=400), observe=watch).run()
    assert run.transfers[0].done_us < T0 + 60 * S
    during = [loads for at_us, loads in seen.items() if T0 + 10 * S <= at_us < run.transfers[0].done_us]
    assert {north for north, _ in during} == {0}
    assert max(south for _, south in during) > 400_000_000
    late = replace(image(200_000_000, deadline_us=30 * S), first_us=T0 + 100 * S)
    (one,) = Simulation(supposed(late, of=closed, lasts_s=400)).run().transfers
    assert not one.is_refused
    assert one.done_us < T0 + 130 * S


IN_LOCK_STEP = Mover(1, 16_000_000, lock_step=True)


@pytest.mark.parametrize("mover", [IN_LOCK_STEP, Mover(checkpoint_bytes=10**7)])
def test_a_reservation_that_its_own_mover_does_not_use_is_kept_also_on_a_longer_way(mover):
    item = WorkItem(
        "w", FlowClass.URGENT, ("base20",), "arch", 0, T0 + S, rate_bps=300_000_000, for_us=40 * S, mover=mover
    )
    death = CircuitDeath("north", T0 + 10 * S, 60 * S)
    for deaths in ((), (death,)):
        run = Simulation(supposed(item, of=site(chile_illinois_2(), ()), deaths=deaths)).run()
        (kept,) = run.transfers
        assert kept.sent_bytes < 40 * 300_000_000 // 8 * 0.9
        assert kept.lacked_us < 2 * S if deaths else not kept.is_late(run.until_us)


def test_a_reservation_that_its_circuit_cannot_carry_for_a_time_is_broken_for_that_time():
    item = WorkItem(
        "nightly", FlowClass.BACKGROUND, ("base20",), "arch", 0, T0 + S, rate_bps=300_000_000, for_us=40 * S
    )
    whole = Simulation(supposed(item)).run()
    assert [one.is_late(whole.until_us) for one in whole.transfers] == [False]
    cut = Simulation(supposed(item, deaths=(CircuitDeath("chile-illinois", T0 + 10 * S, 5 * S),))).run()
    (one,) = cut.transfers
    assert one.is_late(cut.until_us)
    assert 5 * S <= one.lacked_us <= 5.1 * S


def test_deaths_that_are_drawn_are_those_of_their_seed():
    scenario = supposed(
        image(every_us=17 * S), lasts_s=600, random_deaths=(RandomDeaths("chile-illinois", 200 * S, 20 * S),)
    )
    one, same, other = (Simulation(scenario, seed).run() for seed in (1, 1, 2))
    assert one == same
    assert one.deaths != other.deaths


@st.composite
def nights(draw):
    """Periodic images beside standing flows on two circuits that die."""
    items = [
        replace(
            image(draw(st.integers(1, 3 * 10**8)), draw(st.sampled_from([("base20",), ("base20", "base21")]))),
            name=f"image{number}",
            first_us=T0 + draw(st.integers(0, 10 * S)),
            every_us=draw(st.integers(5 * S, 20 * S)),
            opening=draw(st.sampled_from(list(Opening))),
            deadline_us=draw(st.sampled_from([None, None, 3 * S])),
        )
        for number in range(draw(st.integers(1, 2)))
    ]
    deaths = tuple(
        CircuitDeath(name, T0 + draw(st.integers(0, 90 * S)), draw(st.integers(1, 30 * S)))
        for name in draw(st.lists(st.sampled_from(["north", "south"]), max_size=2))
    )
    return supposed(*items, of=site(chile_illinois_2()), deaths=deaths, lasts_s=60)


@settings(max_examples=20, deadline=None)
@given(nights())
def test_what_begins_as_it_did_before_goes_as_it_would_go_if_it_were_worked_out(night):
    assert Simulation(night).run() == Simulation(night, replays=False).run()


def test_a_quiet_night_is_worked_out_once():
    night = supposed(image(every_us=17 * S), lasts_s=17 * 100)
    done = Simulation(night)
    run = done.run()
    assert len(run.transfers) == 100
    assert len({one.took_us for one in run.transfers}) == 1
    assert done.virtual.plan.epoch < 40  # a new plan for each image would be hundreds


def test_a_time_to_look_that_something_else_has_made_needless_is_no_event():
    senders = ("base20", "base21", "base22", "base23")
    night = supposed(image(10**9, senders=senders, every_us=7 * S), of=site(standing=()), lasts_s=7 * 30)
    run = Simulation(night).run()
    assert len(run.transfers) == 30
    assert run.events < 23 * 30  # 25.5 for each with them


def test_a_run_is_the_same_when_few_plans_are_remembered(monkeypatch):
    night = supposed(image(every_us=17 * S), image(10**8, every_us=23 * S), lasts_s=120)
    night = replace(night, items=(night.items[0], replace(night.items[1], name="other", senders=("base21",))))
    first = Simulation(night).run()
    monkeypatch.setattr(plans, "MOST_PLANS", 1)
    assert Simulation(night).run() == first


def test_images_that_lapse_while_their_only_circuit_is_dead_are_given_up_and_late():
    night = supposed(
        image(every_us=17 * S), deaths=(CircuitDeath("chile-illinois", T0 + 20 * S, 300 * S),), lasts_s=600
    )
    run = Simulation(night).run()
    late = [one for one in run.transfers if one.is_late(run.until_us)]
    assert 16 <= len(late) <= 19  # one each 17 s of 300
    assert all(one.why == "chile-illinois down" for one in late if one.begun_us < T0 + 320 * S)
    assert all(one.done_us is None for one in late if one.begun_us < T0 + 280 * S)
    assert [one.took_us for one in run.transfers][-5:] == [run.transfers[0].took_us] * 5
