"""What the plan becomes when one of two circuits dies."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.announcements import Announcement
from controller.plan.failover import carried, late, redundant, without
from controller.plan.flows import flow_on, standing_by
from controller.plan.invariant import violations
from controller.plan.plan import THE_REST, Plan, PlanInput, Selector
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.reservations import Constraints
from controller.plan.resources import ClassShare, need
from controller.plan.tests.factories import PLANNED_CLASSES, RING
from controller.plan.tests.ring import hosts_bps, layers
from controller.plan.tests.test_transitions import steps
from controller.plan.transitions import Stage
from controller.plan.volume import ConstantRate
from mininet_tests.testing.networks import asc_ring, chile_illinois, chile_illinois_2, described
from topology.network import Hop
from topology.network_text import section_of
from topology.protocol import FlowClass
from topology.wire import Layer, converted_bps

TWO = chile_illinois_2(10**9)
SENDERS = ("base20", "base21", "base22", "base23")
NORTH = frozenset({"north"})
URGENT, PREDICTABLE, BACKGROUND = FlowClass.URGENT, FlowClass.PREDICTABLE, FlowClass.BACKGROUND


def path(host, line, *, back=False):
    """The path of a sender's data over a line, or of what the archive sends to it."""
    there = (host, "ls1", line, "ch1", "arch")
    return there[::-1] if back else there


def flow(flow_class, host, line, *, floor_bps=0, back=False):
    """A flow over a line."""
    ends = path(host, line, back=back)
    return replace(flow_on(TWO, f"{ends[0]}-{ends[-1]}", flow_class, ends), floor_bps=floor_bps)


def reserved(*flows):
    """What the calendar keeps for the promises of some flows."""
    found = {}
    for one in flows:
        claims = dict(need(TWO, (one.path,), one.flow_class).claims(one.floor_bps))
        for tail, head, _ in TWO.circuit_links:
            for c in FlowClass:
                bps = claims.get(ClassShare(Hop(tail, head), c), 0)
                found[Hop(tail, head), c] = found.get((Hop(tail, head), c), 0) + bps
    return found


@st.composite
def demands(draw, most_floor_bps=0):
    """Any flows over both circuits, one a pair of hosts, on either way round."""
    pairs = draw(st.lists(st.tuples(st.sampled_from(SENDERS), st.booleans()), max_size=8, unique=True))
    flows = tuple(
        flow(
            draw(st.sampled_from(PLANNED_CLASSES)),
            host,
            draw(st.sampled_from(["north", "south"])),
            floor_bps=draw(st.integers(0, most_floor_bps)),
            back=back,
        )
        for host, back in pairs
    )
    return PlanInput(flows, {}, reserved(*flows))


def dead(demand, down=NORTH) -> Plan:
    """The plan while a circuit is down."""
    return planned(4, TWO, DEFAULT_POLICY, without(TWO, DEFAULT_POLICY, demand, frozenset(down)))


@given(demands())
def test_the_plan_for_a_death_is_the_plan_of_a_network_that_never_had_the_circuit(demand):
    alone = chile_illinois_2(10**9)
    alone.graph.remove_node("north")
    flows = tuple(replace(f, path=alone.path(f.host, f.target)) for f in demand.flows)
    fresh, then = planned(4, alone, DEFAULT_POLICY, PlanInput(flows)), dead(demand)
    assert then.entries == fresh.entries
    assert {name: then.links[name] for name in fresh.links} == fresh.links


@given(demands(4 * 10**8), st.sampled_from(["north", "south"]))
def test_every_layer_holds_the_one_above_it_whichever_dies(demand, circuit):
    then = dead(demand, {circuit})
    assert violations(layers(then)) == ()
    assert then.down == {circuit}
    assert not any(circuit in e.flow.path for e in then.entries)


