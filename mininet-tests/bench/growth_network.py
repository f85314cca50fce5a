"""What a start costs by what is on the books, and a national network by its size: whole plan, fault, memory."""

import multiprocessing
import random
import resource
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from controller.plan.clock import Instant
from controller.plan.failover import without
from controller.plan.flows import flow_on
from controller.plan.keys import FlowId
from controller.plan.plan import Plan, PlanInput
from controller.plan.planning import planned
from controller.plan.policy import DEFAULT_POLICY
from controller.saves import Saves
from controller.site import Site
from controller.state.guard import GuardedState
from mininet_tests.site.books import filled
from topology.network import Host, Link, Network, Switch
from topology.protocol import FlowClass
from topology.wire import Framing

S = 1_000_000
NOW = Instant(1_800_000_000 * S, 1_000 * S)
LEASE_MS = 10_000
SITES, CIRCUITS, SEED = 100, 300, 20
CIRCUIT_BPS, ACCESS_BPS = 100 * 10**9, 10 * 10**9


class National(NamedTuple):
    """A national network, and what is sent on it."""

    network: Network
    demand: PlanInput


def national(hosts: int) -> National:
    """Return a ring of sites with chords drawn by a seed, as many hosts as are asked for, each sending to another."""
    chance = random.Random(SEED)
    sites = [f"s{n}" for n in range(SITES)]
    names = [f"h{n}" for n in range(hosts)]
    switches = [Switch(name, f"site {name}", n + 1) for n, name in enumerate(sites)]
    nodes = [Host(name, f"site s{n % SITES}", IPv4Address(0x0A000002 + n), "") for n, name in enumerate(names)]
    network = Network("national", Framing(), (*nodes, *switches))
    pairs = {(n, (n + 1) % SITES) for n in range(SITES)}
    while len(pairs) < CIRCUITS:
        a_end, z_end = sorted(chance.sample(range(SITES), 2))
        if (z_end, a_end) not in pairs:
            pairs.add((a_end, z_end))
    for number, (a_end, z_end) in enumerate(sorted(pairs)):
        _join(network, sites[a_end], sites[z_end], CIRCUIT_BPS, f"c{number}")
    for number, name in enumerate(names):
        _join(network, name, sites[number % SITES], ACCESS_BPS)
    flows = []
    for number, name in enumerate(names):
        target = (number + 1 + chance.randrange(SITES - 1)) % SITES  # a host of another site
        path = network.path(name, names[target])
        flows.append(flow_on(network, FlowId(f"to/{name}"), FlowClass.URGENT, path))
    return National(network, PlanInput(tuple(flows)))


def _join(network: Network, a_end: str, z_end: str, rate_bps: int, circuit: str | None = None) -> None:
    delay_us = 2_000 if circuit else 1
    ports = (len(network.graph[a_end]) + 1, f"{a_end}-{z_end}"), (len(network.graph[z_end]) + 1, f"{z_end}-{a_end}")
    az, za = (Link(rate_bps, delay_us, 10**8, *port, circuit) for port in ports)
    network.add_trunk(a_end, z_end, az, za)


def fault(hosts: int) -> Callable[[], object]:
    """Return the making of the plan for the death of one circuit of a national network, after the whole plan."""
    known = national(hosts)
    plan = planned(2, known.network, DEFAULT_POLICY, known.demand)
    dead = iter([circuit.name for circuit in known.network.circuits[:: CIRCUITS // 10]])
    return lambda: after_death(known, plan, next(dead))


def after_death(known: National, plan: Plan, circuit: str) -> Plan:
    """Return the plan after a circuit has died, worked out from the one before."""
    demand = without(known.network, DEFAULT_POLICY, known.demand, frozenset({circuit}))
    return planned(plan.epoch + 2, known.network, DEFAULT_POLICY, demand, plan.workings)


def resident_mib(hosts: int) -> float:
    """Return what a process takes that holds a national network, its state, and the plan after a fault; MiB.

    In a process of its own: nothing else is in the figure.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_resident_mib, (hosts,))


def _resident_mib(hosts: int) -> float:
    known = national(hosts)
    site = Site(known.network, DEFAULT_POLICY, known.demand.flows, LEASE_MS)
    state = GuardedState(site, lambda: NOW, 1)
    with state.changed:
        after_death(known, state.desired.plan, known.network.circuits[0].name)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def start(network: Network, reservations: int, calls: int) -> Callable[[], object]:
    """Return the start of a controller with so many reservations on the books, each of an hour of a month."""
    folder = TemporaryDirectory()
    url = f"sqlite:///{Path(folder.name)}/headway.db"
    database = filled(network, reservations, url, NOW.calendar_us)
    fresh = iter([GuardedState(Site(network, DEFAULT_POLICY, (), LEASE_MS), lambda: NOW, 1) for _ in range(calls)])

    def call() -> object:
        state = next(fresh)
        Saves(state, database).read_anew()
        with state.changed:
            state.replan()
            if len(state.wished.ledger.reservations) != reservations:
                raise AssertionError(f"{len(state.wished.ledger.reservations)} of {reservations} were read")
        return folder  # it is there as long as its database is asked

    return call
