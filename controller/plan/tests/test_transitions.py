"""Transitions: no moment above the circuit, whatever order the confirmations come in."""

from hypothesis import given
from hypothesis import strategies as st

from controller.plan.invariant import Layers, violations
from controller.plan.plan import Demand, planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.tests.factories import DATABASE, GIGABIT, IMAGE, RAW_IMAGES, any_network, flows_in, plan_of
from controller.plan.transitions import Place, installation, most, transition
from topology.protocol import FlowClass


class World:
    """What the layers do while a transition is carried out: each host on its own allocation, each meter its own."""

    def __init__(self, plan, hosts):
        self.hosts = {h: plan.of_host(h) for h in hosts}
        self.meters = {(n, c): x.meter_bps for n, link in plan.links.items() for c, x in link.classes.items()}
        self.queues = {(n, c): x.queue_bps for n, link in plan.links.items() for c, x in link.classes.items()}
        self.circuits = {n: link.circuit_bps for n, link in plan.links.items()}

    def violations(self):
        """What is wrong now."""
        entries = most(*self.hosts.values())
        return violations({n: self.on(n, entries) for n in self.circuits})

    def on(self, name, entries):
        """The layers of one link."""
        crossing = [e for e in entries if name in e.flow.links]
        return Layers(
            {c: sum(e.frame_bps for e in crossing if e.flow.flow_class is c) for c in FlowClass},
            {c: self.meters[name, c] for c in FlowClass},
            {c: self.queues[name, c] for c in FlowClass},
            self.circuits[name],
        )

    def carry_out(self, step, order):
        """Apply a step, one host or one meter at a time in the given order; the world is checked after each."""
        wanted = World(step.plan, self.hosts)
        if step.place is Place.HOSTS:
            for host in order.shuffled(self.hosts):
                self.hosts[host] = wanted.hosts[host]
                assert self.violations() == (), (step, host)
        elif step.place is Place.METERS:
            # shrinking ones first, as the southbound sends them
            for m in sorted(order.shuffled(self.meters), key=lambda m: wanted.meters[m] > self.meters[m]):
                self.meters[m] = wanted.meters[m]
                assert self.violations() == (), (step, m)
        else:
            self.queues = wanted.queues
            assert self.violations() == (), step


class Order:
    """An arbitrary order for each step, drawn by Hypothesis."""

    def __init__(self, draw):
        self.random = draw(st.randoms(use_true_random=False))

    def shuffled(self, items):
        """The items in some order."""
        return self.random.sample(sorted(items), len(items))


def names(network):
    """Its hosts."""
    return [h.name for h in network.hosts]


@given(st.data(), any_network)
def test_no_layer_exceeds_the_next_at_any_moment_of_any_transition(data, network):
    before, after = (Demand(data.draw(flows_in(network))) for _ in range(2))
    old = planned(2, network, DEFAULT_POLICY, before)
    new = planned(4, network, DEFAULT_POLICY, after)
    world, order = World(old, names(network)), Order(data.draw)
    for step in transition(old, new):
        world.carry_out(step, order)
    assert vars(world) == vars(World(new, names(network)))


@given(flows_in(GIGABIT), flows_in(GIGABIT))
def test_the_steps_in_the_wrong_order_are_caught(before, after):
    """The checker above can fail: growing first breaks the invariant whenever a share moves between two classes."""
    old, new = (planned(e, GIGABIT, DEFAULT_POLICY, Demand(f)) for e, f in ((2, before), (4, after)))
    world, then = World(old, names(GIGABIT)), World(new, names(GIGABIT))
    moved = any(then.meters[m] > world.meters[m] for m in world.meters)
    world.meters = then.meters
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