@given(demands())
def test_nobody_is_left_without_anything_and_nothing_is_left_over_while_somebody_wants_more(demand):
    then = dead(demand)
    assert {e.flow.name for e in then.entries} == {f.name for f in demand.flows}
    for name in (Hop("ls1", "south"), Hop("ch1", "south")):
        link = then.links[name]
        crossing = {e.flow.flow_class for e in then.entries if name in e.flow.links}
        if crossing & {URGENT, BACKGROUND}:  # whose cap is the whole circuit
            assert sum(limits.wire_bps for limits in link.classes.values()) == link.wire_bps


@given(st.integers(0, 4 * 10**8), st.integers(0, 4 * 10**8), st.sampled_from([URGENT, BACKGROUND]))
def test_a_promise_on_the_circuit_that_is_left_is_kept_before_one_that_comes_to_it(there_bps, comes_bps, moved_class):
    there = flow(BACKGROUND, "base23", "south", floor_bps=there_bps)
    comes = flow(moved_class, "base20", "north", floor_bps=comes_bps)
    then = dead(PlanInput((there, comes), {}, reserved(there, comes)))
    kept = next(e for e in then.entries if e.flow.host == "base23")
    assert kept.frame_bps >= converted_bps(there_bps, Layer.WIRE, Layer.FRAME, TWO.framing)


def test_of_what_comes_the_higher_class_keeps_its_promise_first():
    urgent = flow(URGENT, "base20", "north", floor_bps=300_000_000)
    lower = flow(BACKGROUND, "base23", "north", floor_bps=300_000_000)
    demand = PlanInput((lower, urgent), {}, reserved(lower, urgent))
    floors = {f.host: f.floor_bps for f in without(TWO, DEFAULT_POLICY, demand, NORTH).flows}
    assert floors["base20"] == 300_000_000
    assert 100_000_000 < floors["base23"] < 200_000_000


@pytest.fixture
def three():
    """That network with a third circuit, ``east``, which is further than both."""
    section = section_of(TWO)
    ends = {"a": {"switch": "ls1", "port": "ls1-east"}, "z": {"switch": "ch1", "port": "ch1-east"}}
    section["circuits"]["east"] = {"rate": "1 Gbit/s", "delay": "110 ms"} | ends
    return described(section)


@pytest.mark.parametrize(
    ("comes_bps", "line", "kept_bps"),
    [
        (0, "south", 0),
        (10_000_000, "south", 10_000_000),
        (300_000_000, "east", 300_000_000),
        (950_000_000, "east", 938_800_000),
    ],
    ids=["nothing promised", "the nearest has room", "only the further has room", "the further has more"],
)
def test_a_flow_that_moves_goes_by_the_nearest_circuit_that_has_room_for_its_promise(three, comes_bps, line, kept_bps):
    there = flow(BACKGROUND, "base23", "south", floor_bps=450_000_000)
    comes = flow(URGENT, "base20", "north", floor_bps=comes_bps)
    led = without(three, DEFAULT_POLICY, PlanInput((there, comes), {}, reserved(there, comes)), NORTH)
    (moved,) = (f for f in led.flows if f.host == "base20")
    assert moved.path == path("base20", line)
    assert moved.floor_bps == pytest.approx(kept_bps, rel=0.001)


