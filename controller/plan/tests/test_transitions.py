"""Transitions: no moment above the circuit, whatever order the confirmations come in."""

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.invariant import Layers, violations
from controller.plan.plan import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import (
    DATABASE,
    GIGABIT,
    IMAGE,
    RAW_IMAGES,
    any_flows,
    any_path,
    plan_of,
)
from controller.plan.transitions import Place, installation, most, transition
from topology.protocol import FlowClass


class World:
    """What the layers do while a transition is carried out: each host on its own allocation, each meter its own."""

    def __init__(self, plan):
        self.hosts = {h: plan.of_host(h) for h in "abcdef"}
        self.meters = {c: limits.meter_bps for c, limits in plan.classes.items()}
        self.queues = {c: limits.queue_bps for c, limits in plan.classes.items()}
        self.circuit_bps = plan.circuit_bps

    def violations(self):
        """What is wrong now."""
        entries = most(*self.hosts.values())
        hosts = {c: sum(e.frame_bps for e in entries if e.flow.flow_class is c) for c in FlowClass}
        return violations(Layers(hosts, self.meters, self.queues, self.circuit_bps))

    def carry_out(self, step, order):
        """Apply a step, one host or one meter at a time in the given order; the world is checked after each."""
        if step.place is Place.HOSTS:
            for host in order.shuffled(self.hosts):
                self.hosts[host] = step.plan.of_host(host)
                assert self.violations() == (), (step, host)
        elif step.place is Place.METERS:
            # shrinking ones first, as the southbound sends them
            wanted = {c: limits.meter_bps for c, limits in step.plan.classes.items()}
            for c in sorted(order.shuffled(wanted), key=lambda c: wanted[c] > self.meters[c]):
                self.meters[c] = wanted[c]
                assert self.violations() == (), (step, c)
        else:
            self.queues = {c: limits.queue_bps for c, limits in step.plan.classes.items()}
            assert self.violations() == (), step


class Order:
    """An arbitrary order for each step, drawn by Hypothesis."""

    def __init__(self, draw):
        self.draw = draw

    def shuffled(self, items):
        """The items in some order."""
        return self.draw(st.permutations(sorted(items)))


@given(st.data(), any_path, any_flows, any_flows)
def test_no_layer_exceeds_the_next_at_any_moment_of_any_transition(data, path, before, after):
    old = planned(2, path, DEFAULT_POLICY, before)
    new = planned(4, path, DEFAULT_POLICY, after)
    world, order = World(old), Order(data.draw)
    for step in transition(old, new):
        world.carry_out(step, order)
    assert world.hosts == World(new).hosts
    assert (world.meters, world.queues) == (World(new).meters, World(new).queues)


@given(any_flows, any_flows)
def test_the_steps_in_the_wrong_order_are_caught(before, after):
    """The checker above can fail: growing first breaks the invariant whenever a share moves between two classes."""
    old, new = (planned(e, GIGABIT, DEFAULT_POLICY, f) for e, f in ((2, before), (4, after)))
    moved = any(new.classes[c].meter_bps > old.classes[c].meter_bps for c in FlowClass)
    world = World(old)
    world.meters = {c: limits.meter_bps for c, limits in new.classes.items()}
    assert bool(world.violations()) >= moved


def test_the_background_shrinks_before_the_image_starts():
    steps = transition(plan_of(DATABASE, RAW_IMAGES, epoch=2), plan_of(DATABASE, RAW_IMAGES, *IMAGE, epoch=4))
    shrinking, *_, growing = steps
    assert shrinking.plan.epoch == 3
    assert {e.flow.host for e in shrinking.plan.entries} == {"base22", "base23"}
    assert {e.flow.host for e in growing.plan.entries} == {"base20", "base21", "base22", "base23"}


def test_a_first_plan_is_installed_from_the_circuit_upwards():
    assert [s.place for s in installation(plan_of())] == [Place.QUEUES, Place.METERS, Place.HOSTS]


def test_a_host_that_has_not_confirmed_counts_with_the_larger_of_its_two_allocations():
    (large,) = plan_of(RAW_IMAGES).entries
    (small,) = plan_of(RAW_IMAGES, *IMAGE).of_host("base23")
    assert most((large,), (small,)) == most((small,), (large,)) == (large,)
