"""A plan that is worked out where it differs from another one is the plan that is worked out whole."""

from dataclasses import replace
from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.plan import Plan, PlanInput
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


@given(st.data())
def test_who_comes_to_send_changes_nothing_but_on_the_way_of_its_data(data):
    network = data.draw(any_network)
    demand = data.draw(demands(network))
    before = planned(2, network, DEFAULT_POLICY, demand)
    can = [f for f in demand.flows if f.standby_bps]
    begins = data.draw(st.lists(st.sampled_from(can), unique_by=lambda f: f.name)) if can else []
    more = {f.name: replace(f, wanted_bps=data.draw(st.none() | st.just(f.standby_bps))) for f in begins}
    flows = tuple(more.get(f.name, f) for f in demand.flows)
    after = planned(4, network, DEFAULT_POLICY, replace(demand, flows=flows), before.workings)
    crossed = {hop for f in more.values() for hop in f.links}
    assert all(after.links[hop] is before.links[hop] for hop in before.links.keys() - crossed)
    elsewhere = [e for e in before.entries if crossed.isdisjoint(e.flow.links)]
    assert all(after.has(e) for e in elsewhere)


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


@given(st.data())
def test_where_plans_differ_is_where_their_entries_are_not_the_very_same(data):
    network, flows = pairs(6)
    known = planned(2, network, DEFAULT_POLICY, PlanInput(flows)).entries
    others = tuple(replace(entry, frame_bps=entry.frame_bps // 2) for entry in known)
    chosen = st.lists(st.sampled_from((*known, *others)), max_size=8, unique_by=id).map(
        lambda entries: Plan(2, {}, tuple(sorted(entries, key=lambda entry: entry.flow.name)))
    )
    plans = data.draw(st.lists(chosen, min_size=2, max_size=3))
    for one, other in (*permutations(plans, 2), *permutations(plans, 2)):  # found, and remembered
        names = [entry.flow.name for entry in other.entries]
        last = {entry.flow.name: entry for entry in other.entries}
        single = last if len(last) == len(names) else {}
        assert one.apart(other) == [e for e in one.entries if single.get(e.flow.name) is not e]
        assert one.not_among(other) == [e for e in one.entries if last.get(e.flow.name) is not e]
        assert other.in_order(list(last.values())[::-1]) == tuple(last.values())
    assert plans[0].apart(plans[0]) == []


def test_what_was_found_of_a_plan_that_is_gone_says_nothing_of_the_next():
    network, flows = pairs(6)
    plan = planned(2, network, DEFAULT_POLICY, PlanInput(flows))
    for _ in range(50):  # some of them are where the one before was in memory
        assert plan.apart(Plan(2, {}, ())) == [*plan.entries]
        assert plan.apart(Plan(2, {}, plan.entries[1:])) == [plan.entries[0]]