def test_who_pauses_moves_neither_itself_nor_others_to_another_circuit(three):
    booked = flow(BACKGROUND, "base23", "south", floor_bps=100_000_000)
    both = [flow(URGENT, host, "north", floor_bps=300_000_000) for host in ("base20", "base21")]
    kept = reserved(booked, *both)

    def led(*pauses):
        flows = [standing_by(replace(one, standby_bps=10**6)) if one.host in pauses else one for one in both]
        promised_bps = {one.name: one.floor_bps for one in both if one.host in pauses}
        demand = PlanInput((booked, *flows), {}, kept)
        found = without(three, DEFAULT_POLICY, demand, NORTH, promised_bps=promised_bps).flows
        return {one.host: (one.path[2], one.floor_bps) for one in found if one.host != "base23"}

    assert led() == {"base20": ("south", 300_000_000), "base21": ("east", 300_000_000)}
    assert led("base20") == {"base20": ("south", 0), "base21": ("east", 300_000_000)}
    assert led("base21") == {"base20": ("south", 300_000_000), "base21": ("east", 0)}
    assert led("base20", "base21") == {"base20": ("south", 0), "base21": ("east", 0)}


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (Constraints(exclude=("east",)), "south"),
        (Constraints(max_rtt_us=200_000), "south"),
        (Constraints(exclude=("south",)), "east"),
        (Constraints(exclude=("south",), max_rtt_us=200_000), None),
        (Constraints(exclude=("ch1",)), None),
    ],
)
def test_a_flow_that_moves_goes_by_no_way_but_one_that_is_as_asked_though_another_has_more_room(three, asked, line):
    there = flow(BACKGROUND, "base23", "south", floor_bps=450_000_000)
    comes = flow(URGENT, "base20", "north", floor_bps=300_000_000)
    demand = PlanInput((there, comes), {}, reserved(there, comes))
    led = without(three, DEFAULT_POLICY, demand, NORTH, {comes.name: asked})
    assert [f.path for f in led.flows if f.host == "base20"] == ([path("base20", line)] if line else [])
    of_another = without(three, DEFAULT_POLICY, demand, NORTH, {there.name: asked})
    assert of_another == without(three, DEFAULT_POLICY, demand, NORTH)


@pytest.mark.parametrize("floor_bps", [0, 300_000_000])
def test_a_flow_that_moves_does_not_go_by_a_circuit_that_is_not_bought(three, floor_bps):
    comes = flow(URGENT, "base20", "north", floor_bps=floor_bps)
    not_bought = dict.fromkeys((Hop("ls1", "south"), Hop("ch1", "south")), 0)
    (moved,) = without(three, DEFAULT_POLICY, PlanInput((comes,), not_bought, reserved(comes)), NORTH).flows
    assert (moved.path, moved.floor_bps) == (path("base20", "east"), floor_bps)


def test_a_flow_that_moves_does_not_part_behind_the_first_switch_from_another_of_its_pair_and_class():
    """``h`` sends to ``k`` by north, by south, or over the switch ``m``, from which two circuits lead on."""
    rate_ends = {
        "north": ("1 Gbit/s", "1 ms", "s", "z"),
        "south": ("100 Mbit/s", "2 ms", "s", "z"),
        "to-m": ("1 Gbit/s", "2 ms", "s", "m"),
        "m-1": ("1 Gbit/s", "3 ms", "m", "z"),
        "m-2": ("1 Gbit/s", "4 ms", "m", "z"),
    }
    hosts = {"s": {"h": {"address": "10.0.0.1", "port": "s-h", "rate": "1 Gbit/s"}}, "m": {}}
    hosts["z"] = {"k": {"address": "10.0.0.2", "port": "z-k", "rate": "1 Gbit/s"}}
    sites = {f"at-{n}": {"switch": {"name": n, "dpid": f"{i:016x}"}, "hosts": hosts[n]} for i, n in enumerate("smz", 1)}
    circuits = {
        name: {"rate": rate, "delay": delay}
        | {end: {"switch": switch, "port": f"{switch}-{name}"} for end, switch in (("a", a), ("z", z))}
        for name, (rate, delay, a, z) in rate_ends.items()
    }
    network = described({"name": "mesh", "sites": sites, "circuits": circuits})

    def of(way, floor_bps, selector=THE_REST):
        one = flow_on(network, f"{way[2]}-{selector.dest_port}", URGENT, way)
        return replace(one, floor_bps=floor_bps, selector=selector)

    moves, stays = (
        of(("h", "s", "north", "z", "k"), 300_000_000),
        of(("h", "s", "m", "m-2", "z", "k"), 0, Selector(873)),
    )
    for others, way in ((), ("h", "s", "m", "m-1", "z", "k")), ((stays,), ("h", "s", "south", "z", "k")):
        led = without(network, DEFAULT_POLICY, PlanInput((*others, moves)), NORTH)
        assert next(f.path for f in led.flows if f.name == moves.name) == way


