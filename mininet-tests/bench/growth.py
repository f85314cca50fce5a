"""What the controller's work costs as a site grows: CPU ms by size, in process, and the exponent that fits.

An exponent of 1 is work in proportion to the size, 2 to its square. Each time is the least CPU time of some calls: a
busy machine makes it little larger. Threads and the collector are set as the controller's process sets them.
"""

import argparse
import gc
import logging
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog

from apps.process import fair
from controller.plan.admission import Request
from controller.plan.clock import Instant
from controller.plan.faults import PlaceFault, planned_beside
from controller.plan.flows import flow_on
from controller.plan.kept_ledger import KeptLedger
from controller.plan.keys import FlowId
from controller.plan.ledger import Created
from controller.plan.lifecycle import LifecycleEvent
from controller.plan.plan import Flow, PlanInput
from controller.plan.planning import no_workings, planned
from controller.plan.policy import DEFAULT_POLICY
from controller.plan.ports import port_bursts
from controller.reports import Reports
from controller.site import Site
from controller.southbound.openflow.desired import switch_state
from controller.state.carried import SettledWatch, unsettled
from controller.state.guard import GuardedState
from controller.state.moment import Moment
from mininet_tests.bench import growth_network
from mininet_tests.bench.growth_before import measured_before
from mininet_tests.bench.growth_change import announcements
from mininet_tests.bench.growth_figure import drawn
from mininet_tests.testing.aims import Aim, at_most, stated
from mininet_tests.testing.networks import star
from mininet_tests.testing.reports import write_report
from topology.distances import longest_rtt_us
from topology.network import Network
from topology.protocol import FlowClass, Hello

S = 1_000_000
NOW = Instant(1_800_000_000 * S, 1_000 * S)
CALLS = 3
LEASE_MS = 10_000
NATIONAL_HOSTS, MOST_NATIONAL_MIB = 10_000, 1_024
MANY_CIRCUITS = "one announcement, all steps, two hosts a circuit"
EXPONENT, MOST_EXPONENT = f"{MANY_CIRCUITS}: exponent", 0.2
Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class GrowthRow:
    """A line of the table.

    Attributes:
        what: is done.
        counted: what a size is the number of.
        sizes: at which it is measured.
        work: gives what is to be timed at a size, with all that it needs made before.
        aims_ms: by size, the CPU time that it may take.
    """

    what: str
    counted: str
    sizes: tuple[int, ...]
    work: Callable[[int], Work]
    aims_ms: dict[int, float]


def sending(network: Network) -> tuple[Flow, ...]:
    """Return a flow of each host to the archive."""
    return tuple(
        flow_on(network, FlowId(f"to/{h.name}"), FlowClass.URGENT, network.path(h.name, "archive"))
        for h in network.hosts[1:]
    )


def background(network: Network) -> tuple[Flow, ...]:
    """Return what hosts send anyway, each to the archive."""
    return tuple(replace(f, flow_class=FlowClass.BACKGROUND, name=FlowId(f"raw/{f.host}")) for f in sending(network))


def begun(network: Network, standing: tuple[Flow, ...] = ()) -> GuardedState:
    """Return the state of a controller that has just begun."""
    return GuardedState(Site(network, DEFAULT_POLICY, standing, LEASE_MS), lambda: NOW, term=1)


def longest_rtt(hosts: int) -> Work:
    """Return what a start asks of its network: the longest round trip; of a network that nobody has asked yet."""
    fresh = iter([star(hosts, 10) for _ in range(CALLS)])
    return lambda: longest_rtt_us(next(fresh))


def whole_plan(flows: int) -> Work:
    """Return the making of a whole plan, with as many circuits as flows."""
    network = star(flows, flows)
    demand = PlanInput(sending(network))
    return lambda: planned(2, network, DEFAULT_POLICY, demand)


def many_flows(flows: int) -> Work:
    """Return the making of a whole plan, a hundred circuits for all flows."""
    network = star(flows, 100)
    demand = PlanInput(sending(network))
    return lambda: planned(2, network, DEFAULT_POLICY, demand)


def beside_a_fault(hosts: int) -> Work:
    """Return the making of a plan after a host has come, while the switch in the middle is gone, which all sent by."""
    network = star(hosts, 10)
    flows = sending(network)
    plan = planned(2, network, DEFAULT_POLICY, PlanInput(flows[1:]))
    fault = PlaceFault("switch m", "gone", frozenset({"m"}), is_gone=True, held=plan.entries)
    start, demand = no_workings(network, DEFAULT_POLICY), PlanInput(flows)
    return lambda: planned_beside(4, plan.workings or start, demand, {fault.place: fault}, (plan, plan))


