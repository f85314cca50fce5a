"""Scenarios drawn by chance: all that a file may say, on a ring and over lanes."""

from dataclasses import replace

from hypothesis import strategies as st

from controller.plan.keys import FlowId
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.purchases import Period
from controller.site import Site, flow_between
from controller.whatif.movers import Mover
from controller.whatif.response import ALGORITHMS
from controller.whatif.supposed import CircuitDeath, Opening, RandomDeaths, StoreBucket, Stranger, WhatIf, WorkItem
from controller.whatif.tests.supposing import T0, S
from mininet_tests.testing.networks import FILES, loaded
from topology.protocol import FlowClass

NETWORKS = {name: loaded(FILES[name]) for name in ("asc-ring", "two-lanes")}
LASTS_S = 60
MOVERS = (Mover(), Mover(4, 16_000_000, True), Mover(2, 4_000_000, False, 64_000_000), Mover(per_file_us=200_000))


@st.composite
def scenarios(draw):
    """Any workload, with standing flows, lanes, reservations, stores, maintenance, others, and any deaths."""
    network = NETWORKS[draw(st.sampled_from(sorted(NETWORKS)))]
    hosts = [host.name for host in network.hosts]
    circuits = [circuit.name for circuit in network.circuits]
    pairs = [(one, other) for one in hosts for other in hosts if _apart(network, one, other)]
    standing = tuple(
        flow_between(network, FlowId(f"standing{number}"), flow_class, draw(st.sampled_from(pairs)))
        for number, flow_class in enumerate(
            draw(st.lists(st.sampled_from([FlowClass.PREDICTABLE, FlowClass.BACKGROUND]), max_size=2))
        )
    )
    items = tuple(_item(draw, number, network, pairs) for number in range(draw(st.integers(1, 4))))
    of_circuit = st.sampled_from(circuits)
    deaths = tuple(
        CircuitDeath(draw(of_circuit), T0 + _within(draw, 40), draw(st.integers(1, 20 * S)))
        for _ in range(draw(st.integers(0, 3)))
    )
    failing = tuple(RandomDeaths(name, 30 * S, 5 * S) for name in draw(st.lists(of_circuit, max_size=2, unique=True)))
    targets = sorted({item.target for item in items})
    stores = {name: StoreBucket(2 * 10**8, 10**8) for name in targets if draw(st.booleans())}
    algorithms = draw(st.lists(st.sampled_from(list(ALGORITHMS)), max_size=2))
    strangers = tuple(
        Stranger(f"other{number}", *pairs[0], 10**8, algorithm, 8, 1e-4) for number, algorithm in enumerate(algorithms)
    )
    schedules = {name: _periods(draw) for name in circuits if draw(st.integers(0, 2)) == 0}
    site = Site(network, DEFAULT_POLICY, standing, 3_000, schedules=schedules)
    return WhatIf(site, T0, T0 + LASTS_S * S, items, deaths, failing, stores, strangers)


@st.composite
def turned(draw, scenario):
    """The same scenario with its parts in any other order: items, deaths, stores, maintenance and others."""

    def mixed(parts):
        return tuple(draw(st.permutations(list(parts))))

    site = replace(scenario.site, schedules=dict(mixed(scenario.site.schedules.items())))
    return replace(
        scenario,
        site=site,
        items=mixed(scenario.items),
        deaths=mixed(scenario.deaths),
        random_deaths=mixed(scenario.random_deaths),
        stores=dict(mixed(scenario.stores.items())),
        strangers=mixed(scenario.strangers),
    )


def _apart(network, one, other):
    return network.host(one).site != network.host(other).site


def _within(draw, seconds):
    """A time in so many seconds; whole seconds often, so that several things fall together."""
    return draw(st.one_of(st.integers(0, seconds).map(lambda whole: whole * S), st.integers(0, seconds * S)))


def _item(draw, number, network, pairs):
    sender, target = draw(st.sampled_from(pairs))
    flow_class = draw(st.sampled_from([FlowClass.URGENT, FlowClass.BACKGROUND]))
    first_us = T0 + _within(draw, 20)
    every_us = draw(st.sampled_from([0, 7 * S, 20 * S]))
    item = WorkItem(f"item{number}", flow_class, (sender,), target, 0, first_us, every_us=every_us)
    if draw(st.integers(0, 3)) == 0:
        rate_bps = draw(st.integers(1_000_000, 300_000_000))
        return replace(item, rate_bps=rate_bps, for_us=draw(st.integers(S, 30 * S)))
    others = tuple(one for one, to in pairs if to == target and one != sender and network.host(one).site)
    several = draw(st.booleans()) and others
    lanes = 2 if sender == "base20" and not several and draw(st.booleans()) else 1
    return replace(
        item,
        senders=(sender, others[0]) if several else (sender,),
        size_bytes=draw(st.integers(1, 2 * 10**9)),
        file_bytes=draw(st.sampled_from([0, 10**8])),
        mover=draw(st.sampled_from(MOVERS)),
        opening=draw(st.sampled_from(list(Opening))),
        deadline_us=draw(st.sampled_from([None, None, 20 * S])),
        lanes=lanes,
        session_us=draw(st.sampled_from([0, 500_000])),
    )


def _periods(draw):
    """One time of maintenance or two, in which a circuit has less or nothing."""
    cuts = sorted(draw(st.lists(st.integers(0, LASTS_S), min_size=2, max_size=4, unique=True)))
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    return tuple(
        Period(T0 + start * S, T0 + end * S, draw(st.sampled_from([0, 100_000_000, 400_000_000])))
        for start, end in spans
    )
