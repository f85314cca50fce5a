"""What a switch holds, worked out where plans differ, is what is worked out whole."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, GIGABIT, IMAGE, RAW_IMAGES, any_network, demands_in, plan_of
from controller.plan.transitions import lesser_of
from controller.southbound.openflow.desired import switch_state
from controller.southbound.openflow.meter_numbers import MeterNumbers
from controller.southbound.openflow.plan_aggregates import NO_PLAN, plan_aggregates
from controller.southbound.openflow.switch_book import SwitchBook


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_under_one_plan_after_the_other_a_switch_is_to_hold_what_it_is_to_hold_under_each(data):
    network = data.draw(any_network)
    numbers, same_numbers = MeterNumbers(), MeterNumbers()
    books = [SwitchBook(switch, DEFAULT_POLICY, numbers) for switch in network.switches]
    plans = []
    for epoch in (2, 4, 6):
        plans.append(planned(epoch, network, DEFAULT_POLICY, data.draw(demands_in(network))))
        plans += [lesser_of(plans[-2], plans[-1])] if len(plans) > 1 else []
    found = NO_PLAN
    for one in data.draw(st.lists(st.sampled_from(plans), max_size=6)):
        down = data.draw(st.sets(st.sampled_from([c.name for c in network.circuits]), max_size=1))
        plan = replace(one, down=frozenset(down))
        found = plan_aggregates(network, plan, DEFAULT_POLICY, found)
        assert {pair: {*ways.items()} for pair, ways in found.between.items()} == {
            pair: {*ways.items()} for pair, ways in plan_aggregates(network, plan, DEFAULT_POLICY).between.items()
        }
        for switch, book in zip(network.switches, books, strict=True):
            whole = switch_state(network, switch, plan, DEFAULT_POLICY, same_numbers)
            assert book.state(network, plan, found) == whole


def test_what_a_plan_does_not_change_at_a_switch_is_the_very_same_value():
    book = SwitchBook(GIGABIT.switches[0], DEFAULT_POLICY, MeterNumbers())
    states, found = [], NO_PLAN
    for plan in (plan_of(DATABASE, RAW_IMAGES), plan_of(DATABASE, RAW_IMAGES), plan_of(DATABASE, RAW_IMAGES, *IMAGE)):
        found = plan_aggregates(GIGABIT, plan, DEFAULT_POLICY, found)
        states.append(book.state(GIGABIT, plan, found))
    assert states[0].rules is states[1].rules
    assert states[1].rules < states[2].rules


def test_a_number_that_another_look_has_moved_is_followed():
    numbers = MeterNumbers()
    book = SwitchBook(GIGABIT.switches[0], DEFAULT_POLICY, numbers)
    plan = plan_of(*IMAGE)
    found = plan_aggregates(GIGABIT, plan, DEFAULT_POLICY)
    book.state(GIGABIT, plan, found)
    switch_state(GIGABIT, GIGABIT.switches[0], plan_of(DATABASE, RAW_IMAGES), DEFAULT_POLICY, numbers)
    assert book.state(GIGABIT, plan, found) == switch_state(GIGABIT, GIGABIT.switches[0], plan, DEFAULT_POLICY, numbers)