def start(reservations: int) -> Work:
    """Return the start of a controller of 1,000 hosts with so many reservations on the books."""
    return growth_network.start(star(1_000, 10), reservations, CALLS)


def looks(hosts: int) -> Work:
    """Return a look at what a start of all hosts needs at each port."""
    network = star(hosts, 10)
    plan, paced = planned(2, network, DEFAULT_POLICY, PlanInput(sending(network))), {h.name for h in network.hosts}
    return lambda: port_bursts(plan, network, paced)


def rules(hosts: int) -> Work:
    """Return the making of all rules and meters of the switch in the middle, for a plan with a flow more or less."""
    network = star(hosts, 10)
    flows = sending(network)
    plans = iter([planned(2, network, DEFAULT_POLICY, PlanInput(flows[call:])) for call in range(CALLS)])
    return lambda: switch_state(network, network.switches[0], next(plans), DEFAULT_POLICY)


def hellos(hosts: int) -> Work:
    """Return what the controller does when all hosts call at once, each with a flow to send, until that is planned."""
    network = star(hosts, 10)
    fresh = iter([begun(network, sending(network)) for _ in range(CALLS)])

    def call() -> None:
        state = next(fresh)
        reports = Reports(state)
        for host in network.hosts:
            reports.host_up(Hello(host.name, "0", "6.12", epoch=0))
        with state.changed:  # as the clock's thread, which they have woken
            state.replan()

    return call


def first_decision(hosts: int) -> Work:
    """Return the decision about a reservation between two hosts that nobody has asked about yet."""
    network = star(hosts, 10)
    ledger, late = KeptLedger(network, DEFAULT_POLICY), iter(network.hosts[1:])

    def decide() -> object:
        asked = Request(next(late).name, "archive", FlowClass.URGENT, S, NOW.calendar_us, NOW.calendar_us + 3_600 * S)
        return ledger.hold(asked, Created(asked.a_end, NOW.calendar_us))

    return decide


def active(reservations: int) -> Moment:
    """Return a moment at which it is the time of so many reservations between two hosts."""
    network = star(reservations, 10)
    state = begun(network)
    with state.changed:
        ledger = state.wished.ledger
        for number, host in enumerate(network.hosts[1:]):
            asked = Request(host.name, "archive", FlowClass.URGENT, S, NOW.calendar_us, NOW.calendar_us + 3_600 * S)
            created = Created(f"r{number}", NOW.calendar_us)
            ledger.hold(asked, created)
            ledger.happened(created.reservation_id, LifecycleEvent.COMMIT, NOW.calendar_us)
        ledger.tick(NOW.calendar_us)
        ledger.saved(ledger.changes(decided=True))
        state.replan()
        value = state.value
    if len(ledger.in_plan()) != reservations:
        raise AssertionError(f"{len(ledger.in_plan())} of {reservations} are in the plan")
    return Moment(state.site, value, NOW)


def tick(reservations: int) -> Work:
    """Return the question whether a reservation is not what the layers say, after something has changed."""
    known = active(reservations)
    return lambda: unsettled(Moment(known.site, known.state, NOW))


def idle_tick(reservations: int) -> Work:
    """Return the same question of a tick since which nothing has changed."""
    known, watch = active(reservations), SettledWatch()
    watch.unsettled(known)
    return lambda: watch.unsettled(Moment(known.site, known.state, NOW))


def one_announcement(hosts: int) -> Work:
    """Return an announcement where all hosts send already, a tenth of them by its circuit."""
    network = star(hosts, 10)
    return announcements(network, background(network))


def one_of_many_circuits(circuits: int) -> Work:
    """Return an announcement on one of so many circuits, each with two hosts that send."""
    network = star(2 * circuits, circuits)
    return announcements(network, background(network))