def test_a_window_is_that_of_the_other_path():
    one = flow(PREDICTABLE, "base22", "north")
    before, then = planned(2, TWO, DEFAULT_POLICY, PlanInput((one,))).entries[0], dead(PlanInput((one,))).entries[0]
    per_bit = [e.window_segments / e.payload_bps for e in (before, then)]
    assert per_bit[1] / per_bit[0] == pytest.approx(200 / 180, rel=0.01)


def test_with_both_dead_everybody_waits():
    assert dead(PlanInput((flow(URGENT, "base20", "north"),)), {"north", "south"}).entries == ()


@pytest.mark.parametrize(
    ("network", "circuits"),
    [(chile_illinois(), set()), (TWO, {"north", "south"}), (asc_ring(), {c.name for c in RING.circuits})],
    ids=["one circuit", "two circuits", "ring"],
)
def test_a_circuit_is_redundant_where_there_is_a_way_round_it(network, circuits):
    assert redundant(network) == circuits


BEFORE = planned(
    2, TWO, DEFAULT_POLICY, PlanInput((flow(URGENT, "base20", "north"), flow(BACKGROUND, "base23", "south")))
)
AFTER = dead(PlanInput((flow(URGENT, "base20", "north"), flow(BACKGROUND, "base23", "south"))))


@pytest.mark.parametrize(("old", "new"), [(BEFORE, AFTER), (AFTER, BEFORE)], ids=["it dies", "it returns"])
def test_a_flow_that_changes_its_circuit_does_not_pause_and_its_meter_has_room_for_it(old, new):
    moving = next(e for e in old.entries if e.flow.host == "base20")
    allowed_bps = min(e.frame_bps for plan in (old, new) for e in plan.of_host("base20"))
    way = next(name for name in moving.flow.links if name in old.links)
    *under_way, last = steps(old, new)
    for step in under_way:
        entries = step.plan.of_host("base20")
        assert [e.frame_bps for e in entries] in ([allowed_bps], [e.frame_bps for e in new.of_host("base20")])
        if step.stage is Stage.METERS and way in entries[0].flow.links:
            assert step.plan.links[way].classes[URGENT].meter_bps >= hosts_bps(step.plan.entries, way)[URGENT] > 0
    assert last.plan is new


def test_flows_that_change_places_pause():
    demands_then = [
        PlanInput((flow(URGENT, "base20", one), flow(URGENT, "base21", other)))
        for one, other in (("north", "south"), ("south", "north"))
    ]
    old, new = (planned(2, TWO, DEFAULT_POLICY, demand) for demand in demands_then)
    assert carried(old, new) == ()


def promise(rate_bps, *, until_us):
    """A promise to one sender over the north."""
    one = flow(URGENT, "base20", "north", floor_bps=rate_bps)
    rates = (ConstantRate(0, until_us, rate_bps),)
    return Announcement("image", 1, (one,), need(TWO, (one.path,), URGENT), rates, "", 0, until_us)


def test_a_promise_that_the_plan_still_keeps_is_not_late():
    kept = promise(300_000_000, until_us=10_000_000)
    then = dead(PlanInput(kept.flows, {}, reserved(*kept.flows)))
    assert list(late([kept], then, TWO.framing, 5_000_000)) == []


def test_a_promise_that_cannot_be_kept_is_late_by_what_the_plan_lacks():
    broken = promise(900_000_000, until_us=10_000_000)
    then = dead(PlanInput(broken.flows, {}, reserved(*broken.flows)))
    ((name, promised_us, expected_us),) = late([broken], then, TWO.framing, 5_000_000)
    wire_bps = converted_bps(then.entries[0].frame_bps, Layer.FRAME, Layer.WIRE, TWO.framing)
    assert (name, promised_us) == ("image", 10_000_000)
    assert expected_us == pytest.approx(5_000_000 + 5_000_000 * 900_000_000 / wire_bps, abs=10)


def test_a_promise_that_the_plan_has_nothing_for_has_no_end():
    broken = promise(900_000_000, until_us=10_000_000)
    then = dead(PlanInput(broken.flows), {"north", "south"})
    assert list(late([broken], then, TWO.framing, 0)) == [("image", 10_000_000, None)]
