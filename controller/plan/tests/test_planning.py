"""A plan that is worked out where it differs from another one is the plan that is worked out whole."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.plan import PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import any_network
from controller.plan.tests.test_growth import demands, pairs


@st.composite
def changed(draw, network, demand):
    """A demand, or one with some of its flows, promises and capacities and some of another's."""
    other = draw(demands(network))
    kept = draw(st.lists(st.booleans(), min_size=len(demand.flows), max_size=len(demand.flows)))
    flows = {f.name: f for f, stays in zip(demand.flows, kept, strict=True) if stays}
    flows |= {f.name: f for f in other.flows if draw(st.booleans())}
    # the marks of a pair's flows may be the same now: what tells them apart is not the plan's matter
    capacity, reserved = (draw(st.sampled_from([demand, other])) for _ in range(2))
    return PlanInput(tuple(flows.values()), capacity.capacity_bps, reserved.reserved_bps)


@given(st.data())
def test_a_change_worked_out_from_any_other_plan_is_the_whole_plan_worked_out(data):
    network = data.draw(any_network)
    demand = data.draw(demands(network))
    plan = planned(2, network, DEFAULT_POLICY, demand)
    for epoch in range(4, 12, 2):
        demand = data.draw(changed(network, demand))
        plan = planned(epoch, network, DEFAULT_POLICY, demand, plan.workings)
        whole = planned(epoch, network, DEFAULT_POLICY, demand)
        assert plan == whole
        assert [*plan.links] == [*whole.links]
        assert plan.workings == whole.workings


def test_what_a_change_does_not_touch_is_the_very_same_value():
    network, flows = pairs(20)
    before = planned(2, network, DEFAULT_POLICY, PlanInput(flows))
    changed_flow = replace(flows[3], wanted_bps=10**6)
    demand = PlanInput(tuple(changed_flow if f is flows[3] else f for f in flows))
    after = planned(4, network, DEFAULT_POLICY, demand, before.workings)
    others = [(a, b) for a, b in zip(before.entries, after.entries, strict=True) if a is not b]
    assert [b.flow.name for _, b in others] == ["f/3"]
    assert {hop for hop in before.links if before.links[hop] is not after.links[hop]} <= {
        *flows[3].links,
        *replace(flows[3], path=flows[3].path[::-1]).links,
    }


def test_how_many_links_are_worked_out_does_not_depend_on_how_many_there_are(monkeypatch):
    from controller.plan import planning

    counts, real = [], planning.link_plan
    for size in (10, 40):
        network, flows = pairs(size)
        before = planned(2, network, DEFAULT_POLICY, PlanInput(flows))
        looked = []
        monkeypatch.setattr(planning, "link_plan", lambda *asked, at=looked: at.append(asked[1]) or real(*asked))
        planned(4, network, DEFAULT_POLICY, PlanInput(flows[1:]), before.workings)
        monkeypatch.undo()
        counts.append(len(looked))
    assert counts == [2, 2]


def test_workings_of_another_network_are_not_gone_on_from():
    plans = []
    for size in (2, 3):
        network, flows = pairs(size)
        before = plans[-1].workings if plans else None
        plans.append(planned(2, network, DEFAULT_POLICY, PlanInput(flows), before))
        assert plans[-1] == planned(2, network, DEFAULT_POLICY, PlanInput(flows))
    assert all(a.links != b.links for a, b in pairwise(plans))