ROWS = (
    GrowthRow("start: the longest round trip", "hosts", (100, 300, 1_000), longest_rtt, {}),
    GrowthRow("whole plan, a circuit for each flow", "flows", (100, 300, 1_000), whole_plan, {1_000: 100}),
    GrowthRow("whole plan, a hundred circuits", "flows", (1_000, 3_000, 10_000), many_flows, {10_000: 500}),
    GrowthRow("a plan beside a switch that is gone", "sending hosts", (100, 300, 1_000), beside_a_fault, {}),
    GrowthRow("start of 1,000 hosts", "reservations", (3_000, 10_000, 30_000), start, {30_000: 3_000}),
    GrowthRow(
        "a dead circuit of a national network",
        "hosts",
        (1_000, 3_000, 10_000),
        growth_network.fault,
        {10_000: 200},
    ),
    GrowthRow("look at starts", "sending hosts", (100, 300, 1_000), looks, {}),
    GrowthRow("rules and meters of a switch, another plan", "sending hosts", (100, 300, 1_000), rules, {}),
    GrowthRow("one announcement, all steps", "sending hosts", (100, 300, 1_000), one_announcement, {1_000: 12}),
    GrowthRow(MANY_CIRCUITS, "circuits", (10, 50, 200), one_of_many_circuits, {}),
    GrowthRow("all hosts call at once", "sending hosts", (100, 300, 1_000), hellos, {1_000: 10_000}),
    GrowthRow("first decision of a pair", "hosts", (100, 300, 1_000), first_decision, {}),
    GrowthRow("is all settled? after a change", "host-to-host reservations", (100, 300, 1_000), tick, {}),
    GrowthRow("is all settled? in a tick", "host-to-host reservations", (100, 1_000, 10_000), idle_tick, {10_000: 1}),
)


def cpu_ms(work: Work) -> float:
    """Return the least CPU time of some calls, ms."""
    gc.collect()
    times = []
    for _ in range(CALLS):
        began_ns = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - began_ns)
    return min(times) / 1e6


def exponent(times_ms: Sequence[tuple[int, float]]) -> float:
    """Return by which power of the size times grow: the slope of the line that fits their logarithms best.

    >>> round(exponent([(10, 3.0), (100, 300.0), (1_000, 30_000.0)]), 3)
    2.0
    """
    sizes, times = ([math.log(one[place]) for one in times_ms] for place in (0, 1))
    return statistics.linear_regression(sizes, times).slope


def measured(row: GrowthRow, sizes: Sequence[int]) -> dict[str, Any]:
    """Return a row as the report has it."""
    times_ms = [(size, cpu_ms(row.work(size))) for size in sizes]
    return {
        "counted": row.counted,
        "cpu_ms": [[size, round(ms, 3)] for size, ms in times_ms],
        "exponent": round(exponent(times_ms), 2),
        "aims_ms": [[size, most_ms] for size, most_ms in row.aims_ms.items()],
    }


def aims(rows: dict[str, Any], national_mib: float | None) -> dict[str, Aim]:
    """Return the aims of a report; one at a size that was not measured misses."""
    memory = {f"national network, {NATIONAL_HOSTS:,} hosts, memory, MiB": at_most(national_mib, MOST_NATIONAL_MIB)}
    return (
        memory
        | {EXPONENT: at_most(rows[MANY_CIRCUITS]["exponent"], MOST_EXPONENT)}
        | {
            f"{row.what}, {size:,} {row.counted}, CPU ms": at_most(dict(rows[row.what]["cpu_ms"]).get(size), most_ms)
            for row in ROWS
            for size, most_ms in row.aims_ms.items()
        }
    )


def main() -> None:
    """Run it all, write the file, print what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/growth"), help="folder (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="no more than the two smallest sizes of each row")
    parser.add_argument("--before", metavar="COMMIT", help="measure the rows of an earlier commit too, in this run")
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    fair()
    rows: dict[str, Any] = {}
    for row in ROWS:
        print(f"bench: {row.what}", file=sys.stderr, flush=True)
        rows[row.what] = measured(row, row.sizes[:2] if asked.quick else row.sizes)
    machine = {"python": platform.python_version(), "kernel": platform.release(), "cpu": platform.machine()}
    national_mib = None if asked.quick else growth_network.resident_mib(NATIONAL_HOSTS)
    before = measured_before(asked.before, *(["--quick"] if asked.quick else [])) if asked.before else None
    result = {"rows": rows, "national_mib": national_mib, "before": before, "machine": machine}
    result |= stated(aims(rows, national_mib))
    write_report(asked.out, result)
    drawn(result, asked.out / "growth.png")
    for what, seen in rows.items():
        times = ", ".join(f"{size:,}: {ms:g}" for size, ms in seen["cpu_ms"])
        print(f"{what}: CPU ms by {seen['counted']} {times}; exponent {seen['exponent']}")
    print(f"written: {asked.out / 'report.json'}")


if __name__ == "__main__":
    main()
