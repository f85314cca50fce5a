"""Several circuits for one transfer: all lanes end at one instant, and none is promised what it has not free."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.plan.admission import Refused, Request
from controller.plan.announcements import HANDOVER_US, Announcement, Wish
from controller.plan.calendar import Booking, Calendar, Need
from controller.plan.failover import without
from controller.plan.flows import standing_by
from controller.plan.lanes import FreeLane, arriving, free_together, lane_parts, split, together
from controller.plan.ledger import Created, Ledger
from controller.plan.lifecycle import LifecycleEvent
from controller.plan.overbooked import overbooked
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.reservations import Constraints
from controller.plan.resources import need, of_circuit
from controller.plan.volume import Volume, earliest_finish, lowest_constant_rate
from mininet_tests.testing.networks import FILES, loaded, two_lanes_of
from topology.protocol import FlowClass
from topology.wire import PPM, Framing, Layer, converted_bps

NETWORK = loaded(FILES["two-lanes"])
NOW = 1_000_000
US = 1_000_000
SIZE_BYTES = 2_688_000_000
NORTH_US, SOUTH_US = 180_000, 200_000
AT_US = 6 * US  # when a circuit dies, all lanes having begun


def bits(rates):
    return sum((part.end_us - part.start_us) * part.rate_bps for part in rates) / US


def soonest(free, size_bits):
    return earliest_finish(arriving(free), Volume(size_bits, 1, 2**62))


def wish(lanes=2, size_bytes=SIZE_BYTES, deadline_us=None, name="image"):
    return Wish(name, FlowClass.URGENT, size_bytes, deadline_us, NETWORK.framing, lanes=lanes)


def promise(ledger=None, **asked):
    ledger = ledger or Ledger(NETWORK, DEFAULT_POLICY)
    return ledger.announce(wish(**asked), ("base20",), "arch", NOW)


def promised_over(ledger, at_us=AT_US):
    """What the plan is made of while an image goes over both circuits, and what each lane is to carry."""
    known = promise(ledger)
    sizes = zip(known.flows, known.sizes_bytes, strict=True)
    return ledger.demand((), at_us, lambda _: None), {flow.host: size_bytes for flow, size_bytes in sizes}


def line_of(path):
    return next(name for name in path if name in {"north", "south"})


def plan_after(demand, down):
    """What each interface has by which circuit once some are down, bit/s of frames."""
    plan = planned(2, NETWORK, DEFAULT_POLICY, without(NETWORK, DEFAULT_POLICY, demand, down))
    return {(e.flow.host, line_of(e.flow.path)): e.frame_bps for e in plan.entries}


def test_unequal_lanes_end_at_one_instant_as_the_formula_says():
    rates = [converted_bps(bps, Layer.WIRE, Layer.PAYLOAD, Framing()) for bps in (10**9, 5 * 10**8)]
    free = [FreeLane(((0, 100 * US, rates[0]),), NORTH_US), FreeLane(((0, 100 * US, rates[1]),), SOUTH_US)]
    found = soonest(free, 8 * SIZE_BYTES)
    by_formula = (8 * SIZE_BYTES + (rates[0] * NORTH_US + rates[1] * SOUTH_US) / US) / sum(rates)
    assert found[-1].end_us / US == pytest.approx(by_formula, abs=2e-6)
    assert found[-1].end_us / US == pytest.approx(15.41, abs=0.005)
    north, south = split(free, found)
    assert north[-1].end_us + NORTH_US == south[-1].end_us + SOUTH_US == found[-1].end_us
    assert bits(north) / 8e9 == pytest.approx(1.793, abs=0.001)
    assert bits(south) / 8e9 == pytest.approx(0.895, abs=0.001)


pieces = st.lists(st.tuples(st.integers(1, 5_000), st.integers(0, 10_000)), min_size=1, max_size=6)


@st.composite
def free_lanes(draw):
    found = []
    for _ in range(draw(st.integers(1, 4))):
        at_us, known = draw(st.integers(0, 2_000)), []
        for lasts_us, rate_bps in draw(pieces):
            known += [(at_us, at_us + lasts_us, rate_bps)] if rate_bps else []
            at_us += lasts_us
        found.append(FreeLane(tuple(known), draw(st.integers(0, 3_000))))
    return found


@given(free_lanes(), st.integers(1, 60), st.booleans())
def test_no_lane_gets_more_than_it_has_free_and_nothing_is_lost_on_the_way(free, size_bits, is_constant):
    volume = Volume(size_bits, 1, 2**62)
    constant = lowest_constant_rate(arriving(free), volume) if is_constant else None
    rates = (constant,) if constant else earliest_finish(arriving(free), volume)
    if rates is None:
        assert sum(bits_of_pieces(lane) for lane in free) < size_bits * US
        return
    found = split(free, rates)
    for lane, of_lane in zip(free, found, strict=True):
        for part in of_lane:
            for at_us in {part.start_us, part.end_us - 1}:
                assert part.rate_bps <= next(bps for begin, end, bps in lane.pieces if begin <= at_us < end)
            assert part.end_us + lane.tail_us <= rates[-1].end_us
    assert sum(map(bits, found)) == pytest.approx(bits(rates), abs=1e-9)
    assert sum(map(bits, found)) >= size_bits - 1e-9


def bits_of_pieces(lane):
    return sum((end - begin) * bps for begin, end, bps in lane.pieces)


@given(free_lanes(), st.integers(1, 60))
def test_no_other_split_is_sooner(free, size_bits):
    found = soonest(free, size_bits)
    if found is None:
        return
    sooner_us = found[-1].end_us - 1
    most = sum(
        max(0, min(end, sooner_us - lane.tail_us) - begin) * bps for lane in free for begin, end, bps in lane.pieces
    )
    assert most < size_bits * US


@given(free_lanes(), st.integers(1, 60), st.integers(1, 10**9))
def test_the_sizes_of_lanes_are_all_of_it(free, size_bits, size_bytes):
    found = soonest(free, size_bits)
    if found is not None:
        apart = split(free, found)
        known = lane_parts([Need(())] * len(free), apart, size_bytes)
        assert sum(lane.size_bytes for lane in known) == size_bytes
        assert bits(together(known)) == pytest.approx(sum(map(bits, apart)), abs=1e-9)


def test_lanes_that_share_a_resource_have_it_once():
    calendar = Calendar({"own 1": 1_000_000, "own 2": 1_000_000, "shared": 1_500_000})
    needs = [Need((("own 1", PPM), ("shared", PPM))), Need((("own 2", PPM), ("shared", PPM)))]
    free = free_together(calendar, [(needs[0], 0, 0), (needs[1], 0, 0)], 0, US)
    assert [lane.pieces for lane in free] == [((0, US, 1_000_000),), ((0, US, 500_000),)]
    assert len(calendar) == 0


def test_one_promise_is_over_both_circuits_and_sooner_than_over_one():
    one, both = promise(lanes=1), promise()
    assert isinstance(both, Announcement)
    assert [flow.host for flow in both.flows] == ["base20", "base20.eth1"]
    ways = [{NETWORK.link(*hop).circuit for hop in flow.links} - {None} for flow in both.flows]
    assert ways == [{"north"}, {"south"}]
    assert both.promised_us < NOW + (one.promised_us - NOW) * 0.68
    assert sum(lane.size_bytes for lane in both.lanes) == SIZE_BYTES
    ends = [lane.rates[-1].end_us for lane in both.lanes]
    tails = [2 * NETWORK.path_rtt_us(flow.path) for flow in both.flows]
    assert [end + tail for end, tail in zip(ends, tails, strict=True)] == [both.promised_us] * 2


@pytest.mark.parametrize("families", [(6,), (4, 6)], ids=["ipv6", "both"])
def test_lanes_of_ipv6_end_at_one_instant_by_the_formula_over_what_its_packets_carry(families):
    network = two_lanes_of(*families)
    framing = network.framing_between(["base20"], "arch")
    assert framing.mss_bytes == NETWORK.framing.mss_bytes - 20
    asked = Wish("image", FlowClass.URGENT, SIZE_BYTES, None, framing, lanes=2)
    known = Ledger(network, DEFAULT_POLICY).announce(asked, ("base20",), "arch", NOW)
    tails_us = [2 * network.path_rtt_us(flow.path) for flow in known.flows]
    begins_us = [lane.rates[0].start_us + HANDOVER_US for lane in known.lanes]  # planned before it counts
    rates_bps = [converted_bps(lane.rates[0].rate_bps, Layer.WIRE, Layer.PAYLOAD, framing) for lane in known.lanes]
    waits = sum(bps * (at - NOW + tail) for bps, at, tail in zip(rates_bps, begins_us, tails_us, strict=True))
    by_formula_us = NOW + (8 * SIZE_BYTES * US + waits) / sum(rates_bps)
    assert known.promised_us == pytest.approx(by_formula_us, abs=20)
    assert known.promised_us > promise().promised_us


def test_lanes_of_ipv6_share_the_circuit_that_is_left_by_their_parts_of_the_whole():
    ledger = Ledger(network := two_lanes_of(6), DEFAULT_POLICY)
    known = ledger.announce(replace(wish(), framing=network.framing), ("base20",), "arch", NOW)
    led = without(network, DEFAULT_POLICY, ledger.demand((), AT_US, lambda _: None), frozenset({"north"}))
    entries = planned(2, network, DEFAULT_POLICY, led).entries
    assert [line_of(e.flow.path) for e in entries] == ["south"] * 2
    first, second = (lane.size_bytes for lane in known.lanes)
    assert entries[0].frame_bps / entries[1].frame_bps == pytest.approx(first / second, rel=1e-3)


def test_a_deadline_is_met_at_the_lowest_rate_in_proportion_to_what_is_free():
    known = promise(deadline_us=40 * US)
    assert known.promised_us <= NOW + 40 * US
    north, south = known.floors_bps(NOW + 20 * US)
    assert north == pytest.approx(2 * south, rel=1e-3)
    refused = promise(deadline_us=2 * US)
    assert refused.offers


def test_the_calendar_holds_all_lanes_together_or_none():
    ledger = Ledger(NETWORK, DEFAULT_POLICY)
    empty = Ledger(NETWORK, DEFAULT_POLICY).calendar
    known = promise(ledger)
    for flow, lane in zip(known.flows, known.lanes, strict=True):
        (hop,) = (hop for hop in flow.links if NETWORK.link(*hop).circuit)
        assert ledger.calendar.peak_bps(hop, NOW, known.promised_us) >= lane.rates[0].rate_bps
    ledger.forget("image", NOW + 1)
    assert ledger.calendar == empty


def test_lanes_have_floors_sizes_and_pairs_of_their_own_in_the_plan():
    ledger = Ledger(NETWORK, DEFAULT_POLICY)
    known = promise(ledger)
    at_us = known.lanes[1].rates[0].start_us + 1
    demand = ledger.demand((), at_us, lambda _: None)
    assert len(demand.flows) == len(known.lanes)
    assert [flow.floor_bps for flow in demand.flows] == [lane.rates[0].rate_bps for lane in known.lanes]
    assert [flow.size_bytes for flow in demand.flows] == [lane.size_bytes for lane in known.lanes]
    assert sum(flow.floor_bps for flow in demand.flows) == known.floor_bps(at_us)


def test_a_lane_whose_circuit_is_down_is_not_promised():
    ledger = Ledger(NETWORK, DEFAULT_POLICY)
    ledger.down = frozenset({"south"})
    known = promise(ledger)
    assert (known.lanes, [flow.host for flow in known.flows]) == ((), ["base20"])


def test_lanes_are_booked_by_the_circuit_that_is_left_only_where_all_of_them_have_room_at_once():
    ledger, at_us = Ledger(NETWORK, DEFAULT_POLICY), 10 * US
    by_south = Constraints(include=("south",))
    ledger.hold(
        Request("base21", "arch", FlowClass.URGENT, 200_000_000, NOW, NOW + 3_600 * US, by_south), Created("third", NOW)
    )
    ledger.happened("third", LifecycleEvent.COMMIT, NOW)
    ledger.tick(NOW)
    lanes = promise(ledger, size_bytes=10**10, deadline_us=262 * US, name="lanes")
    assert [bps // 10**6 for bps in lanes.floors_bps(at_us)] == [252, 72], "each has room beside 200 of 469"
    ledger.down = frozenset({"north"})
    beside = ledger.announce(wish(1, 10**8, 300 * US, "beside"), ("base20",), "arch", at_us)
    assert isinstance(beside, Refused)
    assert (ledger.announcements, [*overbooked(ledger, at_us)]) == ({"lanes": lanes}, [])


@pytest.mark.parametrize(("dies", "stays"), [("north", "south"), ("south", "north")])
def test_the_rest_of_a_lane_that_dies_moves_with_the_share_of_its_whole(dies, stays):
    demand, carries = promised_over(Ledger(NETWORK, DEFAULT_POLICY))
    before, then = plan_after(demand, frozenset()), plan_after(demand, frozenset({dies}))
    (own_bps,) = (bps for (_, way), bps in before.items() if way == stays)
    assert {way for _, way in then} == {stays}
    got = {host: bps for (host, _), bps in then.items()}
    assert sum(got.values()) == pytest.approx(own_bps, abs=2000)
    assert got["base20"] / got["base20.eth1"] == pytest.approx(carries["base20"] / carries["base20.eth1"], rel=1e-3)


def test_lanes_whose_promises_do_not_end_at_one_instant_keep_their_parts_until_both_have():
    first_us, last_us = sorted(lane.rates[-1].end_us for lane in promise().lanes)
    assert first_us < last_us
    demand, carries = promised_over(Ledger(NETWORK, DEFAULT_POLICY), first_us + 1)
    then = plan_after(demand, frozenset({"north"}))
    whole = carries["base20"] / carries["base20.eth1"]
    assert then["base20", "south"] / then["base20.eth1", "south"] == pytest.approx(whole, rel=1e-3)


def test_a_lane_that_stands_by_gets_no_part_of_what_the_others_of_its_circuit_are_promised():
    demand, _ = promised_over(Ledger(NETWORK, DEFAULT_POLICY))
    flows = tuple(standing_by(f) if f.host == "base20.eth1" else f for f in demand.flows)
    then = plan_after(replace(demand, flows=flows), frozenset({"north"}))
    assert then["base20.eth1", "south"] < 0.03 * then["base20", "south"]


@given(st.integers(10**8, 4 * 10**9))
def test_a_lane_that_moves_takes_nothing_of_what_others_are_promised(size_bytes):
    ledger = Ledger(NETWORK, DEFAULT_POLICY)
    other = ledger.announce(wish(1, size_bytes, 60 * US, "other"), ("base21",), "arch", NOW)
    demand, _ = promised_over(ledger)
    led = without(NETWORK, DEFAULT_POLICY, demand, frozenset({"south"}))
    before, after = ({f.host: f.floor_bps for f in flows} for flows in (demand.flows, led.flows))
    assert after["base21"] == before["base21"] == other.floor_bps(AT_US) > 0
    assert after["base20"] + after["base20.eth1"] == pytest.approx(before["base20"], abs=2)
    for share, bps in led.reserved_bps.items():
        assert bps <= of_circuit(share.hop, NETWORK.link(*share.hop).rate_bps, DEFAULT_POLICY)[share]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(10**6, 10**10), st.booleans()), min_size=1, max_size=6))
def test_whatever_is_announced_is_never_above_a_capacity(asked):
    ledger, latest_us = Ledger(NETWORK, DEFAULT_POLICY), NOW
    for number, (count, size_bytes, is_first) in enumerate(asked):
        sender = "base20" if is_first else "base20.eth1"
        made = ledger.announce(wish(count, size_bytes, None, f"a{number}"), (sender,), "arch", NOW)
        latest_us = max(latest_us, made.promised_us) if isinstance(made, Announcement) else latest_us
    for tail, head, link in NETWORK.links():
        hop = next(h for h in need(NETWORK, ((tail, head),), FlowClass.URGENT).shares_ppm)[0]
        if ledger.calendar.has_resource(hop) and latest_us > NOW:
            least = Booking(Need(((hop, PPM),)), 0, NOW, latest_us)
            assert ledger.calendar.shortage(least) is None, link
